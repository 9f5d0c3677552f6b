/* SPDX-License-Identifier: MIT */
/* quantize.c - an operand as the product sees it: numbers of few bits times their scales, in fp32.
 *
 * Emulation: the same codes and scales that a device with such products would be given, multiplied
 * and added in fp32. Scales that are powers of two make no further rounding.
 *
 * What shares a scale is a tile of the stored matrix. A task owns a band of whole tiles: rows of
 * them; where tiles are one column wide, LANES columns side by side, so that vectors go along the
 * rows in both cases.
 *
 * Integers whose scale does not change along the sum can stay integers: codes and scales apart. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/narrow/tell.h"
#include "kernels/cpu/narrow/turn.h"
#include "kernels/cpu/round.h"
#include "kernels/formats/scale.h"

enum { LANES = 64, TASKS_MAX = 256, RANDOM_PIECE = TELL_MOST, LINE = 16, ROWS_AHEAD = 8 };

struct quantizing {
	const struct operand_use *use;
	const struct operand_cast *cast;
	float *out;    /* NULL: codes are asked for, and nothing is turned */
	int8_t *codes; /* NULL: numbers are asked for */
	float *scales; /* with codes: of each row of what is not summed over */
	const float *in;
	size_t rows, columns, ld; /* of in; out and codes have ld = columns */
	size_t tile_rows, tile_columns;
	size_t band;  /* rows or columns a task owns */
	bool upright; /* tiles are one column wide: bands are columns */
	bool one_scale;
	struct scale shared; /* of all, when one_scale */
	float tensor;        /* S */
	struct grid grid;
	struct operand_stats *stats; /* one a task, or NULL */
	uint32_t *amax;              /* one a task */
};

/* --- the largest ------------------------------------------------------------------------------ */

/* Of the bits below the sign: NaN is larger than Inf, Inf than all numbers. */
CPU_INLINE uint32_t row_amax(const float *x, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
		most = bits > most ? bits : most;
	}
	return most;
}

static void amax_task(const void *args, size_t index, unsigned worker)
{
	const struct quantizing *q = args;
	size_t end = cpu_min(q->rows, (index + 1) * q->band);
	uint32_t most = 0;

	(void)worker;
	for (size_t r = index * q->band; r < end; r++) {
		uint32_t of_row = row_amax(q->in + r * q->ld, q->columns);
		most = of_row > most ? of_row : most;
	}
	q->amax[index] = most;
}

/* Rows a task takes when no tile says otherwise. */
static size_t plain_band(const struct quantizing *q, size_t multiple)
{
	size_t rows = cpu_rows_per_task(q->columns), least = cpu_tasks(q->rows, TASKS_MAX);

	rows = rows > least ? rows : least;
	return cpu_round_up(rows > 0 ? rows : 1, multiple);
}

static float tensor_amax(struct device *dev, struct quantizing *q)
{
	uint32_t amax[TASKS_MAX] = { 0 }, most = 0;

	q->band = plain_band(q, 1);
	q->amax = amax;
	size_t tasks = cpu_tasks(q->rows, q->band);
	pool_run(dev->pool, tasks, amax_task, q);
	for (size_t i = 0; i < tasks; i++)
		most = amax[i] > most ? amax[i] : most;
	return float_of(most);
}

/* --- rounding --------------------------------------------------------------------------------- */

/* `count` elements of a row under scales that repeat (step 0) or go along (step 1). */
CPU_INLINE void round_as(const struct quantizing *q, float *out, const float *in, size_t count,
			 const struct scale *s, size_t step, const uint32_t *random,
			 enum rounding rounding)
{
	const struct grid grid = q->grid;
	bool is_bf16 = q->cast->format.exponent == 8;

	if (is_bf16)
		for (size_t i = 0; i < count; i++)
			out[i] = float_of(round_to_bf16(in[i], rounding, random[i]));
	else
		for (size_t i = 0; i < count; i++)
			out[i] = round_to_grid(&grid, in[i] * s[i * step].multiply, rounding,
					       random[i]) *
				 s[i * step].scale;
}

static void round_piece(const struct quantizing *q, float *out, const float *in, size_t count,
			const struct scale *s, size_t step, uint64_t element)
{
	uint32_t random[RANDOM_PIECE] = { 0 };

	switch (q->cast->rounding) {
	case ROUND_STOCHASTIC:
		random_words(random, &q->use->random, element, count);
		round_as(q, out, in, count, s, step, random, ROUND_STOCHASTIC);
		break;
	case ROUND_TOWARD_ZERO:
		round_as(q, out, in, count, s, step, random, ROUND_TOWARD_ZERO);
		break;
	default:
		round_as(q, out, in, count, s, step, random, ROUND_NEAREST_EVEN);
	}
}

