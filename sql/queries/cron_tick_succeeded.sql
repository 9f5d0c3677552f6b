-- SPDX-License-Identifier: MIT
SELECT entry, scheduled_s, cron_ticks.state AS state, run, cron_ticks.text AS text, time_ms
FROM cron_ticks JOIN runs ON runs.name = cron_ticks.run
WHERE entry = :entry AND runs.state = 'completed' ORDER BY scheduled_s DESC LIMIT 1
