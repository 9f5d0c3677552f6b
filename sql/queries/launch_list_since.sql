-- SPDX-License-Identifier: MIT
-- Of all runs; what an attempt on other nodes than its own did not live to tell, its own cause does.
SELECT CASE WHEN l.cause IN ('none', 'lost') THEN a.cause ELSE l.cause END AS cause,
	l.started_ms AS started_ms, l.ended_ms AS ended_ms, a.nodes AS nodes
FROM launches l JOIN attempts a ON a.id = l.attempt_id WHERE l.ended_ms >= :since_ms
