-- SPDX-License-Identifier: MIT
SELECT name, seen_s, disabled_by FROM cron_entries ORDER BY name
