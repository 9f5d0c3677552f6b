-- SPDX-License-Identifier: MIT
SELECT id, run_id, time_ms, kind, actor, text, attempt
FROM events WHERE run_id = :run_id AND id > :after_id ORDER BY id LIMIT :limit
