-- SPDX-License-Identifier: MIT
-- One whose run was removed since counts all the same.
SELECT entry, scheduled_s, cron_ticks.state AS state, run, cron_ticks.text AS text, time_ms
FROM cron_ticks LEFT JOIN runs ON runs.name = cron_ticks.run
WHERE entry = :entry AND (has_completed OR runs.state = 'completed')
ORDER BY scheduled_s DESC LIMIT 1
