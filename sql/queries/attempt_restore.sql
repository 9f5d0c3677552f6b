-- SPDX-License-Identifier: MIT
UPDATE attempts SET state = :state, job_id = :job_id, submit_time = :submit_time, cause = :cause,
	exit_code = :exit_code, signal = :signal, text = :text, nodes = :nodes,
	created_ms = :created_ms, released_ms = :released_ms, started_ms = :started_ms,
	ended_ms = :ended_ms, excluded = :excluded, is_walled_in = :is_walled_in,
	is_short = :is_short, was_waiting = :was_waiting
WHERE id = :id
