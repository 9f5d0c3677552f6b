-- SPDX-License-Identifier: MIT
SELECT attempt_id, number, cause, exit_code, signal, text, pid, started_ms, ended_ms,
	resumed_from_step, first_step, last_step, first_step_ms, last_step_ms, saved_step,
	saved_ms, start
FROM launches WHERE attempt_id = :attempt_id ORDER BY number
