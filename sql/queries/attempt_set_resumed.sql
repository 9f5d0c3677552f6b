-- SPDX-License-Identifier: MIT
UPDATE attempts SET resumed_from_step = :resumed_from_step WHERE id = :id
