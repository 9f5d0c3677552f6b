-- SPDX-License-Identifier: MIT
UPDATE launches SET start = :start WHERE attempt_id = :attempt_id AND number = :number
