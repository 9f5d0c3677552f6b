/* SPDX-License-Identifier: MIT */
/* test_kernels.c - each operation of the CPU backend by itself: gradients against finite
 * differences of the forward operation, matrix products against a plain loop, and the same bits from
 * any number of threads. */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "common/mem.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpus.h"
#include "worker/lbworker/rng.h"

static struct device *open_device(int threads)
{
	const struct backend_options options = { .threads = threads };
	char why[BACKEND_TEXT_BYTES];
	struct device *dev = backend_cpu.open(&options, why);

	if (!dev)
		fail_msg("%s", why);
	return dev;
}

static float *noise(uint32_t tensor, size_t count)
{
	const struct rng rng = { .seed = 7, .tensor = tensor };
	float *x = xmalloc(count * sizeof(float));

	rng_normal(&rng, x, count, 1.0);
	return x;
}

/* --- gradients ------------------------------------------------------------------------------ */

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
	cpu_rmsnorm_forward(dev, y, rstd, NULL, x, NULL, x + ROWS * DIM, ROWS, DIM, 1e-5f);
}

static void norm_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float rstd[ROWS], y[ROWS * DIM];
	const float *weight = x + ROWS * DIM;
	cpu_rmsnorm_forward(dev, y, rstd, NULL, x, NULL, weight, ROWS, DIM, 1e-5f);
	cpu_rmsnorm_backward(dev, dx, dx + ROWS * DIM, c, x, rstd, weight, ROWS, DIM, false);
}

static void swiglu_forward(struct device *dev, float *y, const float *x)
{
	cpu_swiglu_forward(dev, y, x, ROWS, WIDTH);
}

static void swiglu_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * 2 * WIDTH * sizeof(float));
	cpu_swiglu_backward(dev, dx, c, dx, ROWS, WIDTH);	/* in place, as the model does */
}

/* x = [rows x dim | weight | bias] */
static void layer_norm_forward(struct device *dev, float *y, const float *x)
{
	const float *weight = x + ROWS * DIM;
	float mean[ROWS], rstd[ROWS];
	cpu_layernorm_forward(dev, y, mean, rstd, NULL, x, NULL, weight, weight + DIM, ROWS, DIM,
			      1e-5f);
}

static void layer_norm_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	const float *weight = x + ROWS * DIM;
	float mean[ROWS], rstd[ROWS], y[ROWS * DIM], *dw = dx + ROWS * DIM;
	cpu_layernorm_forward(dev, y, mean, rstd, NULL, x, NULL, weight, weight + DIM, ROWS, DIM,
			      1e-5f);
	cpu_layernorm_backward(dev, dx, dw, dw + DIM, c, x, mean, rstd, weight, ROWS, DIM, false);
}

/* x = [rows x dim | bias] */
static void bias_forward(struct device *dev, float *y, const float *x)
{
	memcpy(y, x, ROWS * DIM * sizeof(float));
	cpu_bias_forward(dev, y, x + ROWS * DIM, ROWS, DIM);
}

static void bias_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	memcpy(dx, c, ROWS * DIM * sizeof(float));
	cpu_bias_backward(dev, dx + ROWS * DIM, c, ROWS, DIM, false);
}

/* x = [two sequences of 3 x dim | table of 4 positions] */
static void positions_forward(struct device *dev, float *y, const float *x)
{
	memcpy(y, x, 6 * DIM * sizeof(float));
	cpu_positions_forward(dev, y, x + 6 * DIM, 6, 3, DIM);
}

static void positions_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	memcpy(dx, c, 6 * DIM * sizeof(float));
	cpu_positions_backward(dev, dx + 6 * DIM, c, 6, 3, DIM, false);
}

static void gelu_forward(struct device *dev, float *y, const float *x)
{
	cpu_gelu_forward(dev, y, x, ROWS * WIDTH, GELU_ERF);
}

static void gelu_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * WIDTH * sizeof(float));
	cpu_gelu_backward(dev, dx, c, dx, ROWS * WIDTH, GELU_ERF);	/* in place */
}

static void gelu_tanh_forward(struct device *dev, float *y, const float *x)
{
	cpu_gelu_forward(dev, y, x, ROWS * WIDTH, GELU_TANH);
}

static void gelu_tanh_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	memcpy(dx, x, ROWS * WIDTH * sizeof(float));
	cpu_gelu_backward(dev, dx, c, dx, ROWS * WIDTH, GELU_TANH);
}

