-- SPDX-License-Identifier: MIT
-- Schema 9: what the start of a launch took, phase by phase.

-- {NAME: seconds …} as lbrun tells it, with how it ended; '' = not told.
ALTER TABLE launches ADD COLUMN start TEXT NOT NULL DEFAULT '';
