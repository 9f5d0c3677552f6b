-- SPDX-License-Identifier: MIT
INSERT INTO attempts (run_id, number, token, state, job_id, submit_time, cause, exit_code, signal,
	text, nodes, created_ms, released_ms, started_ms, ended_ms, resumed_from_step,
	spool_offset, spool_seq, excluded, is_spare)
VALUES (:run_id, :number, :token, 'intent', 0, 0, 'none', -1, 0,
	'', '', :created_ms, 0, 0, 0, -1,
	0, 0, :excluded, 1)
