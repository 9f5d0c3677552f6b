-- SPDX-License-Identifier: MIT
-- state '' = of any.
SELECT entry, scheduled_s, state, run, text, time_ms FROM cron_ticks
WHERE entry = :entry AND :state IN ('', state) ORDER BY scheduled_s DESC LIMIT 1
