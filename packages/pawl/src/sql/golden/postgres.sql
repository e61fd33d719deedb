CREATE TABLE IF NOT EXISTS "pawl".meta (
  name text COLLATE "C" NOT NULL,
  value bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE IF NOT EXISTS "pawl".runner (
  id text COLLATE "C" NOT NULL,
  lease_until bigint NOT NULL,
  dead integer NOT NULL DEFAULT 0,
  registered_at bigint NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS "pawl".instance (
  iid text COLLATE "C" NOT NULL,
  workflow text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL DEFAULT 'workflow',
  queue text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  status text NOT NULL,
  params text,
  output text,
  error text,
  created_at bigint NOT NULL,
  started_at bigint,
  finished_at bigint,
  claim_no bigint NOT NULL DEFAULT 0,
  terminated_by text COLLATE "C",
  origin text COLLATE "C",
  tags text,
  retention_until bigint,
  PRIMARY KEY (iid)
);

CREATE UNIQUE INDEX IF NOT EXISTS instance_id ON "pawl".instance (workflow, id);

CREATE INDEX IF NOT EXISTS instance_list ON "pawl".instance (workflow, status, created_at, iid);

CREATE TABLE IF NOT EXISTS "pawl".past_run (
  iid text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  status text NOT NULL,
  output text,
  error text,
  started_at bigint,
  finished_at bigint,
  terminated_by text COLLATE "C",
  restarted_by text COLLATE "C" NOT NULL,
  PRIMARY KEY (iid, run_no)
);

CREATE TABLE IF NOT EXISTS "pawl".ticket (
  tid text COLLATE "C" NOT NULL,
  kind text NOT NULL DEFAULT 'run',
  queue text COLLATE "C" NOT NULL,
  handler text COLLATE "C" NOT NULL,
  class integer NOT NULL,
  due_at bigint,
  state text NOT NULL,
  run_no integer NOT NULL,
  claim_no bigint NOT NULL,
  owner text COLLATE "C",
  pause_requested integer NOT NULL DEFAULT 0,
  event_count bigint NOT NULL DEFAULT 0,
  wait_mask bigint NOT NULL DEFAULT 0,
  seen_at bigint NOT NULL DEFAULT 0,
  part_no integer NOT NULL DEFAULT 0,
  takeovers integer NOT NULL DEFAULT 0,
  history_bytes bigint NOT NULL DEFAULT 0,
  started_at bigint,
  flow_key text COLLATE "C",
  PRIMARY KEY (tid, claim_no)
);

CREATE INDEX IF NOT EXISTS ticket_due ON "pawl".ticket (queue, handler, class, due_at, tid) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS ticket_owner ON "pawl".ticket (owner) WHERE owner IS NOT NULL;

CREATE TABLE IF NOT EXISTS "pawl".step (
  iid text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  ord integer NOT NULL,
  seq integer,
  called_after integer NOT NULL,
  claim_no bigint NOT NULL,
  part_no integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  count integer NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  attempts integer NOT NULL,
  started_at bigint NOT NULL,
  ended_at bigint,
  wake_at bigint,
  wait_key text COLLATE "C",
  result text,
  error text,
  PRIMARY KEY (iid, run_no, ord)
);

CREATE TABLE IF NOT EXISTS "pawl".attempt (
  iid text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  ord integer NOT NULL,
  n integer NOT NULL,
  started_at bigint NOT NULL,
  ended_at bigint NOT NULL,
  error text,
  PRIMARY KEY (iid, run_no, ord, n)
);

CREATE TABLE IF NOT EXISTS "pawl".event (
  iid text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  number bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  type text COLLATE "C" NOT NULL,
  payload text,
  created_at bigint NOT NULL,
  delivered_at bigint,
  consumed_by integer,
  PRIMARY KEY (iid, run_no, number)
);

CREATE UNIQUE INDEX IF NOT EXISTS event_once ON "pawl".event (iid, run_no, event_id);

CREATE TABLE IF NOT EXISTS "pawl".inbox (
  id text COLLATE "C" NOT NULL,
  iid text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  type text COLLATE "C" NOT NULL,
  payload text,
  PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS "pawl".hook (
  name text COLLATE "C" NOT NULL,
  registered_at bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE IF NOT EXISTS "pawl".outbox (
  id text COLLATE "C" NOT NULL,
  hook text COLLATE "C" NOT NULL,
  workflow text COLLATE "C" NOT NULL,
  instance_id text COLLATE "C" NOT NULL,
  run_no integer NOT NULL,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  due_at bigint,
  claim_no integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  failed_at bigint,
  error text,
  PRIMARY KEY (id)
);

CREATE INDEX IF NOT EXISTS outbox_due ON "pawl".outbox (hook, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS outbox_failed ON "pawl".outbox (failed_at, id) WHERE failed_at IS NOT NULL;
