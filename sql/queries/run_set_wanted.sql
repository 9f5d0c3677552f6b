-- SPDX-License-Identifier: MIT
UPDATE runs SET wanted = :wanted, wanted_by = :wanted_by, wanted_reason = :wanted_reason,
	wanted_ms = :wanted_ms
WHERE id = :id
