-- SPDX-License-Identifier: MIT
INSERT INTO nodes (name, attempts, suspect, last_cause, last_ms, suspect_ms)
VALUES (:name, 1, :suspect, :cause, :now_ms, CASE :suspect WHEN 1 THEN :now_ms ELSE 0 END)
ON CONFLICT (name) DO UPDATE SET attempts = attempts + 1, suspect = suspect + excluded.suspect,
	last_cause = excluded.last_cause, last_ms = excluded.last_ms,
	suspect_ms = CASE :suspect WHEN 1 THEN :now_ms ELSE suspect_ms END
