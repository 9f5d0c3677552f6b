-- SPDX-License-Identifier: MIT
INSERT INTO checkpoints (run_id, step, attempt, path, text, valid, time_ms)
VALUES (:run_id, :step, :attempt, :path, :text, :valid, :time_ms)
ON CONFLICT (run_id, path) DO UPDATE SET step = excluded.step, attempt = excluded.attempt,
	text = excluded.text, valid = excluded.valid, time_ms = excluded.time_ms
