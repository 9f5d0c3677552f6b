-- SPDX-License-Identifier: MIT
-- Schema 3: periodic jobs.

-- seen_s: what was due up to then has been dealt with. disabled_by: '' = enabled.
CREATE TABLE cron_entries (
	name        TEXT    PRIMARY KEY CHECK (name <> ''),
	seen_s      INTEGER NOT NULL,
	disabled_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- A tick is a moment at which an entry was due, in seconds UTC. Its row is committed together with
-- its run: whatever crashes, no tick is submitted twice. run: the name of its run, '' = none.
CREATE TABLE cron_ticks (
	entry       TEXT    NOT NULL,
	scheduled_s INTEGER NOT NULL,
	state       TEXT    NOT NULL CHECK (
				 state = 'waiting' OR state = 'submitted' OR state = 'skipped'
				 OR state = 'refused'),
	run         TEXT    NOT NULL,
	text        TEXT    NOT NULL,
	time_ms     INTEGER NOT NULL,
	PRIMARY KEY (entry, scheduled_s)
) STRICT, WITHOUT ROWID;
