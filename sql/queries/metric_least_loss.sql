-- SPDX-License-Identifier: MIT
SELECT min(loss) AS loss FROM metrics WHERE run_id = :run_id
