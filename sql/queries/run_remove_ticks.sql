-- SPDX-License-Identifier: MIT
UPDATE cron_ticks SET has_completed = 1
WHERE run = (SELECT name FROM runs WHERE id = :run_id AND state = 'completed')