/* GPT-NeoX's order of heads, and a part of each that turns. */
static const struct attention interleaved = { .batch = 2, .seq = 5, .heads = 3, .kv_heads = 3,
					      .head_dim = 6, .rotary = 4, .interleaved = true,
					      .scale = 0.3f };
enum { SIDE_BY_SIDE = 2 * 5 * 3 * 3 * 6, SIDE_ATTENDED = 2 * 5 * 3 * 6, SIDE_LSE = 2 * 3 * 5 };

static void side_forward(struct device *dev, float *y, const float *x)
{
	float lse[SIDE_LSE];
	cpu_attention_forward(dev, y, lse, x, &interleaved);
}

static void side_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float lse[SIDE_LSE], y[SIDE_ATTENDED];
	cpu_attention_forward(dev, y, lse, x, &interleaved);
	for (size_t i = 0; i < SIDE_BY_SIDE; i++)
		dx[i] = NAN;
	cpu_attention_backward(dev, dx, c, y, lse, x, &interleaved);
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
	cpu_rope(dev, y, table, &interleaved, false);
}

static void side_rope_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float table[5 * 4];
	(void)x;
	side_table(table);
	memcpy(dx, c, SIDE_BY_SIDE * sizeof(float));
	cpu_rope(dev, dx, table, &interleaved, true);
}

static const struct attention grouped = { .batch = 2, .seq = 7, .heads = 4, .kv_heads = 2,
					  .head_dim = 6 };
enum { QKV = 2 * 7 * (4 + 2 * 2) * 6, ATTENDED = 2 * 7 * 4 * 6, LSE = 2 * 4 * 7 };

static void attend_forward(struct device *dev, float *y, const float *x)
{
	float lse[LSE];
	cpu_attention_forward(dev, y, lse, x, &grouped);
}

static void attend_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float lse[LSE], y[ATTENDED];
	cpu_attention_forward(dev, y, lse, x, &grouped);
	for (size_t i = 0; i < QKV; i++)
		dx[i] = NAN;		/* it must be written whole */
	cpu_attention_backward(dev, dx, c, y, lse, x, &grouped);
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
	cpu_rope(dev, y, table, &grouped, false);
}

static void rope_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float table[7 * 6];
	(void)x;
	rope_table(table);
	memcpy(dx, c, QKV * sizeof(float));
	cpu_rope(dev, dx, table, &grouped, true);
}

static const int32_t some_targets[ROWS] = { 0, 34, 17 };

static void entropy_forward(struct device *dev, float *y, const float *x)
{
	float z[ROWS * VOCAB];
	memcpy(z, x, sizeof(z));
	cpu_cross_entropy(dev, y, z, some_targets, ROWS, VOCAB, 0.0f);
	assert_memory_equal(z, x, sizeof(z));
}

/* The operation has one scale for all rows, so each row is done alone with its own. */
static void entropy_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	float loss;
	memcpy(dx, x, ROWS * VOCAB * sizeof(float));
	for (size_t r = 0; r < ROWS; r++)
		cpu_cross_entropy(dev, &loss, dx + r * VOCAB, some_targets + r, 1, VOCAB, c[r]);
}

static const int32_t some_tokens[5] = { 2, 0, 2, 3, 2 };

static void embed_forward(struct device *dev, float *y, const float *x)
{
	cpu_embed_forward(dev, y, x, some_tokens, 5, DIM);
}

static void embed_backward(struct device *dev, float *dx, const float *c, const float *x)
{
	(void)x;
	cpu_embed_backward(dev, dx, c, some_tokens, 5, DIM);
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
	backend_cpu.close(dev);
}

/* The residual's gradient is added to, the sum in front of the norm is what is normed. */
static void test_norm_residual(void **state)
{
	struct device *dev = open_device(2);
	float *x = noise(1, ROWS * DIM), *delta = noise(2, ROWS * DIM), *w = noise(3, DIM);
	float sum[ROWS * DIM], out[ROWS * DIM], plain[ROWS * DIM], rstd[ROWS];
	float dx[ROWS * DIM], base[ROWS * DIM] = { 0 }, dw[DIM], twice[DIM];

	(void)state;
	cpu_rmsnorm_forward(dev, out, rstd, sum, x, delta, w, ROWS, DIM, 1e-5f);
	for (size_t i = 0; i < ROWS * DIM; i++)
		assert_true(sum[i] == x[i] + delta[i]);
	cpu_rmsnorm_forward(dev, plain, rstd, NULL, sum, NULL, w, ROWS, DIM, 1e-5f);
	assert_memory_equal(out, plain, sizeof(out));
	for (size_t i = 0; i < ROWS * DIM; i++)
		dx[i] = 100.0f;
	cpu_rmsnorm_backward(dev, base, dw, delta, sum, rstd, w, ROWS, DIM, false);
	memcpy(twice, dw, sizeof(dw));
	cpu_rmsnorm_backward(dev, dx, twice, delta, sum, rstd, w, ROWS, DIM, true);
	for (size_t i = 0; i < ROWS * DIM; i++)
		assert_true(fabsf(dx[i] - 100.0f - base[i]) < 1e-4f);
	for (size_t i = 0; i < DIM; i++)
		assert_true(twice[i] == dw[i] + dw[i]);
	free(x);
	free(delta);
	free(w);
	backend_cpu.close(dev);
}

