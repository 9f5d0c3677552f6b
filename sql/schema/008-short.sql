-- SPDX-License-Identifier: MIT
-- Schema 8: attempts for which too few nodes were free.

-- It waited for as many nodes as the run asks for, and gave up: the next one asks for fewer.
ALTER TABLE attempts ADD COLUMN is_short INTEGER NOT NULL DEFAULT 0 CHECK (is_short IN (0, 1));
