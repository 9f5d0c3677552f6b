/* SPDX-License-Identifier: MIT */
/* interval.c - a rate with a prior, and Daly's formula. */
#include "common/checkpoint/interval.h"

#include <math.h>

static const double half_life_ms = 30 * 86400e3, day_s = 86400;

double trouble_fades(double age_ms)
{
	return exp2(-(age_ms > 0 ? age_ms : 0) / half_life_ms);
}

double trouble_mtbf_s(const struct troubles *seen, double nodes)
{
	double node_days = seen->node_days + 1 / TROUBLES_PER_NODE_DAY;

	return node_days / (seen->count + 1) / (nodes >= 1 ? nodes : 1) * day_s;
}

double save_interval_s(double save_s, double mtbf_s)
{
	double x = save_s / (2 * mtbf_s);

	if (x >= 1)
		return mtbf_s;
	return sqrt(2 * save_s * mtbf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}
