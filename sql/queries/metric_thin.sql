-- SPDX-License-Identifier: MIT
-- All but the newest :dense rows: of each stretch of 2^:shift steps the newest row stays.
WITH old(id, step) AS MATERIALIZED (
	SELECT id, step FROM metrics WHERE run_id = :run_id AND id <=
		(SELECT id FROM metrics WHERE run_id = :run_id ORDER BY id DESC LIMIT 1 OFFSET :dense)
)
DELETE FROM metrics WHERE run_id = :run_id AND id IN (SELECT id FROM old) AND id NOT IN
	(SELECT max(id) FROM old GROUP BY step >> :shift)
