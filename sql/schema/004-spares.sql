-- SPDX-License-Identifier: MIT
-- Schema 4: with restart.prequeue the job of the next attempt waits, held, behind the running one. Its
-- row is a spare: no attempt yet, and it may be taken away again.
ALTER TABLE attempts ADD COLUMN is_spare INTEGER NOT NULL DEFAULT 0 CHECK (is_spare IN (0, 1));
