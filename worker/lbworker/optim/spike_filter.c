/* SPDX-License-Identifier: MIT */
/* spike_filter.c - usual = usual + (norm - usual)/min(n, MEMORY): a plain mean at first, then one
 * that forgets. Spikes are judged once WARM_UP steps have been seen, and do not enter the mean. */
#include "worker/lbworker/optim/spike_filter.h"

#include <math.h>

enum { MEMORY = 50, WARM_UP = 20 };

double spike_filter_limit(const struct spike_filter *g, const struct spike_rules *rules)
{
	return rules->spike_factor > 0 && g->judged >= WARM_UP ? rules->spike_factor * g->usual_norm
							       : INFINITY;
}

enum step_verdict spike_filter_judge(struct spike_filter *g, const struct spike_rules *rules,
				     double loss, double norm)
{
	if (isfinite(loss) && isfinite(norm) && !(norm > spike_filter_limit(g, rules))) {
		g->judged++;
		g->usual_norm += (norm - g->usual_norm) /
				 (double)(g->judged < MEMORY ? g->judged : MEMORY);
		g->in_a_row = 0;
		return STEP_GO;
	}
	if (g->in_a_row >= rules->max_skips)
		return STEP_DIVERGED;
	g->skipped++;
	g->in_a_row++;
	return STEP_SKIP;
}
