-- SPDX-License-Identifier: MIT
INSERT INTO removals (name, dir, time_ms) VALUES (:name, :dir, :time_ms)
