-- SPDX-License-Identifier: MIT
-- A tick that waited may still become something else; what is settled stays.
INSERT INTO cron_ticks (entry, scheduled_s, state, run, text, time_ms)
VALUES (:entry, :scheduled_s, :state, :run, :text, :time_ms)
ON CONFLICT (entry, scheduled_s) DO UPDATE SET state = excluded.state, run = excluded.run,
	text = excluded.text, time_ms = excluded.time_ms
WHERE state = 'waiting'
