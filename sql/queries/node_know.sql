-- SPDX-License-Identifier: MIT
-- A node that no attempt has ended on yet, but which has a score.
INSERT INTO nodes (name, attempts, suspect, last_cause, last_ms, suspect_ms)
VALUES (:name, 0, 0, 'none', :now_ms, 0) ON CONFLICT (name) DO NOTHING
