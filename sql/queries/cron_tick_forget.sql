-- SPDX-License-Identifier: MIT
-- The newest thousand of an entry are enough to look back on; those whose run is there tell that it
-- is a periodic job's.
DELETE FROM cron_ticks WHERE entry = :entry AND scheduled_s <= (
	SELECT scheduled_s FROM cron_ticks WHERE entry = :entry
	ORDER BY scheduled_s DESC LIMIT 1 OFFSET 1000)
	AND NOT EXISTS (SELECT 1 FROM runs WHERE name = cron_ticks.run)
