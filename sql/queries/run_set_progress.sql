-- SPDX-License-Identifier: MIT
-- NULL stands for "not told": the column keeps what it has.
UPDATE runs SET step = coalesce(:step, step), target_step = coalesce(:target_step, target_step),
	loss = coalesce(:loss, loss), tokens_per_s = coalesce(:tokens_per_s, tokens_per_s),
	mfu = coalesce(:mfu, mfu)
WHERE id = :id
