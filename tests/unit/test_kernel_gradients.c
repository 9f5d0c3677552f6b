/* SPDX-License-Identifier: MIT */
/* test_kernel_gradients.c - gradients of each operation of the CPU backend against finite
 * differences of its forward pass. */
#include <math.h>

#include "tests/unit/cpu_device.h"

/* An operation as y = f(x), and dx for dy = c: f and its gradient get x whole. */
struct differentiable {
	const char *name;
	size_t inputs, outputs;
	void (*forward)(struct device *dev, float *y, const float *x);
	void (*backward)(struct device *dev, float *dx, const float *c, const float *x);
};

static double weighted(struct device *dev, const struct differentiable *op, const float *x,
		       const float *c, float *y)
{
	double sum = 0;

	op->forward(dev, y, x);
	for (size_t i = 0; i < op->outputs; i++)
		sum += (double)y[i] * (double)c[i];
	return sum;
}

/* d(sum c y)/dx_i by a central difference of the fp32 forward pass. */
static void check_differences(struct device *dev, const struct differentiable *op)
{
	const float h = 1e-2f;
	float *x = noise(1, op->inputs), *c = noise(2, op->outputs);
	float *y = xcalloc(op->outputs, sizeof(float)), *dx = xcalloc(op->inputs, sizeof(float));

	op->backward(dev, dx, c, x);
	for (size_t i = 0; i < op->inputs; i++) {
		float kept = x[i], above = kept + h, below = kept - h;
		x[i] = above;
		double up = weighted(dev, op, x, c, y);
		x[i] = below;
		double down = weighted(dev, op, x, c, y);
		x[i] = kept;
		double slope = (up - down) / ((double)above - (double)below);
		if (!(fabs(slope - (double)dx[i]) <= 2e-3 * (1.0 + fabs(slope))))
			fail_msg("%s: input %zu: gradient %.6g, differences say %.6g", op->name, i,
				 (double)dx[i], slope);
	}
	free(x);
	free(c);
	free(y);
	free(dx);
}

enum { ROWS = 3, DIM = 21, WIDTH = 19, VOCAB = 35 };

/* x = [rows x dim | weight] */
static void norm_forward(struct device *dev, float *y, const float *x)
{
	float rstd[ROWS];
	backend_cpu()->rmsnorm_forward(dev, y, rstd, NULL, x, NULL, x + ROWS * DIM, ROWS, DIM,
				       1e-5f);
}

static void norm_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float rstd[ROWS], y[ROWS * DIM];
	const float *weight = x + ROWS * DIM;
	backend_cpu()->rmsnorm_forward(dev, y, rstd, NULL, x, NULL, weight, ROWS, DIM, 1e-5f);
	backend_cpu()->rmsnorm_backward(dev, dx, dx + ROWS * DIM, c, x, rstd, weight, ROWS, DIM,
					false);
}

static void swiglu_forward(struct device *dev, float *y, const float *x)
{
	backend_cpu()->swiglu_forward(dev, y, x, ROWS, WIDTH);
}

static void swiglu_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * 2 * WIDTH * sizeof(float));
	backend_cpu()->swiglu_backward(dev, dx, c, dx, ROWS,
				       WIDTH); /* in place, as the model does */
}

/* x = [rows x dim | weight | bias] */
static void layer_norm_forward(struct device *dev, float *y, const float *x)
{
	const float *weight = x + ROWS * DIM;
	float mean[ROWS], rstd[ROWS];
	backend_cpu()->layernorm_forward(dev, y, mean, rstd, NULL, x, NULL, weight, weight + DIM,
					 ROWS, DIM, 1e-5f);
}

static void layer_norm_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	const float *weight = x + ROWS * DIM;
	float mean[ROWS], rstd[ROWS], y[ROWS * DIM], *dw = dx + ROWS * DIM;
	backend_cpu()->layernorm_forward(dev, y, mean, rstd, NULL, x, NULL, weight, weight + DIM,
					 ROWS, DIM, 1e-5f);
	backend_cpu()->layernorm_backward(dev, dx, dw, dw + DIM, c, x, mean, rstd, weight, ROWS,
					  DIM, false);
}

/* x = [rows x dim | bias] */
static void bias_forward(struct device *dev, float *y, const float *x)
{
	memcpy(y, x, ROWS * DIM * sizeof(float));
	backend_cpu()->bias_forward(dev, y, x + ROWS * DIM, ROWS, DIM);
}

static void bias_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	memcpy(dx, c, ROWS * DIM * sizeof(float));
	backend_cpu()->bias_backward(dev, dx + ROWS * DIM, c, ROWS, DIM, false);
}

