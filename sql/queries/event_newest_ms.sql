-- SPDX-License-Identifier: MIT
SELECT coalesce(max(time_ms), 0) FROM events WHERE run_id = :run_id AND kind = :kind
