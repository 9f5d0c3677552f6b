-- SPDX-License-Identifier: MIT
SELECT run_id, step, attempt, path, text, valid, time_ms
FROM checkpoints WHERE run_id = :run_id AND step = :step ORDER BY valid DESC, id DESC LIMIT 1
