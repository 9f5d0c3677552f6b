-- SPDX-License-Identifier: MIT
DELETE FROM metrics WHERE run_id = :run_id
