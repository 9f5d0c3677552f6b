-- SPDX-License-Identifier: MIT
DELETE FROM launches WHERE attempt_id IN (SELECT id FROM attempts WHERE run_id = :run_id)
