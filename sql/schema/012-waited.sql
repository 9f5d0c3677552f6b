-- SPDX-License-Identifier: MIT
-- Schema 12: what is held in Slurm by somebody else is told from a release that was forgotten.

-- Its job was seen to be released for so long that no controller forgets that any more.
ALTER TABLE attempts ADD COLUMN was_waiting INTEGER NOT NULL DEFAULT 0 CHECK (was_waiting IN (0, 1));
UPDATE attempts SET was_waiting = 1 WHERE released_ms > 0;
