/* SPDX-License-Identifier: MIT */
/* climate.c - how rough a world is. Each world has some faults and lacks others: what one fault
 * hides the absence of it shows. */
#include "tests/sim/sim.h"

/* Never in a third of all worlds, else around `usual` days. */
static double mean_days(struct rng *rng, double usual)
{
	double factor = 0.25 + 3 * rng_real(rng) * rng_real(rng);

	return rng_chance(rng, 0.33) ? 0 : usual * factor * DAY;
}

static double chance(struct rng *rng, double most)
{
	return rng_chance(rng, 0.33) ? 0 : most * rng_real(rng) * rng_real(rng);
}

void climate_draw(struct climate *w, struct rng *rng)
{
	bool has_accounting = rng_chance(rng, 0.5);

	*w = (struct climate){
		.has_accounting = has_accounting,
		.controller_crash = mean_days(rng, 1),
		.controller_freeze = mean_days(rng, 1.5),
		.cold_start = mean_days(rng, 10),
		.node_fault = mean_days(rng, 0.7),
		.preemption = mean_days(rng, 1),
		.admin_cancel = mean_days(rng, 8),
		.admin_requeue = mean_days(rng, 4),
		.lbrun_kill = mean_days(rng, 3),
		.daemon_crash = mean_days(rng, 2),
		.clock_jump = mean_days(rng, 1),
		.disk_full = mean_days(rng, 3),
		.broken_node = mean_days(rng, 2),
		.outage = mean_days(rng, 1),
		.cut = mean_days(rng, 0.2),
		.bad_checkpoint = chance(rng, 0.1),
		.lost_search = chance(rng, 0.1),
		.forgetting = chance(rng, 0.1),
		.crash_point = chance(rng, 0.006),
		.lost_answer = chance(rng, 0.05),
		.late_effect = chance(rng, 0.05),
		.no_effect = chance(rng, 0.05),
		.refusal = chance(rng, 0.005),
		.early_failure = chance(rng, 0.2),
		.failure = chance(rng, 0.04),
		.hang = chance(rng, 0.02),
		.lost_signal = chance(rng, 0.3),
		.no_record = chance(rng, 0.05),
		.tick_ms = rng_range(rng, 3, 9) * HOUR,
		.queue_ms = rng_range(rng, 30, 480) * SECOND,
		.start_crash = chance(rng, 0.2),
		.task_cancel = mean_days(rng, 1),
		.daemon_freeze = mean_days(rng, 1),
	};
}

/* A scheduler inside lbd loses no call, and nobody but lbd has a hand in it. */
void climate_local(struct climate *w, struct rng *rng)
{
	*w = (struct climate){
		.lbrun_kill = w->lbrun_kill,
		.daemon_crash = w->daemon_crash,
		.daemon_freeze = w->daemon_freeze,
		.clock_jump = w->clock_jump,
		.disk_full = w->disk_full,
		.bad_checkpoint = w->bad_checkpoint,
		.lost_search = w->lost_search,
		.reboot = mean_days(rng, 3),
		.crash_point = w->crash_point,
		.refusal = w->refusal,
		.early_failure = w->early_failure,
		.failure = w->failure,
		.hang = w->hang,
		.no_record = w->no_record,
		.tick_ms = w->tick_ms,
		.queue_ms = w->queue_ms,
	};
}

void climate_calm(struct climate *w)
{
	*w = (struct climate){ .tick_ms = HOUR / 2, .queue_ms = 5 * MINUTE };
}
