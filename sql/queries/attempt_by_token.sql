-- SPDX-License-Identifier: MIT
SELECT id, run_id, number, token, state, job_id, submit_time, cause, exit_code, signal, text,
	nodes, created_ms, released_ms, started_ms, ended_ms, resumed_from_step, spool_offset,
	spool_seq, excluded, is_walled_in, is_short, was_waiting
FROM attempts WHERE token = :token
