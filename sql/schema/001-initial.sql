-- SPDX-License-Identifier: MIT
-- Schema 1. Times are wall-clock milliseconds, 0 = not yet; steps are -1 where there is none; a NULL
-- REAL is "no value". The words in the CHECKs are those of common/run/run_state.c; they are compared one by
-- one, because for a list (IN) SQLite makes a table, anew at every write, which takes longer than the write.

PRAGMA application_id = 1818387559;	-- "lbdg": tells our file from any other SQLite database

CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('ledger_id', lower(hex(randomblob(8))));

CREATE TABLE runs (
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
				 wanted = 'run' OR wanted = 'stop' OR wanted = 'kill'
				 OR wanted = 'kill_now'),
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
	mfu              REAL
) STRICT;

-- The loop asks for the live runs at every turn: few, whatever the ledger has seen.
CREATE INDEX runs_live ON runs (id) WHERE state NOT IN ('completed', 'failed', 'killed');

CREATE TABLE attempts (
	id                INTEGER PRIMARY KEY,
	run_id            INTEGER NOT NULL REFERENCES runs,
	number            INTEGER NOT NULL CHECK (number > 0),
	token             TEXT    NOT NULL UNIQUE CHECK (token <> ''),
	state             TEXT    NOT NULL CHECK (
				 state = 'intent' OR state = 'held' OR state = 'queued'
				 OR state = 'running' OR state = 'ended'),
	job_id            INTEGER NOT NULL,
	submit_time       INTEGER NOT NULL,
	cause             TEXT    NOT NULL CHECK (
				 cause = 'none' OR cause = 'completed' OR cause = 'error'
				 OR cause = 'crash' OR cause = 'oom' OR cause = 'hang'
				 OR cause = 'timeout' OR cause = 'preempted'
				 OR cause = 'node_fail' OR cause = 'launch_fail'
				 OR cause = 'killed' OR cause = 'diverged' OR cause = 'lost'),
	exit_code         INTEGER NOT NULL,
	signal            INTEGER NOT NULL,
	text              TEXT    NOT NULL,
	nodes             TEXT    NOT NULL,
	created_ms        INTEGER NOT NULL,
	released_ms       INTEGER NOT NULL,
	started_ms        INTEGER NOT NULL,
	ended_ms          INTEGER NOT NULL,
	resumed_from_step INTEGER NOT NULL,
	spool_offset      INTEGER NOT NULL CHECK (spool_offset >= 0),
	spool_seq         INTEGER NOT NULL CHECK (spool_seq >= 0),
	UNIQUE (run_id, number)
) STRICT;

CREATE TABLE launches (
	attempt_id        INTEGER NOT NULL REFERENCES attempts,
	number            INTEGER NOT NULL CHECK (number > 0),
	cause             TEXT    NOT NULL CHECK (
				 cause = 'none' OR cause = 'completed' OR cause = 'error'
				 OR cause = 'crash' OR cause = 'oom' OR cause = 'hang'
				 OR cause = 'timeout' OR cause = 'preempted'
				 OR cause = 'node_fail' OR cause = 'launch_fail'
				 OR cause = 'killed' OR cause = 'diverged' OR cause = 'lost'),
	exit_code         INTEGER NOT NULL,
	signal            INTEGER NOT NULL,
	text              TEXT    NOT NULL,
	pid               INTEGER NOT NULL,
	started_ms        INTEGER NOT NULL,
	ended_ms          INTEGER NOT NULL,
	resumed_from_step INTEGER NOT NULL,
	first_step        INTEGER NOT NULL,
	last_step         INTEGER NOT NULL,
	PRIMARY KEY (attempt_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
	id      INTEGER PRIMARY KEY,
	run_id  INTEGER NOT NULL REFERENCES runs,
	step    INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	path    TEXT    NOT NULL CHECK (path <> ''),
	text    TEXT    NOT NULL,
	valid   INTEGER NOT NULL CHECK (valid IN (0, 1)),
	time_ms INTEGER NOT NULL,
	UNIQUE (run_id, path)
) STRICT;

CREATE INDEX checkpoints_newest ON checkpoints (run_id, valid, step);

-- One row per step line. (attempt_id, seq) makes a line count once however often it is read; id is
-- the order of arrival. An index on run_id holds the ids of each run in order.
CREATE TABLE metrics (
	id         INTEGER PRIMARY KEY,
	run_id     INTEGER NOT NULL REFERENCES runs,
	attempt_id INTEGER NOT NULL REFERENCES attempts,
	seq        INTEGER NOT NULL,
	launch     INTEGER NOT NULL,
	step       INTEGER NOT NULL,
	time_ms    INTEGER NOT NULL,
	loss       REAL,
	fields     TEXT    NOT NULL,
	UNIQUE (attempt_id, seq)
) STRICT;

CREATE INDEX metrics_run ON metrics (run_id);

-- run_id is NULL for what concerns lbd itself.
CREATE TABLE events (
	id      INTEGER PRIMARY KEY,
	run_id  INTEGER REFERENCES runs,
	time_ms INTEGER NOT NULL,
	kind    TEXT    NOT NULL CHECK (kind <> ''),
	actor   TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	attempt INTEGER NOT NULL
) STRICT;

CREATE INDEX events_run ON events (run_id);

-- What the team learned about each node: attempts that ended there, and how many of them may be the
-- node's own fault.
CREATE TABLE nodes (
	name        TEXT    PRIMARY KEY CHECK (name <> ''),
	attempts    INTEGER NOT NULL,
	suspect     INTEGER NOT NULL,
	last_cause  TEXT    NOT NULL CHECK (
				 last_cause = 'none' OR last_cause = 'completed'
				 OR last_cause = 'error' OR last_cause = 'crash'
				 OR last_cause = 'oom' OR last_cause = 'hang'
				 OR last_cause = 'timeout' OR last_cause = 'preempted'
				 OR last_cause = 'node_fail' OR last_cause = 'launch_fail'
				 OR last_cause = 'killed' OR last_cause = 'diverged'
				 OR last_cause = 'lost'),
	last_ms     INTEGER NOT NULL,
	suspect_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
