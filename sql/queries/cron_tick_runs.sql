-- SPDX-License-Identifier: MIT
-- Those that became runs.
SELECT entry, scheduled_s, state, run, text, time_ms FROM cron_ticks WHERE run <> ''
