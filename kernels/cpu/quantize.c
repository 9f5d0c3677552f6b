/* SPDX-License-Identifier: MIT */
/* quantize.c - an operand as the product sees it: numbers of few bits times their scales, in fp32.
 *
 * Emulation: the same codes and scales that a device with such products would be given, multiplied
 * and added in fp32. Scales that are powers of two make no further rounding.
 *
 * What shares a scale is a tile of the stored matrix. A task owns a band of whole tiles: rows of
 * them; where tiles are one column wide, LANES columns side by side, so that vectors go along the
 * rows in both cases. */
#include "kernels/cpu/round.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/formats/operand.h"

enum { LANES = 64, TASKS_MAX = 256, RANDOM_PIECE = 256 };

struct quantizing {
	const struct operand_use *use;
	const struct operand_cast *cast;
	float *out;
	const float *in;
	size_t rows, columns, ld; /* of in; out has ld = columns */
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
	return cpu_tasks(rows, multiple) * multiple;
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

/* Delayed: notes this one's, and answers with the largest of the past; without a past, with this. */
static float delayed(const struct operand_use *use, float amax)
{
	const struct amax_history *h = use->history;
	float most = 0;

	if (use->newest && (amax > *use->newest || isnan(amax)))
		*use->newest = amax;
	if (!h || use->cast->history == 0)
		return amax;
	for (uint32_t i = 0; i < h->filled; i++)
		most = h->past[i] > most ? h->past[i] : most;
	return h->filled > 0 ? most : amax;
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

static void count_binade(struct operand_stats *stats, float scaled)
{
	int at = (int)(bits_of(scaled) >> 23) - 127 - BINADE_FIRST;

	at = at < 0 ? 0 : at;
	stats->binade[at < BINADES ? at : BINADES - 1] += scaled > 0;
}

static void tell(struct operand_stats *stats, const struct quantizing *q, const float *out,
		 const float *in, size_t count, const struct scale *s, size_t step)
{
	for (size_t i = 0; i < count; i++) {
		float a = fabsf(in[i]), scaled = a * s[i * step].multiply;
		double error = (double)in[i] - (double)out[i];
		stats->saturated += scaled > q->grid.max * 1.000001f; /* not the largest itself */
		stats->zeroed += a > 0 && out[i] == 0;
		stats->error += error * error;
		stats->power += (double)a * (double)a;
		stats->amax = a > stats->amax ? a : stats->amax;
		count_binade(stats, scaled);
	}
	stats->count += count;
}

static void tell_scale(struct operand_stats *stats, const struct scale *s)
{
	if (s->scale > stats->most_scale)
		stats->most_scale = s->scale;
	if (stats->scales == 0 || s->scale < stats->least_scale)
		stats->least_scale = s->scale;
	stats->scales++;
}

static void round_row(const struct quantizing *q, size_t row, size_t column, size_t count,
		      const struct scale *s, size_t step, struct operand_stats *stats)
{
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
			tell(stats, q, out, before, more, s + at * step, step);
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
	if (stats && !q->one_scale)
		tell_scale(stats, &s);
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

static void quantize_lanes(const struct quantizing *q, const struct tile *lanes,
			   struct operand_stats *stats)
{
	uint32_t most[LANES] = { 0 };
	struct scale s[LANES];

	for (size_t r = lanes->row; r < lanes->row + lanes->rows; r++)
		for (size_t i = 0; i < lanes->columns; i++) {
			uint32_t bits = bits_of(q->in[r * q->ld + lanes->column + i]) & 0x7fffffffu;
			most[i] = bits > most[i] ? bits : most[i];
		}
	for (size_t i = 0; i < lanes->columns; i++) {
		const struct tile t = { lanes->row, lanes->rows, lanes->column + i, 1 };
		s[i] = tile_scale(q, &t, most[i]);
		if (stats)
			tell_scale(stats, &s[i]);
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

/* --- the random Hadamard transform ------------------------------------------------------------ */

/* Fixed signs of D, drawn once by a coin. */
static const float signs[HADAMARD_SIZE] = {
	1, -1, -1, 1, -1, 1, 1, 1, -1, -1, 1, -1, 1, -1, -1, 1
};

/* H D / 4 on 16 elements `step` apart, for `lanes` neighbours at once. What is left of the axis
 * behind the last whole 16 stays. */
static void turn(float *out, const float *in, size_t step_out, size_t step_in, size_t lanes)
{
	float a[HADAMARD_SIZE][LANES];

	for (size_t i = 0; i < HADAMARD_SIZE; i++)
		for (size_t j = 0; j < lanes; j++)
			a[i][j] = in[i * step_in + j] * (signs[i] * 0.25f);
	for (size_t half = 1; half < HADAMARD_SIZE; half *= 2)
		for (size_t i = 0; i < HADAMARD_SIZE; i++)
			for (size_t j = 0; (i & half) == 0 && j < lanes; j++) {
				float x = a[i][j], y = a[i + half][j];
				a[i][j] = x + y;
				a[i + half][j] = x - y;
			}
	for (size_t i = 0; i < HADAMARD_SIZE; i++)
		for (size_t j = 0; j < lanes; j++)
			out[i * step_out + j] = a[i][j];
}

/* Rows are the axis that is summed over: 16 of them a task; or columns are, a row a task. */
static void turn_task(const void *args, size_t index, unsigned worker)
{
	const struct quantizing *q = args;
	size_t n = HADAMARD_SIZE, whole;

	(void)worker;
	if (!q->upright) {
		whole = q->columns / n * n;
		for (size_t c = 0; c < whole; c += n)
			turn(q->out + index * q->columns + c, q->in + index * q->ld + c, 1, 1, 1);
		for (size_t c = whole; c < q->columns; c++)
			q->out[index * q->columns + c] = q->in[index * q->ld + c];
		return;
	}
	size_t row = index * n, rows = cpu_min(n, q->rows - row);
	for (size_t c = 0; rows == n && c < q->columns; c += LANES)
		turn(q->out + row * q->columns + c, q->in + row * q->ld + c, q->columns, q->ld,
		     cpu_min(LANES, q->columns - c));
	for (size_t r = row; rows < n && r < q->rows; r++)
		memcpy(q->out + r * q->columns, q->in + r * q->ld, q->columns * sizeof(float));
}

/* --- all of it -------------------------------------------------------------------------------- */

static void add_stats(struct operand_stats *to, const struct operand_stats *of)
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

static void run(struct device *dev, struct quantizing *q)
{
	size_t tasks;

	if (q->upright) {
		size_t least = cpu_tasks(q->columns, TASKS_MAX);
		q->band = cpu_tasks(least > LANES ? least : LANES, LANES) * LANES;
		tasks = cpu_tasks(q->columns, q->band);
	} else {
		q->band = plain_band(q, q->tile_rows);
		tasks = cpu_tasks(q->rows, q->band);
	}
	/* without memory there are no statistics */
	q->stats = q->use->stats ? calloc(tasks, sizeof(*q->stats)) : NULL;
	pool_run(dev->pool, tasks, q->upright ? lanes_task : band_task, q);
	for (size_t i = 0; q->stats && i < tasks; i++)
		add_stats(q->use->stats, &q->stats[i]);
	if (q->stats && q->one_scale)
		tell_scale(q->use->stats, &q->shared);
	free(q->stats);
}

static bool is_whole_tensor(const struct operand_cast *c)
{
	return c->scale == SCALE_NONE || (c->along == OPERAND_ALL && c->across == OPERAND_ALL);
}

void cpu_quantize(struct device *dev, float *out, const float *in, const struct stored *shape,
		  const struct operand_use *use)
{
	const struct operand_cast *c = use->cast;
	const struct format_cast how = { c->rounding, true };
	struct quantizing q = { .use = use,
				.cast = c,
				.out = out,
				.in = in,
				.rows = shape->rows,
				.columns = shape->columns,
				.ld = shape->ld,
				.upright = !shape->k_along_memory,
				.grid = grid_of(&c->format, &how) };

	if (c->hadamard) {
		pool_run(dev->pool, q.upright ? cpu_tasks(q.rows, HADAMARD_SIZE) : q.rows,
			 turn_task, &q);
		q.in = out;
		q.ld = q.columns;
	}
	size_t along = c->along ? c->along : (q.upright ? q.rows : q.columns);
	size_t across = c->across ? c->across : (q.upright ? q.columns : q.rows);
	q.tile_rows = q.upright ? along : across;
	q.tile_columns = q.upright ? across : along;
	q.one_scale = is_whole_tensor(c);
	if (q.one_scale && c->scale != SCALE_NONE) {
		float amax = delayed(use, tensor_amax(dev, &q));
		q.shared = operand_scale(c, amax, 0, q.grid.max);
	} else if (c->scale == SCALE_E4M3) {
		q.tensor = operand_tensor_scale(c, tensor_amax(dev, &q));
	} else if (q.one_scale) {
		q.shared = (struct scale){ 1, 1 };
	}
	if (q.one_scale)
		q.tile_rows = 1, q.tile_columns = q.columns;
	q.upright = !q.one_scale && q.tile_columns == 1;
	run(dev, &q);
}
