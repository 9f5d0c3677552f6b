-- SPDX-License-Identifier: MIT
-- Schema 6: the scheduler had no node left outside of those that this attempt was to keep away from.
ALTER TABLE attempts ADD COLUMN is_walled_in INTEGER NOT NULL DEFAULT 0 CHECK (is_walled_in IN (0, 1));
