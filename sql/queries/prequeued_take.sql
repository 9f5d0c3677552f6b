-- SPDX-License-Identifier: MIT
-- From now on it is an attempt like any other, as if it had been made now.
UPDATE attempts SET is_spare = 0, created_ms = :created_ms WHERE id = :id AND is_spare = 1
