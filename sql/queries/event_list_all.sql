-- SPDX-License-Identifier: MIT
SELECT e.id, coalesce(e.run_id, 0), e.time_ms, e.kind, e.actor, e.text, e.attempt, coalesce(r.name, '')
FROM events e LEFT JOIN runs r ON r.id = e.run_id
WHERE e.id > :after_id ORDER BY e.id LIMIT :limit
