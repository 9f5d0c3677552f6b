-- SPDX-License-Identifier: MIT
SELECT id, run_id, attempt_id, seq, launch, step, time_ms, loss, fields
FROM metrics WHERE run_id = :run_id ORDER BY id DESC LIMIT :limit
