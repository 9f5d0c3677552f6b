-- SPDX-License-Identifier: MIT
UPDATE launches SET cause = :cause, exit_code = :exit_code, signal = :signal, text = :text,
	ended_ms = :ended_ms
WHERE attempt_id = :attempt_id AND number = :number
