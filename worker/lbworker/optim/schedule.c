/* SPDX-License-Identifier: MIT */
/* schedule.c - lr(step) = peak * { step/warmup | 1 | min + (1 - min) curve(progress) }. */
#include "worker/lbworker/optim/schedule.h"

#include <math.h>

static double linear(double progress)
{
	return 1.0 - progress;
}

static double cosine(double progress)
{
	return 0.5 * (1.0 + cos(3.14159265358979323846 * progress));
}

static double square_root(double progress)
{
	return 1.0 - sqrt(progress);
}

static double (*const curves[SCHEDULE_DECAY_COUNT])(double) = {
	[SCHEDULE_LINEAR] = linear,
	[SCHEDULE_COSINE] = cosine,
	[SCHEDULE_SQRT] = square_root,
};

double schedule_lr(const struct schedule *s, int64_t step)
{
	if (step <= s->warmup_steps)
		return s->peak * (double)step / (double)s->warmup_steps;
	int64_t decaying = s->steps - s->warmup_steps;
	if (s->decay_ratio >= 0)
		decaying = llrint(s->decay_ratio * (double)s->steps);
	int64_t done = step - (s->steps + 1 - decaying);
	if (decaying <= 0 || done <= 0)
		return s->peak;
	double progress = done > decaying ? 1.0 : (double)done / (double)decaying;
	return s->peak * (s->min_factor + (1.0 - s->min_factor) * curves[s->decay](progress));
}
