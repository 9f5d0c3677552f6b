/* SPDX-License-Identifier: MIT */
/* rate.c - troubles and node-days of half a year, each counting less the longer ago it was. */
#include "daemon/base/rate.h"

#include "common/base/clock.h"
#include "common/run/hosts.h"
#include "common/run/run_state.h"

static const int64_t day_ms = 86400 * 1000;
enum {
	SEEN_DAYS = 180,
	SHARE = 10, /* years of launches take seconds: a tenth of the time at most */
};

struct sum {
	struct troubles *out;
	int64_t now_ms;
};

static int add(const struct ledger_past_launch *l, void *arg)
{
	struct sum *sum = arg;
	json_t *nodes = hosts_expand(l->nodes);
	double fades = trouble_fades((double)(sum->now_ms - l->ended_ms));
	double days = (double)(l->ended_ms - l->started_ms) / (double)day_ms;

	sum->out->count += cause_is_trouble(l->cause) ? fades : 0;
	if (days > 0)
		sum->out->node_days += days * (double)json_array_size(nodes) * fades;
	json_decref(nodes);
	return 0;
}

const struct troubles *rate_of_troubles(struct lbd *lbd, int64_t max_age_ms)
{
	struct troubles now = { 0 };
	struct sum sum = { &now, clock_wall_ms() };
	int64_t age_ms = sum.now_ms - lbd->troubles_ms, begun_ms = clock_mono_ms();
	int64_t least_ms = SHARE * lbd->troubles_took_ms;

	if (lbd->troubles_ms > 0 && age_ms >= 0 && (age_ms < max_age_ms || age_ms < least_ms))
		return &lbd->troubles;
	if (ledger_launch_each_since(lbd->ledger, sum.now_ms - SEEN_DAYS * day_ms, add, &sum,
				     NULL) == 0)
		lbd->troubles = now;
	lbd->troubles_ms = sum.now_ms;
	lbd->troubles_took_ms = clock_mono_ms() - begun_ms;
	return &lbd->troubles;
}
