-- SPDX-License-Identifier: MIT
-- The condition is that of the index runs_live, word for word, or the index is not used.
SELECT id, name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
	wanted_reason, wanted_ms, created_ms, ended_ms, backoff_until_ms, failures, step,
	target_step, loss, tokens_per_s, mfu, resume_from, run_group, wanted_switch
FROM runs WHERE state <> 'completed' AND state <> 'failed' AND state <> 'killed' ORDER BY id DESC
