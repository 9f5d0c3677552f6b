-- SPDX-License-Identifier: MIT
-- The WHERE on the old state makes a lost race visible: no row is changed.
UPDATE runs SET state = :to, cause = :cause, text = :text, ended_ms = :ended_ms
WHERE id = :id AND state = :from