/* x = [two sequences of 3 x dim | table of 4 positions] */
static void positions_forward(struct device *dev, float *y, const float *x)
{
	memcpy(y, x, 6 * DIM * sizeof(float));
	backend_cpu()->positions_forward(dev, y, x + 6 * DIM, 6, 3, DIM);
}

static void positions_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	memcpy(dx, c, 6 * DIM * sizeof(float));
	backend_cpu()->positions_backward(dev, dx + 6 * DIM, c, 6, 3, DIM, false);
}

static void gelu_forward(struct device *dev, float *y, const float *x)
{
	backend_cpu()->gelu_forward(dev, y, x, ROWS * WIDTH, GELU_ERF);
}

static void gelu_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * WIDTH * sizeof(float));
	backend_cpu()->gelu_backward(dev, dx, c, dx, ROWS * WIDTH, GELU_ERF); /* in place */
}

static void gelu_tanh_forward(struct device *dev, float *y, const float *x)
{
	backend_cpu()->gelu_forward(dev, y, x, ROWS * WIDTH, GELU_TANH);
}

static void gelu_tanh_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * WIDTH * sizeof(float));
	backend_cpu()->gelu_backward(dev, dx, c, dx, ROWS * WIDTH, GELU_TANH);
}

/* GPT-NeoX's order of heads, and a part of each that turns. */
static const struct attention interleaved = { .batch = 2,
					      .seq = 5,
					      .heads = 3,
					      .kv_heads = 3,
					      .head_dim = 6,
					      .rotary = 4,
					      .interleaved = true,
					      .scale = 0.3f };
enum { SIDE_BY_SIDE = 2 * 5 * 3 * 3 * 6, SIDE_ATTENDED = 2 * 5 * 3 * 6, SIDE_LSE = 2 * 3 * 5 };

static void side_forward(struct device *dev, float *y, const float *x)
{
	float lse[SIDE_LSE];
	backend_cpu()->attention_forward(dev, y, lse, x, &interleaved);
}

static void side_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float lse[SIDE_LSE], y[SIDE_ATTENDED];
	backend_cpu()->attention_forward(dev, y, lse, x, &interleaved);
	for (size_t i = 0; i < SIDE_BY_SIDE; i++)
		dx[i] = NAN;
	backend_cpu()->attention_backward(dev, dx, c, y, lse, x, NULL, &interleaved);
}

static void side_table(float table[5 * 4])
{
	for (size_t t = 0; t < 5; t++)
		for (size_t i = 0; i < 2; i++) {
			table[(t * 2 + i) * 2] = cosf((float)(t * (i + 1)));
			table[(t * 2 + i) * 2 + 1] = sinf((float)(t * (i + 1)));
		}
}

static void side_rope_forward(struct device *dev, float *y, const float *x)
{
	float table[5 * 4];
	side_table(table);
	memcpy(y, x, SIDE_BY_SIDE * sizeof(float));
	backend_cpu()->rope(dev, y, table, &interleaved, false);
}

static void side_rope_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float table[5 * 4];
	(void)x;
	side_table(table);
	memcpy(dx, c, SIDE_BY_SIDE * sizeof(float));
	backend_cpu()->rope(dev, dx, table, &interleaved, true);
}

static const struct attention grouped = {
	.batch = 2, .seq = 7, .heads = 4, .kv_heads = 2, .head_dim = 6
};
enum { QKV = 2 * 7 * (4 + 2 * 2) * 6, ATTENDED = 2 * 7 * 4 * 6, LSE = 2 * 4 * 7 };

static void attend_forward(struct device *dev, float *y, const float *x)
{
	float lse[LSE];
	backend_cpu()->attention_forward(dev, y, lse, x, &grouped);
}

static void attend_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float lse[LSE], y[ATTENDED];
	backend_cpu()->attention_forward(dev, y, lse, x, &grouped);
	for (size_t i = 0; i < QKV; i++)
		dx[i] = NAN; /* it must be written whole */
	backend_cpu()->attention_backward(dev, dx, c, y, lse, x, NULL, &grouped);
}

static void rope_table(float *table)
{
	for (size_t t = 0; t < grouped.seq; t++)
		for (size_t i = 0; i < grouped.head_dim / 2; i++) {
			double angle = (double)t * pow(10.0, -(double)i);
			table[(t * grouped.head_dim / 2 + i) * 2] = (float)cos(angle);
			table[(t * grouped.head_dim / 2 + i) * 2 + 1] = (float)sin(angle);
		}
}

static void rope_forward(struct device *dev, float *y, const float *x)
{
	float table[7 * 6];
	rope_table(table);
	memcpy(y, x, QKV * sizeof(float));
	backend_cpu()->rope(dev, y, table, &grouped, false);
}

