-- SPDX-License-Identifier: MIT
UPDATE launches SET cause = :cause, ended_ms = :ended_ms
WHERE attempt_id = :attempt_id AND ended_ms = 0
