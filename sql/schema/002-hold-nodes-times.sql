-- SPDX-License-Identifier: MIT
-- Schema 2: runs can be held and restarted from a chosen checkpoint; nodes carry a score; launches
-- carry the times that tell productive hours from lost ones.

-- SQLite cannot change a CHECK in place: the table is written anew. lbd opens the ledger with
-- foreign keys off until the migrations are done, and checks them before each is committed.
-- resume_from: '' = the newest valid checkpoint, 'scratch' = none, else the path of one; for the
-- next launch of a new attempt only.
CREATE TABLE new_runs (
	id               INTEGER PRIMARY KEY,
	name             TEXT    NOT NULL UNIQUE CHECK (name <> ''),
	owner            TEXT    NOT NULL,
	owner_uid        INTEGER NOT NULL,
	state            TEXT    NOT NULL CHECK (
				 state = 'created' OR state = 'submitting' OR state = 'queued'
				 OR state = 'running' OR state = 'stopping' OR state = 'backoff'
				 OR state = 'held' OR state = 'completed' OR state = 'failed'
				 OR state = 'killed'),
	cause            TEXT    NOT NULL CHECK (
				 cause = 'none' OR cause = 'completed' OR cause = 'error'
				 OR cause = 'crash' OR cause = 'oom' OR cause = 'hang'
				 OR cause = 'timeout' OR cause = 'preempted'
				 OR cause = 'node_fail' OR cause = 'launch_fail'
				 OR cause = 'killed' OR cause = 'diverged' OR cause = 'lost'),
	text             TEXT    NOT NULL,
	scheduler        TEXT    NOT NULL CHECK (scheduler IN ('slurm', 'local')),
	dir              TEXT    NOT NULL,
	wanted           TEXT    NOT NULL CHECK (
				 wanted = 'run' OR wanted = 'hold' OR wanted = 'stop'
				 OR wanted = 'kill' OR wanted = 'kill_now'),
	wanted_by        TEXT    NOT NULL,
	wanted_reason    TEXT    NOT NULL,
	wanted_ms        INTEGER NOT NULL,
	created_ms       INTEGER NOT NULL,
	ended_ms         INTEGER NOT NULL,
	backoff_until_ms INTEGER NOT NULL,
	failures         INTEGER NOT NULL CHECK (failures >= 0),
	step             INTEGER NOT NULL,
	target_step      INTEGER NOT NULL,
	loss             REAL,
	tokens_per_s     REAL,
	mfu              REAL,
	resume_from      TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO new_runs (id, name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
	wanted_reason, wanted_ms, created_ms, ended_ms, backoff_until_ms, failures, step,
	target_step, loss, tokens_per_s, mfu, resume_from)
SELECT id, name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
	wanted_reason, wanted_ms, created_ms, ended_ms, backoff_until_ms, failures, step,
	target_step, loss, tokens_per_s, mfu, '' FROM runs;
DROP TABLE runs;
ALTER TABLE new_runs RENAME TO runs;
CREATE INDEX runs_live ON runs (id) WHERE state NOT IN ('completed', 'failed', 'killed');

-- Nodes that this attempt was told to keep away from, comma-separated.
ALTER TABLE attempts ADD COLUMN excluded TEXT NOT NULL DEFAULT '';

-- When the first and the last step of a launch were reported; its newest valid checkpoint.
ALTER TABLE launches ADD COLUMN first_step_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE launches ADD COLUMN last_step_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE launches ADD COLUMN saved_step INTEGER NOT NULL DEFAULT -1;
ALTER TABLE launches ADD COLUMN saved_ms INTEGER NOT NULL DEFAULT 0;

-- How much a node is mistrusted, and as of when: it fades with time (node_memory.h). Schema 1
-- kept all nodes of a job in one row, under Slurm's short form: nothing can be learned from those.
ALTER TABLE nodes ADD COLUMN score REAL NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN score_ms INTEGER NOT NULL DEFAULT 0;
DELETE FROM nodes WHERE name LIKE '%[%' OR name LIKE '%,%';
