-- SPDX-License-Identifier: MIT
SELECT e.id, e.run_id, e.time_ms, e.kind, e.actor, e.text, e.attempt, r.name
FROM events e JOIN runs r ON r.id = e.run_id
WHERE e.run_id = :run_id AND e.id > :after_id ORDER BY e.id LIMIT :limit
