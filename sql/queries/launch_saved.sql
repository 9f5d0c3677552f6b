-- SPDX-License-Identifier: MIT
UPDATE launches SET saved_step = :saved_step, saved_ms = :saved_ms
WHERE attempt_id = :attempt_id AND number = :number
