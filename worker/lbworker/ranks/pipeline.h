/* SPDX-License-Identifier: MIT */
/* pipeline.h - in which order a stage makes the halves of its passes, and what passes between
 * stages. Pure.
 *
 * 1F1B (Narayanan et al. 2019; Megatron-LM's schedule without interleaving): a stage goes forward
 * as often as there are stages behind it, then backward and forward by turns, so that no more
 * passes than that, and one, are under way. Backward they come in order. */
#ifndef LBWORKER_PIPELINE_H
#define LBWORKER_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

struct pipeline_half {
	bool is_backward;
	int64_t pass;
};

/* Number i, 0 .. 2 * passes - 1, of what `stage` of `stages` does. */
struct pipeline_half pipeline_half(int stage, int stages, int64_t passes, int64_t i);

/* What a stage gives and takes between two halves; -1: nothing. Both at once, as a neighbour that
 * waits for one may wait for the other, too; but where a gradient follows a gradient (one_by_one)
 * it gives first, since there is one place for them. */
struct pipeline_move {
	int to, from;
	bool one_by_one;
};
/* done, next: NULL before the first and behind the last. */
struct pipeline_move pipeline_move(int stage, int stages, const struct pipeline_half *done,
				   const struct pipeline_half *next);

#endif
