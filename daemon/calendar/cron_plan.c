/* SPDX-License-Identifier: MIT */
/* cron_plan.c - goes through the ticks since the last look, by catch_up and overlap. */
#include "daemon/calendar/cron_plan.h"

#include <string.h>

enum {
	MINUTE_S = 60,
	SET_ANEW_S = 3 * 3600,
};

/* A full plan forgets its oldest tick. */
static void add(struct cron_plan *plan, int64_t tick_s)
{
	if (plan->count == CRON_MAX_TICKS) {
		memmove(plan->ticks, plan->ticks + 1, sizeof(plan->ticks) - sizeof(plan->ticks[0]));
		plan->count--;
		plan->passed_over++;
	}
	plan->ticks[plan->count++] = tick_s;
}

/* The newest one stands for all that were missed. */
static void replace(struct cron_plan *plan, int64_t tick_s)
{
	plan->passed_over += (int64_t)plan->count;
	plan->count = 0;
	add(plan, tick_s);
}

/* What is done with the ticks in a stretch of time. */
static void take(struct cron_plan *plan, const struct cron_expr *expr, const struct zone *zone,
		 enum cron_catch_up catch_up, int64_t after_s, int64_t until_s)
{
	int64_t t = after_s;

	while ((t = cron_expr_next(expr, zone, t, until_s + 1)) >= 0) {
		if (catch_up == CATCH_UP_ALL)
			add(plan, t);
		else if (catch_up == CATCH_UP_ONE)
			replace(plan, t);
		else
			plan->passed_over++;
	}
}

/* For the stretch that the clock jumped over. */
static enum cron_catch_up after_jump(const struct cron_expr *expr, int64_t jump_s)
{
	return jump_s < SET_ANEW_S && !expr->follows_clock ? CATCH_UP_ONE : CATCH_UP_NONE;
}

struct cron_plan cron_plan(const struct cron_expr *expr, const struct zone *zone,
			   enum cron_catch_up catch_up, const struct cron_span *span)
{
	struct cron_plan plan = { .seen_s = span->now_s };
	int64_t seen_s = span->seen_s, fresh_s = span->now_s - CRON_LATE_S, jumped_s;

	if (seen_s > span->now_s) {
		/* set back: what has run does not run again, unless the clock was plainly wrong */
		plan.seen_s = seen_s - span->now_s < SET_ANEW_S ? seen_s : span->now_s;
		return plan;
	}
	if (span->jump_s >= CRON_LATE_S) {
		jumped_s = span->now_s - span->jump_s > seen_s ? span->now_s - span->jump_s
							       : seen_s;
		take(&plan, expr, zone, catch_up, seen_s, jumped_s);
		take(&plan, expr, zone, after_jump(expr, span->jump_s), jumped_s,
		     span->now_s - MINUTE_S);
		seen_s = fresh_s = span->now_s - MINUTE_S;
	}
	if (fresh_s > seen_s) {
		take(&plan, expr, zone, catch_up, seen_s, fresh_s);
		seen_s = fresh_s;
	}
	/* with one to stand for all, a tick on time is that one */
	if (catch_up == CATCH_UP_ONE && plan.count > 0 &&
	    cron_expr_next(expr, zone, seen_s, span->now_s + 1) >= 0) {
		plan.passed_over += (int64_t)plan.count;
		plan.count = 0;
	}
	take(&plan, expr, zone, CATCH_UP_ALL, seen_s, span->now_s);
	return plan;
}
