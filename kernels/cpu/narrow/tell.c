/* SPDX-License-Identifier: MIT */
/* tell.c - sums in lanes, so that they are vectors. */
#include "kernels/cpu/narrow/tell.h"

#include <math.h>

#include "kernels/cpu/round.h"

/* Of a vector's lanes, added up in an order that does not depend on how wide it is. */
struct lane_stats {
	double error[CPU_LANES], power[CPU_LANES];
	float amax[CPU_LANES];
	uint32_t saturated[CPU_LANES], zeroed[CPU_LANES];
};

/* Its binade, behind all others where it is zero. */
CPU_INLINE uint8_t binade_of(float scaled)
{
	int at = (int)(bits_of(scaled) >> 23) - 127 - BINADE_FIRST;

	at = at < 0 ? 0 : at;
	at = at < BINADES ? at : BINADES - 1;
	return (uint8_t)(scaled > 0 ? at : BINADES);
}

/* Lane `lane` takes a number, what it was scaled by and what it became. */
CPU_INLINE uint8_t tell_lane(struct lane_stats *l, size_t lane, float max, float in, float out,
			     float multiply)
{
	float a = fabsf(in), scaled = a * multiply;
	double error = (double)in - (double)out;

	l->error[lane] += error * error;
	l->power[lane] += (double)a * (double)a;
	l->amax[lane] = a > l->amax[lane] ? a : l->amax[lane];
	l->saturated[lane] += scaled > max * 1.000001f; /* not the largest itself */
	l->zeroed[lane] += (a > 0) & (out == 0);
	return binade_of(scaled);
}

/* In four tables, so that neighbours of one binade do not wait for each other. */
static void count_binades(struct operand_stats *stats, const uint8_t *binade, size_t count)
{
	uint16_t table[4][BINADES + 1] = { 0 };

	for (size_t i = 0; i < count; i++)
		table[i % 4][binade[i]]++;
	for (size_t b = 0; b < BINADES; b++)
		stats->binade[b] += (uint64_t)table[0][b] + table[1][b] + table[2][b] + table[3][b];
}

void cpu_tell(struct operand_stats *stats, float max, const float *out, const float *in,
	      size_t count, const struct scale *s, size_t step)
{
	struct lane_stats l = { 0 };
	uint8_t binade[TELL_MOST];
	float multiply[TELL_MOST];
	size_t whole = count / CPU_LANES * CPU_LANES;

	for (size_t i = 0; i < count; i++)
		multiply[i] = s[i * step].multiply;
	for (size_t i = 0; i < whole; i += CPU_LANES)
		for (size_t j = 0; j < CPU_LANES; j++)
			binade[i + j] = tell_lane(&l, j, max, in[i + j], out[i + j],
						  multiply[i + j]);
	for (size_t i = whole; i < count; i++)
		binade[i] = tell_lane(&l, i - whole, max, in[i], out[i], multiply[i]);
	for (size_t j = 0; j < CPU_LANES; j++) {
		stats->error += l.error[j];
		stats->power += l.power[j];
		stats->saturated += l.saturated[j];
		stats->zeroed += l.zeroed[j];
		stats->amax = l.amax[j] > stats->amax ? l.amax[j] : stats->amax;
	}
	count_binades(stats, binade, count);
	stats->count += count;
}