/* --- matrix products ------------------------------------------------------------------------ */

static void check_product(struct device *dev, const struct gemm *g, const float *before)
{
	const float *left = g->a, *right = g->b, *got = g->c;

	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++) {
			double want = g->beta * before[i * g->ldc + j], size = 1;
			for (size_t p = 0; p < g->k; p++) {
				double a = left[g->trans_a ? p * g->lda + i : i * g->lda + p];
				double b = right[g->trans_b ? j * g->ldb + p : p * g->ldb + j];
				want += (double)g->alpha * a * b;
				size += fabs(a * b);
			}
			if (!(fabs((double)got[i * g->ldc + j] - want) <= 2e-6 * size))
				fail_msg("%s %zux%zux%zu %c%c: C[%zu,%zu] = %g, not %g",
					 dev->sgemm ? "oneDNN" : "portable", g->m, g->n, g->k,
					 g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', i, j,
					 (double)got[i * g->ldc + j], want);
		}
}

static void run_product(struct device *dev, const size_t size[3], unsigned flags)
{
	struct gemm g = { .m = size[0], .n = size[1], .k = size[2], .trans_a = flags & 1,
			  .trans_b = flags & 2, .alpha = flags & 8 ? 0.375f : 1.0f,
			  .beta = flags & 4 ? 1.0f : 0.0f };
	size_t pad = 3;

	g.lda = (g.trans_a ? g.m : g.k) + pad;
	g.ldb = (g.trans_b ? g.k : g.n) + pad;
	g.ldc = g.n + pad;
	float *a = noise(1, g.lda * (g.trans_a ? g.k : g.m));
	float *b = noise(2, g.ldb * (g.trans_b ? g.n : g.k));
	float *c = noise(3, g.ldc * g.m), *before = noise(3, g.ldc * g.m);
	g.a = a;
	g.b = b;
	g.c = c;
	if (g.beta == 0.0f)
		c[0] = NAN;		/* C must not be read */
	cpu_gemm(dev, &g);
	check_product(dev, &g, before);
	for (size_t i = 0; i < g.m; i++)	/* nothing between the rows was touched */
		assert_memory_equal(c + i * g.ldc + g.n, before + i * g.ldc + g.n,
				    pad * sizeof(float));
	free(a);
	free(b);
	free(c);
	free(before);
}

static void test_products(void **state)
{
	static const size_t sizes[][3] = { { 1, 1, 1 }, { 7, 17, 5 }, { 64, 48, 300 },
					   { 200, 30, 64 }, { 13, 500, 33 } };
	struct device *dev = open_device(3);
	sgemm_function *library = dev->sgemm;

	(void)state;
	for (int portable = 0; portable < 2; portable++) {
		dev->sgemm = portable ? NULL : library;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned flags = 0; flags < 16; flags++)
				run_product(dev, sizes[i], flags);
	}
	dev->sgemm = library;
	backend_cpu.close(dev);
}

/* A product large enough for many tiles: the same bits from 1 and from 4 threads. */
static void test_product_threads(void **state)
{
	enum { M = 640, N = 1000, K = 512 };
	float *a = noise(1, (size_t)M * K), *b = noise(2, (size_t)K * N);
	float *c[2];

	(void)state;
	for (int portable = 0; portable < 2; portable++) {
		for (int i = 0; i < 2; i++) {
			struct device *dev = open_device(i ? 4 : 1);
			if (portable)
				dev->sgemm = NULL;
			c[i] = xcalloc((size_t)M * N, sizeof(float));
			const struct gemm g = { .m = M, .n = N, .k = K, .a = a, .b = b, .c = c[i],
						.lda = K, .ldb = N, .ldc = N, .alpha = 1 };
			cpu_gemm(dev, &g);
			backend_cpu.close(dev);
		}
		assert_memory_equal(c[0], c[1], (size_t)M * N * sizeof(float));
		free(c[0]);
		free(c[1]);
	}
	free(a);
	free(b);
}

