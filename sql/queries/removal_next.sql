-- SPDX-License-Identifier: MIT
SELECT id, name, dir, time_ms FROM removals WHERE id > :after_id ORDER BY id LIMIT 1
