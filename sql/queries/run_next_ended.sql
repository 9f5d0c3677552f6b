-- SPDX-License-Identifier: MIT
-- is_periodic: cron started it.
SELECT id, name, dir, ended_ms,
	EXISTS (SELECT 1 FROM cron_ticks WHERE run = runs.name) AS is_periodic
FROM runs WHERE state IN ('completed', 'failed', 'killed')
	AND (ended_ms, id) > (:after_ms, :after_id) AND ended_ms <= :until_ms
ORDER BY ended_ms, id LIMIT 1
