/* SPDX-License-Identifier: MIT */
/* test_kernel_products.c - matrix products of the CPU backend against a plain loop in fp64, with
 * each set of instructions; the same bits from any number of threads, and from AVX2 as from
 * AVX-512. */
#include <math.h>

#include "kernels/machine/instructions.h"
#include "tests/unit/cpu_device.h"

static const char *const sets[] = { "base", "avx2", "avx512", "vnni" };

enum { SETS = sizeof(sets) / sizeof(sets[0]) };

/* The set by its place above; false where this CPU lacks it. */
static bool use(size_t set)
{
	setenv("LB_CPU_ISA", sets[set], 1);
	return instructions_used() == (enum instructions)set;
}

/* Element (i, j) of a matrix is at i * down + j * right. */
struct steps {
	size_t down, right;
};

/* Row i of op(A) op(B) in fp64, and of |op(A)| |op(B)|. Not sanitized: it would take most of the
 * time. */
__attribute__((no_sanitize("address", "undefined"))) static void
define_row(double *want, double *size, const struct gemm *g, size_t i)
{
	const struct steps a = g->trans_a ? (struct steps){ 1, g->lda }
					  : (struct steps){ g->lda, 1 };
	const struct steps b = g->trans_b ? (struct steps){ 1, g->ldb }
					  : (struct steps){ g->ldb, 1 };
	const float *left = g->a, *right = g->b;

	for (size_t p = 0; p < g->k; p++) {
		double factor = left[i * a.down + p * a.right];
		for (size_t j = 0; j < g->n; j++) {
			double term = factor * right[p * b.down + j * b.right];
			want[j] += term;
			size[j] += fabs(term);
		}
	}
}

static void check_product(const char *set, const struct gemm *g, const float *before)
{
	const float *got = g->c;

	for (size_t i = 0; i < g->m; i++) {
		double *want = xcalloc(g->n, sizeof(*want)), *size = xcalloc(g->n, sizeof(*size));

		define_row(want, size, g, i);
		for (size_t j = 0; j < g->n; j++) {
			double c = g->alpha * want[j] + g->beta * before[i * g->ldc + j];
			if (!(fabs((double)got[i * g->ldc + j] - c) <= 2e-6 * (1 + size[j])))
				fail_msg("%s %zux%zux%zu %c%c: C[%zu,%zu] = %g, not %g", set, g->m,
					 g->n, g->k, g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N',
					 i, j, (double)got[i * g->ldc + j], c);
		}
		free(want);
		free(size);
	}
}

static void run_product(const char *set, struct device *dev, const size_t size[3], unsigned flags)
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
	backend_cpu()->gemm(dev, &g);
	check_product(set, &g, before);
	for (size_t i = 0; i < g.m; i++) /* nothing between the rows was touched */
		assert_memory_equal(c + i * g.ldc + g.n, before + i * g.ldc + g.n,
				    pad * sizeof(float));
	free(a);
	free(b);
	free(c);
	free(before);
}

/* Of each side: less than a panel, a few strips, more than is shared at a time; of k: nothing, one
 * block, several. */
static void test_products(void **state)
{
	static const size_t sizes[][3] = {
		{ 1, 1, 1 },     { 7, 17, 5 },   { 64, 48, 300 },  { 200, 30, 64 },
		{ 13, 500, 33 }, { 100, 99, 0 }, { 97, 203, 515 }, { 3, 2, 5000 },
	};

	(void)state;
	for (size_t set = 0; set < SETS; set++) {
		if (!use(set))
			continue;
		struct device *dev = open_device(3);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned flags = 0; flags < 16; flags++)
				run_product(sets[set], dev, sizes[i], flags);
		backend_cpu()->close(dev);
	}
}

/* More than is shared at a time: in ranges of k. */
static void test_large(void **state)
{
	static const size_t size[] = { 300, 310, 15000 };

	(void)state;
	unsetenv("LB_CPU_ISA");
	struct device *dev = open_device(2);
	run_product("large", dev, size, 4);
	backend_cpu()->close(dev);
}

enum { M = 640, N = 1000, K = 512 };

/* C of a product large enough for many tasks; the caller frees. */
static float *product_by(int threads)
{
	struct device *dev = open_device(threads);
	float *a = noise(1, (size_t)M * K), *b = noise(2, (size_t)K * N);
	float *c = xcalloc((size_t)M * N, sizeof(float));
	const struct gemm g = { .m = M,
				.n = N,
				.k = K,
				.a = a,
				.b = b,
				.c = c,
				.lda = K,
				.ldb = N,
				.ldc = N,
				.alpha = 1 };

	backend_cpu()->gemm(dev, &g);
	backend_cpu()->close(dev);
	free(a);
	free(b);
	return c;
}

static void test_same_bits(void **state)
{
	float *fused = NULL;

	(void)state;
	for (size_t set = 0; set < SETS; set++) {
		if (!use(set))
			continue;
		float *c = product_by(1);
		for (int threads = 2; threads <= 33; threads += 31) {
			float *other = product_by(threads);
			assert_memory_equal(c, other, (size_t)M * N * sizeof(float));
			free(other);
		}
		if (set > 0 && fused)
			assert_memory_equal(c, fused, (size_t)M * N * sizeof(float));
		free(set > 0 ? fused : NULL);
		fused = set > 0 ? c : NULL;
		if (set == 0)
			free(c);
	}
	free(fused);
}

/* Bias and GELU within a product are those of the operations alone, to the bit. */
static void test_fused(void **state)
{
	enum { ROWS = 70, WIDTH = 201, DEPTH = 300, COUNT = ROWS * WIDTH };
	struct device *dev = open_device(2);
	const struct backend *be = backend_cpu();
	float *a = noise(1, ROWS * DEPTH), *b = noise(2, WIDTH * DEPTH), *bias = noise(3, WIDTH);
	float *kept = noise(4, COUNT), *have = noise(5, COUNT), *want = noise(6, COUNT);

	(void)state;
	for (int form = GELU_ERF; form <= GELU_TANH; form++) {
		struct gemm g = { .m = ROWS,
				  .n = WIDTH,
				  .k = DEPTH,
				  .a = a,
				  .b = b,
				  .c = want,
				  .lda = DEPTH,
				  .ldb = DEPTH,
				  .ldc = WIDTH,
				  .trans_b = true,
				  .alpha = 0.25f };
		be->gemm(dev, &g);
		be->bias_forward(dev, want, bias, ROWS, WIDTH);
		g.then = GEMM_GELU, g.gelu = (enum gelu_form)form, g.bias = bias;
		g.c = have, g.kept = kept;
		be->gemm(dev, &g);
		assert_memory_equal(kept, want, COUNT * sizeof(float));
		be->gelu_forward(dev, want, want, COUNT, g.gelu);
		assert_memory_equal(have, want, COUNT * sizeof(float));

		g.then = GEMM_PLAIN, g.bias = NULL, g.c = want;
		be->gemm(dev, &g);
		be->gelu_backward(dev, want, want, kept, COUNT, g.gelu);
		g.then = GEMM_GELU_BACKWARD, g.c = have;
		be->gemm(dev, &g);
		assert_memory_equal(have, want, COUNT * sizeof(float));
	}
	be->close(dev);
	float *const all[] = { a, b, bias, kept, have, want };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_fused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
