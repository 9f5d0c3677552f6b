/* SPDX-License-Identifier: MIT */
/* guard.c - usual = usual + (norm - usual)/min(n, MEMORY): a plain mean at first, then one that
 * forgets. Spikes are judged once WARM_UP steps have been seen, and do not enter the mean. */
#include "worker/lbworker/guard.h"

#include <math.h>

enum { MEMORY = 50, WARM_UP = 20 };

double guard_limit(const struct guard *g, const struct guard_rules *rules)
{
	return rules->spike_factor > 0 && g->judged >= WARM_UP
		       ? rules->spike_factor * g->usual_norm : INFINITY;
}

enum guard_verdict guard_judge(struct guard *g, const struct guard_rules *rules, double loss,
			       double norm)
{
	if (isfinite(loss) && isfinite(norm) && !(norm > guard_limit(g, rules))) {
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
