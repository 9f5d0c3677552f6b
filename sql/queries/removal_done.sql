-- SPDX-License-Identifier: MIT
DELETE FROM removals WHERE id = :id