static void rope_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float table[7 * 6];
	(void)x;
	rope_table(table);
	memcpy(dx, c, QKV * sizeof(float));
	backend_cpu()->rope(dev, dx, table, &grouped, true);
}

static const int32_t some_targets[ROWS] = { 0, 34, 17 };

static void entropy_forward(struct device *dev, float *y, const float *x)
{
	float z[ROWS * VOCAB];
	memcpy(z, x, sizeof(z));
	backend_cpu()->cross_entropy(dev, y, z, some_targets, ROWS, VOCAB, 0.0f);
	assert_memory_equal(z, x, sizeof(z));
}

/* The operation has one scale for all rows, so each row is done alone with its own. */
static void entropy_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float loss;
	memcpy(dx, x, ROWS * VOCAB * sizeof(float));
	for (size_t r = 0; r < ROWS; r++)
		backend_cpu()->cross_entropy(dev, &loss, dx + r * VOCAB, some_targets + r, 1, VOCAB,
					     c[r]);
}

static const int32_t some_tokens[5] = { 2, 0, 2, 3, 2 };

static void embed_forward(struct device *dev, float *y, const float *x)
{
	backend_cpu()->embed_forward(dev, y, x, some_tokens, 5, DIM);
}

static void embed_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	backend_cpu()->embed_backward(dev, dx, c, some_tokens, 5, DIM);
}

static void test_gradients(void **state)
{
	static const struct differentiable ops[] = {
		{ "rmsnorm", ROWS * DIM + DIM, ROWS * DIM, norm_forward, norm_backward },
		{ "layernorm", ROWS * DIM + 2 * DIM, ROWS * DIM, layer_norm_forward,
		  layer_norm_backward },
		{ "bias", ROWS * DIM + DIM, ROWS * DIM, bias_forward, bias_backward },
		{ "positions", 10 * DIM, 6 * DIM, positions_forward, positions_backward },
		{ "gelu", ROWS * WIDTH, ROWS * WIDTH, gelu_forward, gelu_backward },
		{ "gelu by tanh", ROWS * WIDTH, ROWS * WIDTH, gelu_tanh_forward,
		  gelu_tanh_backward },
		{ "attention, side by side", SIDE_BY_SIDE, SIDE_ATTENDED, side_forward,
		  side_backward },
		{ "rope of a part", SIDE_BY_SIDE, SIDE_BY_SIDE, side_rope_forward,
		  side_rope_backward },
		{ "swiglu", ROWS * 2 * WIDTH, ROWS * WIDTH, swiglu_forward, swiglu_backward },
		{ "attention", QKV, ATTENDED, attend_forward, attend_backward },
		{ "rope", QKV, QKV, rope_forward, rope_backward },
		{ "cross_entropy", ROWS * VOCAB, ROWS, entropy_forward, entropy_backward },
		{ "embedding", 4 * DIM, 5 * DIM, embed_forward, embed_backward },
	};
	struct device *dev = open_device(2);

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		check_differences(dev, &ops[i]);
	backend_cpu()->close(dev);
}

/* The residual's gradient is added to, the sum in front of the norm is what is normed. */
static void test_norm_residual(void **state)
{
	struct device *dev = open_device(2);
	float *x = noise(1, ROWS * DIM), *delta = noise(2, ROWS * DIM), *w = noise(3, DIM);
	float sum[ROWS * DIM], out[ROWS * DIM], plain[ROWS * DIM], rstd[ROWS];
	float dx[ROWS * DIM], base[ROWS * DIM] = { 0 }, dw[DIM], twice[DIM];

	(void)state;
	backend_cpu()->rmsnorm_forward(dev, out, rstd, sum, x, delta, w, ROWS, DIM, 1e-5f);
	for (size_t i = 0; i < ROWS * DIM; i++)
		assert_true(sum[i] == x[i] + delta[i]);
	backend_cpu()->rmsnorm_forward(dev, plain, rstd, NULL, sum, NULL, w, ROWS, DIM, 1e-5f);
	assert_memory_equal(out, plain, sizeof(out));
	for (size_t i = 0; i < ROWS * DIM; i++)
		dx[i] = 100.0f;
	backend_cpu()->rmsnorm_backward(dev, base, dw, delta, sum, rstd, w, ROWS, DIM, false);
	memcpy(twice, dw, sizeof(dw));
	backend_cpu()->rmsnorm_backward(dev, dx, twice, delta, sum, rstd, w, ROWS, DIM, true);
	for (size_t i = 0; i < ROWS * DIM; i++)
		assert_true(fabsf(dx[i] - 100.0f - base[i]) < 1e-4f);
	for (size_t i = 0; i < DIM; i++)
		assert_true(twice[i] == dw[i] + dw[i]);
	free(x);
	free(delta);
	free(w);
	backend_cpu()->close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_norm_residual),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
