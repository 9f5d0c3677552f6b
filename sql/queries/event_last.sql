-- SPDX-License-Identifier: MIT
SELECT coalesce(max(id), 0) FROM events
