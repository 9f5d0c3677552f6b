-- SPDX-License-Identifier: MIT
UPDATE attempts SET was_waiting = 1 WHERE id = :id
