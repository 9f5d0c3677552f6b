-- SPDX-License-Identifier: MIT
INSERT INTO metrics (run_id, attempt_id, seq, launch, step, time_ms, loss, fields)
VALUES (:run_id, :attempt_id, :seq, :launch, :step, :time_ms, :loss, :fields)
ON CONFLICT (attempt_id, seq) DO NOTHING
