-- SPDX-License-Identifier: MIT
SELECT run_id FROM attempts WHERE id = :id
