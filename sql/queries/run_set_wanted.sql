-- SPDX-License-Identifier: MIT
-- From a command, unless run_set_switch says otherwise.
UPDATE runs SET wanted = :wanted, wanted_by = :wanted_by, wanted_reason = :wanted_reason,
	wanted_ms = :wanted_ms, wanted_switch = ''
WHERE id = :id
