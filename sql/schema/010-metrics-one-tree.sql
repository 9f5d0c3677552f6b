-- SPDX-License-Identifier: MIT
-- Schema 10: the points of a run lie side by side, in one tree instead of three.

-- id is made of attempt and seq: no line is stored twice, and what comes later is greater. That the
-- attempt is there is not asked of each point: run and attempt go together (run_remove_*.sql).
CREATE TABLE metrics_by_run (
	run_id     INTEGER NOT NULL REFERENCES runs,
	id         INTEGER NOT NULL,
	attempt_id INTEGER NOT NULL,
	seq        INTEGER NOT NULL,
	launch     INTEGER NOT NULL,
	step       INTEGER NOT NULL,
	time_ms    INTEGER NOT NULL,
	loss       REAL,
	fields     TEXT    NOT NULL,
	PRIMARY KEY (run_id, id)
) STRICT, WITHOUT ROWID;

INSERT INTO metrics_by_run
SELECT run_id, attempt_id << 32 | seq, attempt_id, seq, launch, step, time_ms, loss, fields
FROM metrics ORDER BY run_id, attempt_id, seq;

DROP TABLE metrics;
ALTER TABLE metrics_by_run RENAME TO metrics;
