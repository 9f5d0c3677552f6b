/* SPDX-License-Identifier: MIT */
/* products.c - products [ROUNDS] prints, for each product of a step of GPT-2 124M and for
 * attention, what one thread makes of the fused multiply-adds that the core could do in the same
 * moments.
 *
 * By the thread's own CPU time: what others take of the core does not count. What they take of
 * caches does: a product of 40 ms is never left alone on a busy machine. Its tasks, of 0.1 to 4 ms,
 * sometimes are: "undisturbed" is the sum of each task's least time of all rounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed_pool.h"
#include "kernels/load.h"
#include "kernels/machine/peak.h"

enum { WIDTH = 768, HEADS = 12, MAX_ROUNDS = 99, MAX_TASKS = 1 << 17 };

static const struct backend *be;
static struct device *dev;
static int rounds = 9;

/* Tasks of the operation that is measured: how many of them ran in this round, the least time of
 * each. */
static double least[MAX_TASKS];
static size_t tasks;

void task_took(double seconds)
{
	if (tasks == MAX_TASKS) {
		fputs("products: too many tasks\n", stderr);
		exit(1);
	}
	if (least[tasks] == 0 || seconds < least[tasks])
		least[tasks] = seconds;
	tasks++;
}

/* Numbers in -1..1. */
static float *noise(size_t count)
{
	float *x = be->alloc(dev, count * sizeof(*x), "operand");
	uint32_t state = 1;

	if (!x) {
		fputs("products: no memory\n", stderr);
		exit(1);
	}
	for (size_t i = 0; i < count; i++) {
		state = state * 1664525u + 1013904223u;
		x[i] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
	}
	return x;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct work {
	void (*once)(const struct work *w);
	double flop;
	const struct gemm *gemm;
	const struct attention *shape;
	float *out, *lse, *dqkv, *qkv, *dout;
};

/* CPU seconds of one go. */
static double time_of(const struct work *w)
{
	double start = thread_s();

	tasks = 0;
	w->once(w);
	return thread_s() - start;
}

/* Rounds in turn with the peak. */
static void measure(const char *name, const char *size, const struct work *w)
{
	double peak[MAX_ROUNDS] = { 0 }, taken[MAX_ROUNDS] = { 0 }, undisturbed = 0;

	time_of(w);
	memset(least, 0, sizeof(least));
	for (int i = 0; i < rounds; i++) {
		peak[i] = peak_fma_flops(1);
		taken[i] = time_of(w);
	}
	for (size_t i = 0; i < tasks; i++)
		undisturbed += least[i];
	qsort(peak, (size_t)rounds, sizeof(*peak), compare);
	qsort(taken, (size_t)rounds, sizeof(*taken), compare);
	double flop = w->flop / peak[rounds - 1];
	printf("| %s | %s | %.2f | %.1f | %.2f | %.2f | %.2f |\n", name, size, taken[0] * 1e3,
	       peak[rounds - 1] * 1e-9, flop / undisturbed, flop / taken[0],
	       w->flop / peak[rounds / 2] / taken[rounds / 2]);
	(void)fflush(stdout);
}

static void multiply(const struct work *w)
{
	be->gemm(dev, w->gemm);
}

/* rows of x [rows, in] by a matrix [out, in]: y, and the gradients of x and of the matrix. */
static void matrix(const char *name, size_t rows, size_t in, size_t out)
{
	float *x = noise(rows * in), *y = noise(rows * out), *weight = noise(in * out);
	struct gemm g[] = {
		{ .m = rows,
		  .n = out,
		  .k = in,
		  .a = x,
		  .lda = in,
		  .b = weight,
		  .ldb = in,
		  .trans_b = true,
		  .c = y,
		  .ldc = out,
		  .alpha = 1 },
		{ .m = rows,
		  .n = in,
		  .k = out,
		  .a = y,
		  .lda = out,
		  .b = weight,
		  .ldb = in,
		  .c = x,
		  .ldc = in,
		  .alpha = 1 },
		{ .m = out,
		  .n = in,
		  .k = rows,
		  .a = y,
		  .lda = out,
		  .trans_a = true,
		  .b = x,
		  .ldb = in,
		  .c = weight,
		  .ldc = in,
		  .alpha = 1 },
	};
	static const char *const of[] = { "", ", gradient of its input",
					  ", gradient of its weights" };

	for (size_t i = 0; i < sizeof(g) / sizeof(g[0]); i++) {
		const struct work w = { .once = multiply,
					.flop = 2.0 * (double)g[i].m * (double)g[i].n *
						(double)g[i].k,
					.gemm = &g[i] };
		char label[96], size[96];
		snprintf(label, sizeof(label), "%s%s", name, of[i]);
		snprintf(size, sizeof(size), "%zu x %zu x %zu", g[i].m, g[i].n, g[i].k);
		measure(label, size, &w);
	}
	be->free(dev, x);
	be->free(dev, y);
	be->free(dev, weight);
}

static void attend(const struct work *w)
{
	be->attention_forward(dev, w->out, w->lse, w->qkv, w->shape);
}

static void attend_backward(const struct work *w)
{
	be->attention_backward(dev, w->dqkv, w->dout, w->out, w->lse, w->qkv, NULL, w->shape);
}

/* Two products forward and five backward, of half the pairs of a query and a key. */
static void attention(size_t seq)
{
	const struct attention shape = {
		.batch = 1, .seq = seq, .heads = HEADS, .kv_heads = HEADS, .head_dim = WIDTH / HEADS
	};
	double product = (double)seq * (double)seq * WIDTH;
	struct work w = { .once = attend,
			  .flop = 2 * product,
			  .shape = &shape,
			  .out = noise(seq * WIDTH),
			  .lse = noise(seq * HEADS),
			  .dqkv = noise(seq * 3 * WIDTH),
			  .qkv = noise(seq * 3 * WIDTH),
			  .dout = noise(seq * WIDTH) };
	char size[64];

	snprintf(size, sizeof(size), "%zu tokens", seq);
	measure("attention", size, &w);
	w.once = attend_backward;
	w.flop = 5 * product;
	measure("attention, gradient", size, &w);
	be->free(dev, w.out);
	be->free(dev, w.lse);
	be->free(dev, w.dqkv);
	be->free(dev, w.qkv);
	be->free(dev, w.dout);
}

int main(int argc, char **argv)
{
	static const size_t rows[] = { 256, 1024 };
	const struct backend_options options = { .threads = 1 };
	char why[BACKEND_TEXT_BYTES];

	be = backend_cpu();
	dev = be->open(&options, why);
	if (argc > 1)
		rounds = (int)strtol(argv[1], NULL, 10);
	if (!dev || rounds < 1 || rounds > MAX_ROUNDS) {
		fputs("products: ROUNDS from 1 to 99\n", stderr);
		return 2;
	}
	printf("\n%s\n\n| product | m x n x k | best ms | peak GF/s | undisturbed, of the peak | "
	       "best | median |\n"
	       "|---|---|---|---|---|---|---|\n",
	       be->describe(dev));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		matrix("query, key, value", rows[i], WIDTH, 3 * WIDTH);
		matrix("out", rows[i], WIDTH, WIDTH);
		matrix("up", rows[i], WIDTH, 4 * WIDTH);
		matrix("down", rows[i], 4 * WIDTH, WIDTH);
	}
	matrix("head", 256, WIDTH, 50257);
	for (size_t seq = 512; seq <= 2048; seq *= 2)
		attention(seq);
	be->close(dev);
	return 0;
}
