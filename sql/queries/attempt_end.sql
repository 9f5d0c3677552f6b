-- SPDX-License-Identifier: MIT
UPDATE attempts SET state = 'ended', cause = :cause, exit_code = :exit_code, signal = :signal,
	text = :text, ended_ms = :ended_ms
WHERE id = :id AND state <> 'ended'
