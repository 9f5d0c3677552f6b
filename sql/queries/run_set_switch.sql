-- SPDX-License-Identifier: MIT
UPDATE runs SET wanted_switch = :wanted_switch WHERE id = :id
