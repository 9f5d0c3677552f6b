-- SPDX-License-Identifier: MIT
INSERT INTO metrics (run_id, id, attempt_id, seq, launch, step, time_ms, loss, fields)
VALUES (:run_id, :attempt_id << 32 | :seq, :attempt_id, :seq, :launch, :step, :time_ms, :loss, :fields)
ON CONFLICT (run_id, id) DO NOTHING
