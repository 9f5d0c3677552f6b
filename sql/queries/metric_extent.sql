-- SPDX-License-Identifier: MIT
-- How many there are, and up to which step.
SELECT count(*) AS id, coalesce(max(step), 0) AS step FROM metrics WHERE run_id = :run_id
