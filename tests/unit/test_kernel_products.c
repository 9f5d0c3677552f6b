/* SPDX-License-Identifier: MIT */
/* test_kernel_products.c - matrix products of the CPU backend, oneDNN's and ours, against a plain
 * loop in fp64, and the same bits from any number of threads. */
#include <math.h>

#include "tests/unit/cpu_device.h"

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
	struct gemm g = { .m = size[0],
			  .n = size[1],
			  .k = size[2],
			  .trans_a = flags & 1,
			  .trans_b = flags & 2,
			  .alpha = flags & 8 ? 0.375f : 1.0f,
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
		c[0] = NAN; /* C must not be read */
	cpu_gemm(dev, &g);
	check_product(dev, &g, before);
	for (size_t i = 0; i < g.m; i++) /* nothing between the rows was touched */
		assert_memory_equal(c + i * g.ldc + g.n, before + i * g.ldc + g.n,
				    pad * sizeof(float));
	free(a);
	free(b);
	free(c);
	free(before);
}

static void test_products(void **state)
{
	static const size_t sizes[][3] = {
		{ 1, 1, 1 }, { 7, 17, 5 }, { 64, 48, 300 }, { 200, 30, 64 }, { 13, 500, 33 }
	};
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
			const struct gemm g = { .m = M,
						.n = N,
						.k = K,
						.a = a,
						.b = b,
						.c = c[i],
						.lda = K,
						.ldb = N,
						.ldc = N,
						.alpha = 1 };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_product_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
