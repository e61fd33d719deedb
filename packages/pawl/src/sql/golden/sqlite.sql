CREATE TABLE IF NOT EXISTS pawl_meta (
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_runner (
  id TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  dead INTEGER NOT NULL DEFAULT 0,
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_instance (
  iid TEXT NOT NULL,
  workflow TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'workflow',
  queue TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  status TEXT NOT NULL,
  params TEXT,
  output TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  claim_no INTEGER NOT NULL DEFAULT 0,
  terminated_by TEXT,
  origin TEXT,
  tags TEXT,
  retention_until INTEGER,
  PRIMARY KEY (iid)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS pawl_instance_id ON pawl_instance (workflow, id);

CREATE INDEX IF NOT EXISTS pawl_instance_list ON pawl_instance (workflow, status, created_at, iid);

CREATE TABLE IF NOT EXISTS pawl_past_run (
  iid TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  status TEXT NOT NULL,
  output TEXT,
  error TEXT,
  started_at INTEGER,
  finished_at INTEGER,
  terminated_by TEXT,
  restarted_by TEXT NOT NULL,
  PRIMARY KEY (iid, run_no)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_ticket (
  tid TEXT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'run',
  queue TEXT NOT NULL,
  handler TEXT NOT NULL,
  class INTEGER NOT NULL,
  due_at INTEGER,
  state TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  claim_no INTEGER NOT NULL,
  owner TEXT,
  pause_requested INTEGER NOT NULL DEFAULT 0,
  event_count INTEGER NOT NULL DEFAULT 0,
  wait_mask INTEGER NOT NULL DEFAULT 0,
  seen_at INTEGER NOT NULL DEFAULT 0,
  part_no INTEGER NOT NULL DEFAULT 0,
  takeovers INTEGER NOT NULL DEFAULT 0,
  history_bytes INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER,
  flow_key TEXT,
  PRIMARY KEY (tid)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS pawl_ticket_due ON pawl_ticket (queue, handler, class, due_at, tid) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS pawl_ticket_owner ON pawl_ticket (owner) WHERE owner IS NOT NULL;

CREATE TABLE IF NOT EXISTS pawl_step (
  iid TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  seq INTEGER,
  called_after INTEGER NOT NULL,
  claim_no INTEGER NOT NULL,
  part_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  count INTEGER NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  wake_at INTEGER,
  wait_key TEXT,
  result TEXT,
  error TEXT,
  PRIMARY KEY (iid, run_no, ord)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_attempt (
  iid TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  n INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (iid, run_no, ord, n)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_event (
  iid TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  number INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER,
  consumed_by INTEGER,
  PRIMARY KEY (iid, run_no, number)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS pawl_event_once ON pawl_event (iid, run_no, event_id);

CREATE TABLE IF NOT EXISTS pawl_inbox (
  id TEXT NOT NULL,
  iid TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT,
  PRIMARY KEY (id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_hook (
  name TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pawl_outbox (
  id TEXT NOT NULL,
  hook TEXT NOT NULL,
  workflow TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  run_no INTEGER NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER,
  claim_no INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  failed_at INTEGER,
  error TEXT,
  PRIMARY KEY (id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS pawl_outbox_due ON pawl_outbox (hook, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS pawl_outbox_failed ON pawl_outbox (failed_at, id) WHERE failed_at IS NOT NULL;
