-- SPDX-License-Identifier: MIT
-- Told twice (lbd looked again after a crash), the first time stays.
UPDATE attempts SET state = 'running',
	nodes = CASE :nodes WHEN '' THEN nodes ELSE :nodes END,
	started_ms = CASE started_ms WHEN 0 THEN :started_ms ELSE started_ms END
WHERE id = :id AND state <> 'ended'