/* round_to_grid for an integer format, to nearest: adding the number leaves no place behind the
 * point. */
CPU_INLINE int8_t nearest_integer(const struct grid *g, float x)
{
	const float two23 = 12582912.0f; /* 1.5 2^23 */
	float y = x > g->max ? g->max : x;

	y = y < -g->max - 1 ? -g->max - 1 : y;
	y = x != x ? float_of(bits_of(g->nan) | (bits_of(x) & 0x80000000u)) : y;
	return (int8_t)(int32_t)((y + two23) - two23);
}

CPU_INLINE void codes_as(const struct quantizing *q, int8_t *codes, const float *in, size_t count,
			 const struct scale *s, size_t step, const uint32_t *random,
			 enum rounding rounding)
{
	const struct grid grid = q->grid;

	if (rounding == ROUND_NEAREST_EVEN)
		for (size_t i = 0; i < count; i++)
			codes[i] = nearest_integer(&grid, in[i] * s[i * step].multiply);
	else
		for (size_t i = 0; i < count; i++)
			codes[i] = (int8_t)round_to_grid(&grid, in[i] * s[i * step].multiply,
							 rounding, random[i]);
}

static void codes_piece(const struct quantizing *q, int8_t *codes, const float *in, size_t count,
			const struct scale *s, size_t step, uint64_t element)
{
	uint32_t random[RANDOM_PIECE];

	switch (q->cast->rounding) {
	case ROUND_STOCHASTIC:
		random_words(random, &q->use->random, element, count);
		codes_as(q, codes, in, count, s, step, random, ROUND_STOCHASTIC);
		break;
	case ROUND_TOWARD_ZERO:
		memset(random, 0, sizeof(random));
		codes_as(q, codes, in, count, s, step, random, ROUND_TOWARD_ZERO);
		break;
	default:
		if (step == 0)
			codes_as(q, codes, in, count, s, 0, NULL, ROUND_NEAREST_EVEN);
		else
			codes_as(q, codes, in, count, s, 1, NULL, ROUND_NEAREST_EVEN);
	}
}

static void codes_row(const struct quantizing *q, size_t row, size_t column, size_t count,
		      const struct scale *s, size_t step, struct operand_stats *stats)
{
	for (size_t at = 0; at < count; at += RANDOM_PIECE) {
		size_t more = cpu_min(RANDOM_PIECE, count - at), from = column + at;
		const struct scale *scale = s + at * step;
		int8_t *codes = q->codes + row * q->columns + from;
		const float *in = q->in + row * q->ld + from;
		codes_piece(q, codes, in, more, scale, step, row * q->columns + from);
		float values[RANDOM_PIECE];
		for (size_t i = 0; stats && i < more; i++)
			values[i] = (float)codes[i] * scale[i * step].scale;
		if (stats)
			cpu_tell(stats, q->grid.max, values, in, more, scale, step);
	}
}

static void round_row(const struct quantizing *q, size_t row, size_t column, size_t count,
		      const struct scale *s, size_t step, struct operand_stats *stats)
{
	if (q->codes) {
		codes_row(q, row, column, count, s, step, stats);
		return;
	}
	for (size_t at = 0; at < count; at += RANDOM_PIECE) {
		size_t more = cpu_min(RANDOM_PIECE, count - at), from = column + at;
		float *out = q->out + row * q->columns + from;
		const float *in = q->in + row * q->ld + from;
		/* out may be in: statistics need both */
		float before[RANDOM_PIECE];
		if (stats)
			memcpy(before, in, more * sizeof(*in));
		round_piece(q, out, in, more, s + at * step, step, row * q->columns + from);
		if (stats)
			cpu_tell(stats, q->grid.max, out, before, more, s + at * step, step);
	}
}

/* --- one tile --------------------------------------------------------------------------------- */

struct tile {
	size_t row, rows, column, columns;
};

/* Sum of squares of what a scale makes wrong. */
static double tile_error(const struct quantizing *q, const struct tile *t, const struct scale *s)
{
	double sum = 0;

	for (size_t r = t->row; r < t->row + t->rows; r++)
		for (size_t c = t->column; c < t->column + t->columns; c++) {
			float x = q->in[r * q->ld + c];
			double e = (double)(x - round_to_grid(&q->grid, x * s->multiply,
							      ROUND_NEAREST_EVEN, 0) *
							s->scale);
			sum += e * e;
		}
	return sum;
}

