/* SPDX-License-Identifier: MIT */
/* turn.c - the random Hadamard transform, by additions. */
#include "kernels/cpu/narrow/turn.h"

#include "kernels/formats/operand.h"

enum { LANES = 64 };

struct turning {
	float *out;
	const float *in;
	struct stored shape;
};

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
	const struct turning *t = args;
	size_t n = HADAMARD_SIZE, columns = t->shape.columns, ld = t->shape.ld, whole;

	(void)worker;
	if (t->shape.k_along_memory) {
		float *out = t->out + index * columns;
		const float *in = t->in + index * ld;
		whole = columns / n * n;
		for (size_t c = 0; c < whole; c += n)
			turn(out + c, in + c, 1, 1, 1);
		memcpy(out + whole, in + whole, (columns - whole) * sizeof(*out));
		return;
	}
	size_t row = index * n, rows = cpu_min(n, t->shape.rows - row);
	for (size_t c = 0; rows == n && c < columns; c += LANES)
		turn(t->out + row * columns + c, t->in + row * ld + c, columns, ld,
		     cpu_min(LANES, columns - c));
	for (size_t r = row; rows < n && r < t->shape.rows; r++)
		memcpy(t->out + r * columns, t->in + r * ld, columns * sizeof(float));
}

void cpu_turn(struct device *dev, float *out, const float *in, const struct stored *shape)
{
	const struct turning t = { out, in, *shape };

	pool_run(dev->pool,
		 shape->k_along_memory ? shape->rows : cpu_tasks(shape->rows, HADAMARD_SIZE),
		 turn_task, &t);
}
