-- SPDX-License-Identifier: MIT
INSERT INTO events (run_id, time_ms, kind, actor, text, attempt)
VALUES (nullif(:run_id, 0), :time_ms, :kind, :actor, :text, :attempt)
