-- SPDX-License-Identifier: MIT
DELETE FROM events WHERE run_id = :run_id
