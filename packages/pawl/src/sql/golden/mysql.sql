CREATE TABLE IF NOT EXISTS `pawl_meta` (
  `name` VARBINARY(64) NOT NULL,
  `value` BIGINT NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_runner` (
  `id` VARBINARY(128) NOT NULL,
  `lease_until` BIGINT NOT NULL,
  `dead` INT NOT NULL DEFAULT 0,
  `registered_at` BIGINT NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_instance` (
  `iid` VARBINARY(64) NOT NULL,
  `workflow` VARBINARY(256) NOT NULL,
  `id` VARBINARY(400) NOT NULL,
  `kind` VARBINARY(32) NOT NULL DEFAULT 'workflow',
  `queue` VARBINARY(256) NOT NULL,
  `run_no` INT NOT NULL,
  `status` VARBINARY(32) NOT NULL,
  `params` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `output` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `error` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `created_at` BIGINT NOT NULL,
  `started_at` BIGINT NULL,
  `finished_at` BIGINT NULL,
  `claim_no` BIGINT NOT NULL DEFAULT 0,
  `terminated_by` VARBINARY(128) NULL,
  `origin` VARBINARY(512) NULL,
  `tags` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `retention_until` BIGINT NULL,
  PRIMARY KEY (`iid`),
  UNIQUE KEY `pawl_instance_id` (`workflow`, `id`),
  KEY `pawl_instance_list` (`workflow`, `status`, `created_at`, `iid`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_past_run` (
  `iid` VARBINARY(64) NOT NULL,
  `run_no` INT NOT NULL,
  `status` VARBINARY(32) NOT NULL,
  `output` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `error` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `started_at` BIGINT NULL,
  `finished_at` BIGINT NULL,
  `terminated_by` VARBINARY(128) NULL,
  `restarted_by` VARBINARY(128) NOT NULL,
  PRIMARY KEY (`iid`, `run_no`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_ticket` (
  `tid` VARBINARY(64) NOT NULL,
  `kind` VARBINARY(32) NOT NULL DEFAULT 'run',
  `queue` VARBINARY(256) NOT NULL,
  `handler` VARBINARY(256) NOT NULL,
  `class` INT NOT NULL,
  `due_at` BIGINT NULL,
  `state` VARBINARY(32) NOT NULL,
  `run_no` INT NOT NULL,
  `claim_no` BIGINT NOT NULL,
  `owner` VARBINARY(128) NULL,
  `pause_requested` INT NOT NULL DEFAULT 0,
  `event_count` BIGINT NOT NULL DEFAULT 0,
  `wait_mask` BIGINT NOT NULL DEFAULT 0,
  `seen_at` BIGINT NOT NULL DEFAULT 0,
  `part_no` INT NOT NULL DEFAULT 0,
  `takeovers` INT NOT NULL DEFAULT 0,
  `history_bytes` BIGINT NOT NULL DEFAULT 0,
  `started_at` BIGINT NULL,
  `flow_key` VARBINARY(400) NULL,
  PRIMARY KEY (`tid`),
  KEY `pawl_ticket_due` (`queue`, `handler`, `class`, `due_at`, `tid`),
  KEY `pawl_ticket_owner` (`owner`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_step` (
  `iid` VARBINARY(64) NOT NULL,
  `run_no` INT NOT NULL,
  `ord` INT NOT NULL,
  `seq` INT NULL,
  `called_after` INT NOT NULL,
  `claim_no` BIGINT NOT NULL,
  `part_no` INT NOT NULL,
  `name` VARBINARY(1024) NOT NULL,
  `count` INT NOT NULL,
  `type` VARBINARY(32) NOT NULL,
  `status` VARBINARY(32) NOT NULL,
  `attempts` INT NOT NULL,
  `started_at` BIGINT NOT NULL,
  `ended_at` BIGINT NULL,
  `wake_at` BIGINT NULL,
  `wait_key` VARBINARY(400) NULL,
  `result` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `error` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (`iid`, `run_no`, `ord`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_attempt` (
  `iid` VARBINARY(64) NOT NULL,
  `run_no` INT NOT NULL,
  `ord` INT NOT NULL,
  `n` INT NOT NULL,
  `started_at` BIGINT NOT NULL,
  `ended_at` BIGINT NOT NULL,
  `error` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (`iid`, `run_no`, `ord`, `n`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_event` (
  `iid` VARBINARY(64) NOT NULL,
  `run_no` INT NOT NULL,
  `number` BIGINT NOT NULL,
  `event_id` VARBINARY(400) NOT NULL,
  `kind` VARBINARY(32) NOT NULL,
  `type` VARBINARY(400) NOT NULL,
  `payload` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  `created_at` BIGINT NOT NULL,
  `delivered_at` BIGINT NULL,
  `consumed_by` INT NULL,
  PRIMARY KEY (`iid`, `run_no`, `number`),
  UNIQUE KEY `pawl_event_once` (`iid`, `run_no`, `event_id`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_inbox` (
  `id` VARBINARY(400) NOT NULL,
  `iid` VARBINARY(64) NOT NULL,
  `run_no` INT NOT NULL,
  `event_id` VARBINARY(400) NOT NULL,
  `kind` VARBINARY(32) NOT NULL,
  `type` VARBINARY(400) NOT NULL,
  `payload` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_hook` (
  `name` VARBINARY(128) NOT NULL,
  `registered_at` BIGINT NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS `pawl_outbox` (
  `id` VARBINARY(256) NOT NULL,
  `hook` VARBINARY(128) NOT NULL,
  `workflow` VARBINARY(256) NOT NULL,
  `instance_id` VARBINARY(400) NOT NULL,
  `run_no` INT NOT NULL,
  `reason` VARBINARY(32) NOT NULL,
  `created_at` BIGINT NOT NULL,
  `due_at` BIGINT NULL,
  `claim_no` INT NOT NULL DEFAULT 0,
  `attempts` INT NOT NULL DEFAULT 0,
  `failed_at` BIGINT NULL,
  `error` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (`id`),
  KEY `pawl_outbox_due` (`hook`, `due_at`, `id`),
  KEY `pawl_outbox_failed` (`failed_at`, `id`)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC;
