-- SPDX-License-Identifier: MIT
INSERT INTO launches (attempt_id, number, cause, exit_code, signal, text, pid, started_ms, ended_ms,
	resumed_from_step, first_step, last_step)
VALUES (:attempt_id, :number, 'none', -1, 0, '', :pid, :started_ms, 0,
	:resumed_from_step, -1, -1)
ON CONFLICT (attempt_id, number) DO NOTHING
