-- SPDX-License-Identifier: MIT
DELETE FROM attempts WHERE run_id = :run_id
