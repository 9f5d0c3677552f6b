-- SPDX-License-Identifier: MIT
-- Schema 6: attempts that were walled in; the live runs are cheaper to find.

-- The scheduler had no node left outside of those that this attempt was to keep away from.
ALTER TABLE attempts ADD COLUMN is_walled_in INTEGER NOT NULL DEFAULT 0 CHECK (is_walled_in IN (0, 1));

-- Without a list, which costs as much here as in the CHECKs (001-initial.sql).
DROP INDEX runs_live;
CREATE INDEX runs_live ON runs (id)
WHERE state <> 'completed' AND state <> 'failed' AND state <> 'killed';

-- Who looks after old output asks for the next ended run, again and again.
CREATE INDEX runs_ended ON runs (ended_ms);
