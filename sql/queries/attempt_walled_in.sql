-- SPDX-License-Identifier: MIT
UPDATE attempts SET is_walled_in = 1 WHERE id = :id
