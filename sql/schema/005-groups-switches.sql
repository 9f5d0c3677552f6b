-- SPDX-License-Identifier: MIT
-- Schema 5: runs belong to groups; an order says which switch file it came from.

-- run.group of the spec; '' = none.
ALTER TABLE runs ADD COLUMN run_group TEXT NOT NULL DEFAULT '';
-- Name of the file in switches/ that `wanted` came from; '' = from a command.
ALTER TABLE runs ADD COLUMN wanted_switch TEXT NOT NULL DEFAULT '';
