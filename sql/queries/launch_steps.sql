-- SPDX-License-Identifier: MIT
-- Called for every batch of steps: the first one stays.
UPDATE launches SET
	first_step_ms = CASE first_step WHEN -1 THEN :first_ms ELSE first_step_ms END,
	first_step = CASE first_step WHEN -1 THEN :first_step ELSE first_step END,
	last_step = :last_step, last_step_ms = :last_ms
WHERE attempt_id = :attempt_id AND number = :number
