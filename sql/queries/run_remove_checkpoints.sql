-- SPDX-License-Identifier: MIT
DELETE FROM checkpoints WHERE run_id = :run_id
