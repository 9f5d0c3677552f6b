-- SPDX-License-Identifier: MIT
DELETE FROM runs
WHERE id = :run_id AND (state = 'completed' OR state = 'failed' OR state = 'killed')