/* The better of two scales, as the fp4 format's largest and its second binade's. */
static struct scale tile_scale(const struct quantizing *q, const struct tile *t, uint32_t amax)
{
	struct scale six = operand_scale(q->cast, float_of(amax), q->tensor, q->grid.max);

	if (!q->cast->four_over_six)
		return six;
	struct scale four = operand_scale(q->cast, float_of(amax), q->tensor, 4);
	return tile_error(q, t, &four) < tile_error(q, t, &six) ? four : six;
}

static void quantize_tile(const struct quantizing *q, const struct tile *t,
			  struct operand_stats *stats)
{
	struct scale s = q->shared;
	uint32_t most = 0;

	if (!q->one_scale) {
		for (size_t r = t->row; r < t->row + t->rows; r++) {
			uint32_t bits = row_amax(q->in + r * q->ld + t->column, t->columns);
			most = bits > most ? bits : most;
		}
		s = tile_scale(q, t, most);
	}
	if (q->scales && !q->one_scale)
		q->scales[t->row] = s.scale;
	if (stats && !q->one_scale)
		operand_stats_scale(stats, s.scale);
	for (size_t r = t->row; r < t->row + t->rows; r++)
		round_row(q, r, t->column, t->columns, &s, 0, stats);
}

static void band_task(const void *args, size_t index, unsigned worker)
{
	const struct quantizing *q = args;
	struct operand_stats *stats = q->stats ? &q->stats[index] : NULL;
	size_t end = cpu_min(q->rows, (index + 1) * q->band);

	(void)worker;
	for (size_t r = index * q->band; r < end; r += q->tile_rows)
		for (size_t c = 0; c < q->columns; c += q->tile_columns) {
			const struct tile t = { r, cpu_min(q->tile_rows, end - r), c,
						cpu_min(q->tile_columns, q->columns - c) };
			quantize_tile(q, &t, stats);
		}
}

/* --- tiles of one column, side by side -------------------------------------------------------- */

/* Of each of the lanes; ahead of it the rows that come next, each on a page of its own. */
CPU_INLINE void lanes_amax(uint32_t *restrict most, const float *x, size_t ld, size_t rows,
			   size_t count)
{
	for (size_t r = 0; r < rows; r++, x += ld) {
		for (size_t i = 0; i < count; i += LINE)
			__builtin_prefetch(x + ROWS_AHEAD * ld + i);
		for (size_t i = 0; i < count; i++) {
			uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
			most[i] = bits > most[i] ? bits : most[i];
		}
	}
}

/* Codes to nearest of LANES columns; constants, so that all of it is vectors. */
static void lanes_codes(const struct quantizing *q, const struct tile *lanes, const struct scale *s)
{
	const struct grid grid = q->grid;
	float multiply[LANES];

	for (size_t i = 0; i < LANES; i++)
		multiply[i] = s[i].multiply;
	for (size_t r = lanes->row; r < lanes->row + lanes->rows; r++) {
		const float *restrict in = q->in + r * q->ld + lanes->column;
		int8_t *restrict codes = q->codes + r * q->columns + lanes->column;
		for (size_t i = 0; i < LANES; i++)
			codes[i] = nearest_integer(&grid, in[i] * multiply[i]);
	}
}

static void quantize_lanes(const struct quantizing *q, const struct tile *lanes,
			   struct operand_stats *stats)
{
	const float *x = q->in + lanes->row * q->ld + lanes->column;
	uint32_t most[LANES] = { 0 };
	struct scale s[LANES];

	if (lanes->columns == LANES)
		lanes_amax(most, x, q->ld, lanes->rows, LANES);
	else
		lanes_amax(most, x, q->ld, lanes->rows, lanes->columns);
	for (size_t i = 0; i < lanes->columns; i++) {
		const struct tile t = { lanes->row, lanes->rows, lanes->column + i, 1 };
		s[i] = tile_scale(q, &t, most[i]);
		if (q->scales)
			q->scales[t.column] = s[i].scale;
		if (stats)
			operand_stats_scale(stats, s[i].scale);
	}
	if (q->codes && !stats && lanes->columns == LANES &&
	    q->cast->rounding == ROUND_NEAREST_EVEN) {
		lanes_codes(q, lanes, s);
		return;
	}
	for (size_t r = lanes->row; r < lanes->row + lanes->rows; r++)
		round_row(q, r, lanes->column, lanes->columns, s, 1, stats);
}

