/* SPDX-License-Identifier: MIT */
/* guard.c - usual = usual + (norm - usual)/min(n, MEMORY): a plain mean at first, then one that
 * forgets. Spikes are judged once WARM_UP steps have been seen, and do not enter the mean. */
#include "worker/lbworker/guard.h"

#include <math.h>
#include <stdbool.h>

enum { MEMORY = 50, WARM_UP = 20 };

static bool is_spike(const struct guard *g, const struct guard_rules *rules, double norm)
{
	return rules->spike_factor > 0 && g->judged >= WARM_UP &&
	       norm > rules->spike_factor * g->usual_norm;
}

enum guard_verdict guard_judge(struct guard *g, const struct guard_rules *rules, double loss,
			       double norm)
{
	if (isfinite(loss) && isfinite(norm) && !is_spike(g, rules, norm)) {
		g->judged++;
		g->usual_norm += (norm - g->usual_norm) /
				 (double)(g->judged < MEMORY ? g->judged : MEMORY);
		g->in_a_row = 0;
		return GUARD_GO;
	}
	if (g->in_a_row >= rules->max_skips)
		return GUARD_DIVERGED;
	g->skipped++;
	g->in_a_row++;
	return GUARD_SKIP;
}
