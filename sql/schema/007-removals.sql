-- SPDX-License-Identifier: MIT
-- Schema 7: runs can be removed for good.

-- A run whose rows are gone and whose folder, or what is left of it, is still to go: it was committed
-- together with the end of the rows, and goes with the last file.
CREATE TABLE removals (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	name    TEXT    NOT NULL,
	dir     TEXT    NOT NULL CHECK (dir <> ''),
	time_ms INTEGER NOT NULL
) STRICT;

-- The run of this tick completed, and was removed since.
ALTER TABLE cron_ticks ADD COLUMN has_completed INTEGER NOT NULL DEFAULT 0 CHECK (has_completed IN (0, 1));
