-- SPDX-License-Identifier: MIT
-- All but those that ended before :since_ms.
SELECT id, name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
	wanted_reason, wanted_ms, created_ms, ended_ms, backoff_until_ms, failures, step,
	target_step, loss, tokens_per_s, mfu, resume_from, run_group, wanted_switch
FROM runs WHERE ended_ms >= :since_ms OR state NOT IN ('completed', 'failed', 'killed')
ORDER BY id DESC
