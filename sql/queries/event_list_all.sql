-- SPDX-License-Identifier: MIT
SELECT id, coalesce(run_id, 0), time_ms, kind, actor, text, attempt
FROM events WHERE id > :after_id ORDER BY id LIMIT :limit
