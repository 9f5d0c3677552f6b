-- SPDX-License-Identifier: MIT
-- Schema 11: nodes that failed again and again are remembered for longer.

-- As score, of the same moment, but it fades more slowly (daemon/engine/decide/node_memory.h).
ALTER TABLE nodes ADD COLUMN record REAL NOT NULL DEFAULT 0;