static void lanes_task(const void *args, size_t index, unsigned worker)
{
	const struct quantizing *q = args;
	struct operand_stats *stats = q->stats ? &q->stats[index] : NULL;
	size_t first = index * q->band, end = cpu_min(q->columns, first + q->band);

	(void)worker;
	for (size_t c = first; c < end; c += LANES)
		for (size_t r = 0; r < q->rows; r += q->tile_rows) {
			const struct tile t = { r, cpu_min(q->tile_rows, q->rows - r), c,
						cpu_min(LANES, end - c) };
			quantize_lanes(q, &t, stats);
		}
}

/* --- all of it -------------------------------------------------------------------------------- */

static void run(struct device *dev, struct quantizing *q)
{
	size_t tasks;

	if (q->upright) {
		size_t least = cpu_tasks(q->columns, TASKS_MAX);
		q->band = cpu_round_up(least > LANES ? least : LANES, LANES);
		tasks = cpu_tasks(q->columns, q->band);
	} else {
		q->band = plain_band(q, q->tile_rows);
		tasks = cpu_tasks(q->rows, q->band);
	}
	/* without memory there are no statistics */
	q->stats = q->use->stats && tasks > 0 ? calloc(tasks, sizeof(*q->stats)) : NULL;
	pool_run(dev->pool, tasks, q->upright ? lanes_task : band_task, q);
	for (size_t i = 0; q->stats && i < tasks; i++)
		operand_stats_add(q->use->stats, &q->stats[i]);
	if (q->stats && q->one_scale)
		operand_stats_scale(q->use->stats, q->shared.scale);
	free(q->stats);
}

static bool is_whole_tensor(const struct operand_cast *c)
{
	return c->scale == SCALE_NONE || (c->along == OPERAND_ALL && c->across == OPERAND_ALL);
}

static void quantize(struct device *dev, struct quantizing *q)
{
	const struct operand_cast *c = q->cast;

	if (c->hadamard) {
		const struct stored shape = { q->rows, q->columns, q->ld, !q->upright };
		cpu_turn(dev, q->out, q->in, &shape);
		q->in = q->out;
		q->ld = q->columns;
	}
	size_t along = c->along ? c->along : (q->upright ? q->rows : q->columns);
	size_t across = c->across ? c->across : (q->upright ? q->columns : q->rows);
	q->tile_rows = q->upright ? along : across;
	q->tile_columns = q->upright ? across : along;
	q->one_scale = is_whole_tensor(c);
	if (q->one_scale && c->scale != SCALE_NONE) {
		float amax = delayed_amax(q->use->history, c->history, q->use->notes,
					  tensor_amax(dev, q));
		q->shared = operand_scale(c, amax, 0, q->grid.max);
	} else if (c->scale == SCALE_E4M3) {
		q->tensor = operand_tensor_scale(c, tensor_amax(dev, q));
	} else if (q->one_scale) {
		q->shared = (struct scale){ 1, 1 };
	}
	for (size_t i = 0; q->scales && q->one_scale && i < (q->upright ? q->columns : q->rows);
	     i++)
		q->scales[i] = q->shared.scale;
	if (q->one_scale)
		q->tile_rows = 1, q->tile_columns = q->columns;
	q->upright = !q->one_scale && q->tile_columns == 1;
	run(dev, q);
}

static struct quantizing quantizing_of(const float *in, const struct stored *shape,
				       const struct operand_use *use)
{
	const struct format_cast how = { use->cast->rounding, true };

	return (struct quantizing){ .use = use,
				    .cast = use->cast,
				    .in = in,
				    .rows = shape->rows,
				    .columns = shape->columns,
				    .ld = shape->ld,
				    .upright = !shape->k_along_memory,
				    .grid = grid_of(&use->cast->format, &how) };
}

void cpu_quantize(struct device *dev, float *out, const float *in, const struct stored *shape,
		  const struct operand_use *use)
{
	struct quantizing q = quantizing_of(in, shape, use);

	q.out = out;
	quantize(dev, &q);
}

bool cpu_is_integer(const struct operand_use *use)
{
	const struct operand_cast *c = use ? use->cast : NULL;

	return c && c->format.kind == FORMAT_INTEGER && c->format.bits <= 8 &&
	       c->scale != SCALE_NONE && c->along == OPERAND_ALL &&
	       (c->across == OPERAND_ALL || c->across == 1);
}

void cpu_quantize_integer(struct device *dev, const struct cpu_integers *to, const float *in,
			  const struct stored *shape, const struct operand_use *use)
{
	struct quantizing q = quantizing_of(in, shape, use);

	q.codes = to->codes;
	q.scales = to->scales;
	q.out = to->turned;
	quantize(dev, &q);
}
