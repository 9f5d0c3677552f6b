-- SPDX-License-Identifier: MIT
SELECT entry, scheduled_s, state, run, text, time_ms FROM cron_ticks
WHERE entry = :entry AND state = 'waiting' ORDER BY scheduled_s LIMIT 1
