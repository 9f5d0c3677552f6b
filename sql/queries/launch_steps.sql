-- SPDX-License-Identifier: MIT
UPDATE launches SET first_step = :first_step, last_step = :last_step
WHERE attempt_id = :attempt_id AND number = :number
