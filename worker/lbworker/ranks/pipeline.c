/* SPDX-License-Identifier: MIT */
/* pipeline.c - 1F1B as a function of a number. */
#include "worker/lbworker/ranks/pipeline.h"

struct pipeline_half pipeline_half(int stage, int stages, int64_t passes, int64_t i)
{
	int64_t behind = stages - 1 - stage;
	int64_t ahead = behind < passes ? behind : passes;
	int64_t turn = i - ahead, turns = 2 * (passes - ahead);

	if (turn < 0)
		return (struct pipeline_half){ false, i };
	if (turn >= turns)
		return (struct pipeline_half){ true, i - passes };
	return (struct pipeline_half){ turn % 2 == 1, turn / 2 + (turn % 2 == 1 ? 0 : ahead) };
}

static int within(int stage, int stages)
{
	return stage >= 0 && stage < stages ? stage : -1;
}

struct pipeline_move pipeline_move(int stage, int stages, const struct pipeline_half *done,
				   const struct pipeline_half *next)
{
	struct pipeline_move move = { -1, -1, false };

	if (done)
		move.to = within(done->is_backward ? stage - 1 : stage + 1, stages);
	if (next)
		move.from = within(next->is_backward ? stage + 1 : stage - 1, stages);
	move.one_by_one = move.to >= 0 && move.from >= 0 && done->is_backward && next->is_backward;
	return move;
}
