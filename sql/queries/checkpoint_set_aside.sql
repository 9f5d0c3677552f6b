-- SPDX-License-Identifier: MIT
-- A new one of the same path puts its row right again.
UPDATE checkpoints SET valid = 0, text = 'set aside by a restart'
WHERE run_id = :run_id AND step > :step
