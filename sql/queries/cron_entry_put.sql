-- SPDX-License-Identifier: MIT
INSERT INTO cron_entries (name, seen_s, disabled_by) VALUES (:name, :seen_s, :disabled_by)
ON CONFLICT (name) DO UPDATE SET seen_s = excluded.seen_s, disabled_by = excluded.disabled_by