/* --- threads and pages ------------------------------------------------------------------------ */

enum { WORKERS_MAX = 64 };

struct seen {
	atomic_uint arrived;
	unsigned workers;
	atomic_int cpus[WORKERS_MAX];	/* how many CPUs a worker may run on */
	atomic_int cpu[WORKERS_MAX];	/* one of them */
};

/* Each task waits for the others, so that every worker has one. */
static void look_task(const void *args, size_t index, unsigned worker)
{
	struct seen *const *seen = args;
	cpu_set_t set;

	(void)index;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	(*seen)->cpus[worker] = CPU_COUNT(&set);
	(*seen)->cpu[worker] = sched_getcpu();
	(*seen)->arrived++;
	while ((*seen)->arrived < (*seen)->workers)
		sched_yield();
}

/* One thread for each core: each is bound to its own. Any other number is left free. */
static void test_bound(void **state)
{
	unsigned cores = cpus_cores();
	cpu_set_t before, after;

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	for (unsigned threads = cores; threads <= cores + 1 && threads < WORKERS_MAX; threads++) {
		struct seen seen = { .workers = threads }, *arg = &seen;
		struct pool *pool = pool_create(threads);
		assert_non_null(pool);
		pool_run(pool, threads, look_task, &arg);
		for (unsigned i = 0; i < threads && threads == cores; i++) {
			assert_int_equal(seen.cpus[i], 1);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(seen.cpu[i], seen.cpu[k]);
		}
		for (unsigned i = 0; i < threads && threads > cores; i++)
			assert_int_equal(seen.cpus[i], CPU_COUNT(&before));
		pool_destroy(pool);
		sched_getaffinity(0, sizeof(after), &after);
		assert_true(CPU_EQUAL(&before, &after));
	}
}

/* What alloc gave is there: writing all of it costs no page fault. */
static void test_touched(void **state)
{
	enum { BYTES = 9 << 20 };
	struct device *dev = open_device(2);
	char *memory = backend_cpu.alloc(dev, BYTES, "a test");
	struct rusage before, after;

	(void)state;
	assert_non_null(memory);
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < BYTES; i += 1024) {
		assert_int_equal(memory[i], 0);
		memory[i] = 1;
	}
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_minflt - before.ru_minflt, 0, 8);
	backend_cpu.free(dev, memory);
	backend_cpu.close(dev);
}

/* --- the rest ------------------------------------------------------------------------------- */

static void test_adamw(void **state)
{
	enum { COUNT = 70001 };		/* more than one task, and a tail */
	const struct adamw a = { .rate = 0.5f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f,
				 .weight_decay = 0.1f };
	struct decision d = { .lr = 0.02f, .grad_scale = 0.5f, .step = 3, .is_left_out = 1,
			      .to_m_hat = (float)(1 / (1 - pow(0.9, 3))),
			      .to_v_hat = (float)(1 / (1 - pow(0.95, 3))) };
	struct device *dev = open_device(2);
	float *w = noise(1, COUNT), *m = noise(2, COUNT), *v = noise(3, COUNT);
	float *g = noise(4, COUNT), *old = noise(1, COUNT), *old_m = noise(2, COUNT);

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		v[i] *= v[i];
	float *old_v = xmalloc(COUNT * sizeof(float));
	memcpy(old_v, v, COUNT * sizeof(float));
	cpu_adamw(dev, w, m, v, g, COUNT, &a, &d);
	assert_memory_equal(w, old, COUNT * sizeof(float));
	assert_memory_equal(m, old_m, COUNT * sizeof(float));
	d.is_left_out = 0;
	cpu_adamw(dev, w, m, v, g, COUNT, &a, &d);
	for (size_t i = 0; i < COUNT; i++) {
		double grad = 0.5 * (double)g[i];
		double mean = 0.9 * (double)old_m[i] + 0.1 * grad;
		double square = 0.95 * (double)old_v[i] + 0.05 * grad * grad;
		double direction = mean / (1 - pow(0.9, 3)) /
				   (sqrt(square / (1 - pow(0.95, 3))) + 1e-8);
		double want = (double)old[i] - 0.01 * (direction + 0.1 * (double)old[i]);
		assert_true(fabs((double)m[i] - mean) <= 1e-5);
		assert_true(fabs((double)v[i] - square) <= 1e-5 * (1 + square));
		assert_true(fabs((double)w[i] - want) <= 1e-5 * (1 + fabs(direction)));
	}
	free(w);
	free(m);
	free(v);
	free(g);
	free(old);
	free(old_m);
	free(old_v);
	backend_cpu.close(dev);
}

