-- SPDX-License-Identifier: MIT
SELECT id, name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
	wanted_reason, wanted_ms, created_ms, ended_ms, backoff_until_ms, failures, step,
	target_step, loss, tokens_per_s, mfu, resume_from, run_group, wanted_switch
FROM runs WHERE id = :id
