-- SPDX-License-Identifier: MIT
-- The newest thousand of an entry are enough to look back on.
DELETE FROM cron_ticks WHERE entry = :entry AND scheduled_s <= (
	SELECT scheduled_s FROM cron_ticks WHERE entry = :entry
	ORDER BY scheduled_s DESC LIMIT 1 OFFSET 1000)