static void test_sum_squares(void **state)
{
	const size_t count = ((size_t)3 << 20) + 77;
	float *x = noise(1, count);
	double want = 0, have[2];

	(void)state;
	for (size_t i = 0; i < count; i++)
		want += (double)x[i] * (double)x[i];
	for (int i = 0; i < 2; i++) {
		struct device *dev = open_device(i ? 3 : 1);
		cpu_sum_squares(dev, &have[i], x, count);
		backend_cpu.close(dev);
	}
	assert_true(have[0] == have[1]);
	assert_true(fabs(have[0] - want) <= 1e-6 * want);
	free(x);
}

static void test_decide(void **state)
{
	static const struct {
		struct decision d;
		float grad_scale;
		uint32_t is_left_out;
	} cases[] = {
		{ { .norm_limit = INFINITY, .norm_most = 1, .loss_sum = 5, .squares = 16 }, 0.25f, 0 },
		{ { .norm_limit = INFINITY, .norm_most = 4, .loss_sum = 5, .squares = 16 }, 1, 0 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = 16 }, 1, 0 },
		{ { .norm_limit = 4, .norm_most = 1, .loss_sum = 5, .squares = 16 }, 0.25f, 0 },
		{ { .norm_limit = 3.9, .loss_sum = 5, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = NAN, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = INFINITY, .squares = 16 }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = NAN }, 1, 1 },
		{ { .norm_limit = INFINITY, .loss_sum = 5, .squares = INFINITY }, 1, 1 },
	};
	const float losses[] = { 1, 2.5f, 4 };
	struct device *dev = open_device(1);
	double sum = NAN;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decision d = cases[i].d;
		cpu_decide(dev, &d);
		assert_int_equal(d.is_left_out, cases[i].is_left_out);
		assert_true(d.grad_scale == cases[i].grad_scale);
	}
	cpu_sum_losses(dev, &sum, losses, 3, false);
	assert_true(sum == 7.5);
	cpu_sum_losses(dev, &sum, losses, 2, true);
	assert_true(sum == 11);
	backend_cpu.close(dev);
}

static void test_exp(void **state)
{
	(void)state;
	for (double x = -87; x <= 88; x += 0.01) {
		double have = (double)cpu_exp((float)x), want = exp((double)(float)x);
		assert_true(fabs(have - want) <= 3e-7 * want);
	}
	assert_true(isnan(cpu_exp(NAN)));
}

/* Both forms against libm, tails too. */
static void test_gelu(void **state)
{
	struct device *dev = open_device(1);

	(void)state;
	for (double at = -12; at <= 12; at += 0.003) {
		float x = (float)at, have;
		double v = (double)x, want = v * 0.5 * erfc(-v * sqrt(0.5));
		cpu_gelu_forward(dev, &have, &x, 1, GELU_ERF);
		/* rounding of the exponent grows with it: x^2/2 times 6e-8 */
		double tolerance = 2e-6 + 2e-7 * v * v;
		if (!(fabs((double)have - want) <= tolerance * fabs(want) + 1e-37))
			fail_msg("gelu(%g) = %g, not %g", v, (double)have, want);
		double u = sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v);
		want = v / (1 + exp(-2 * u));
		cpu_gelu_forward(dev, &have, &x, 1, GELU_TANH);
		if (!(fabs((double)have - want) <= 10 * tolerance * fabs(want) + 1e-35))
			fail_msg("gelu by tanh(%g) = %g, not %g", v, (double)have, want);
	}
	backend_cpu.close(dev);
}

/* A logit that is no number must show in the loss. */
static void test_nan_shows(void **state)
{
	struct device *dev = open_device(1);
	float z[VOCAB] = { 0 }, loss;
	const int32_t target = 1;

	(void)state;
	z[20] = NAN;
	cpu_cross_entropy(dev, &loss, z, &target, 1, VOCAB, 1.0f);
	assert_false(isfinite(loss));
	backend_cpu.close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_norm_residual),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_product_threads),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_touched),
		cmocka_unit_test(test_adamw),
		cmocka_unit_test(test_sum_squares),
		cmocka_unit_test(test_decide),
		cmocka_unit_test(test_exp),
		cmocka_unit_test(test_gelu),
		cmocka_unit_test(test_nan_shows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
