-- SPDX-License-Identifier: MIT
UPDATE attempts SET is_short = 1 WHERE id = :id
