-- SPDX-License-Identifier: MIT
SELECT name, attempts, suspect, last_cause, last_ms, suspect_ms, score, score_ms, record
FROM nodes ORDER BY name
