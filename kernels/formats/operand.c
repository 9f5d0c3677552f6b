/* SPDX-License-Identifier: MIT */
/* operand.c - scales of a cast, and what became of an operand. */
#include "kernels/formats/scale.h"

struct scale_rule scale_rule_of(const struct operand_cast *c)
{
	return (struct scale_rule){ .kind = c->scale,
				    .emax = format_emax(&c->format),
				    .mantissa = c->format.mantissa,
				    .max = format_max(&c->format),
				    .four_over_six = c->four_over_six };
}

struct scale operand_scale(const struct operand_cast *c, float amax, float tensor, float most)
{
	const struct scale_rule rule = scale_rule_of(c);

	return scale_by_rule(&rule, amax, tensor, most);
}

float operand_tensor_scale(const struct operand_cast *c, float amax)
{
	const struct scale_rule rule = scale_rule_of(c);

	return tensor_scale_by_rule(&rule, amax);
}

void operand_stats_scale(struct operand_stats *stats, float scale)
{
	if (scale > stats->most_scale)
		stats->most_scale = scale;
	if (stats->scales == 0 || scale < stats->least_scale)
		stats->least_scale = scale;
	stats->scales++;
}

void operand_stats_add(struct operand_stats *to, const struct operand_stats *of)
{
	bool first = to->scales == 0;

	to->count += of->count;
	to->saturated += of->saturated;
	to->zeroed += of->zeroed;
	to->error += of->error;
	to->power += of->power;
	to->amax = of->amax > to->amax ? of->amax : to->amax;
	if (of->scales > 0 && (first || of->least_scale < to->least_scale))
		to->least_scale = of->least_scale;
	if (of->most_scale > to->most_scale)
		to->most_scale = of->most_scale;
	to->scales += of->scales;
	for (int i = 0; i < BINADES; i++)
		to->binade[i] += of->binade[i];
}
