/* SPDX-License-Identifier: MIT */
/* asking.c - the interval between saves, measured as the trainer goes. */
#include "worker/lbrun/checkpoint/asking.h"

#include "common/checkpoint/interval.h"

/* Writing may cost the trainer nothing and is no reason to keep disks busy all the time. */
enum { FIRST_MS = 60 * 1000, WRITING_SHARE = 10, UNANSWERED_MAX = 3, PATIENCE_MS = 10 * 60 * 1000 };

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void asking_begin(struct asking *a, int64_t now_ms)
{
	a->since_ms = now_ms;
	a->step = a->asked_ms = a->phase_ms = -1;
	a->unanswered = 0;
}

static void add_cost(struct asking *a, int64_t ms)
{
	a->spent_ms += ms;
	a->saves++;
}

void asking_phase(struct asking *a, bool is_checkpoint, int64_t now_ms)
{
	if (is_checkpoint && a->phase_ms < 0)
		a->phase_ms = now_ms;
	if (is_checkpoint || a->phase_ms < 0)
		return;
	add_cost(a, now_ms - a->phase_ms);
	a->phase_ms = -1;
}

void asking_saved(struct asking *a, int64_t step, int64_t now_ms)
{
	if (step >= 0 && step <= a->step)
		return;
	a->step = step;
	if (a->asked_ms >= 0)
		a->write_ms = now_ms - a->asked_ms;
	/* who names no phases is held to stand still until it is written */
	if (a->asked_ms >= 0 && a->phase_ms < 0 && a->saves == 0)
		add_cost(a, a->write_ms);
	a->asked_ms = -1;
	a->since_ms = now_ms;
	a->unanswered = 0;
}

static int64_t best_ms(const struct asking *a)
{
	double cost_s = (double)a->spent_ms / 1000 / (double)most(a->saves, 1);

	if (a->saves == 0)
		return least(FIRST_MS, a->mtbf_ms / 10);
	return most((int64_t)(save_interval_s(cost_s, (double)a->mtbf_ms / 1000) * 1000),
		    WRITING_SHARE * a->write_ms);
}

/* One that is asked for, or being written, is waited for. */
int64_t asking_due_ms(const struct asking *a)
{
	int64_t every_ms = a->every_ms == SAVE_EVERY_AUTO ? best_ms(a) : a->every_ms;

	if (a->every_ms == 0 || a->unanswered > UNANSWERED_MAX || a->phase_ms >= 0)
		return INT64_MAX;
	return a->asked_ms >= 0 ? a->asked_ms + most(every_ms, PATIENCE_MS)
				: a->since_ms + every_ms;
}

bool asking_asked(struct asking *a, int64_t now_ms)
{
	if (a->unanswered < UNANSWERED_MAX)
		a->asked_ms = now_ms;
	return ++a->unanswered <= UNANSWERED_MAX;
}
