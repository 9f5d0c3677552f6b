-- SPDX-License-Identifier: MIT
SELECT id FROM metrics WHERE run_id = :run_id ORDER BY id DESC LIMIT 1
