/* SPDX-License-Identifier: MIT */
/* test_integer_products.c - products of integers beside their definition: the codes of the
 * operands, which are numbers over their scale, a plain sum in 64 bits, then the scales in fp32. To
 * the bit, with each set of instructions and any number of threads. */
#include <math.h>

#include "kernels/formats/float_bits.h"
#include "kernels/formats/operand.h"
#include "kernels/machine/instructions.h"
#include "tests/unit/cpu_device.h"
#include "worker/lbworker/recipes/recipe.h"

static const char *const sets[] = { "base", "avx2", "avx512", "vnni" };
enum { SETS = sizeof(sets) / sizeof(sets[0]), PAD = 3 };

static const struct random_stream stream = { 77, 3, 9 };

static struct operand_cast slot(const char *words)
{
	struct operand_cast c;
	struct err err = { 0 };

	assert_int_equal(slot_parse(&c, words, &err), 0);
	return c;
}

/* Element (line, p), p is summed over. */
struct operand_of {
	const float *x;
	size_t lines, k, ld;
	bool k_along_memory;
};

static float element(const struct operand_of *o, size_t line, size_t p)
{
	return o->x[o->k_along_memory ? line * o->ld + p : p * o->ld + line];
}

static float amax_of(const struct operand_of *o, size_t first, size_t end)
{
	float most = 0;

	for (size_t i = first; i < end; i++)
		for (size_t p = 0; p < o->k; p++)
			most = fmaxf(most, fabsf(element(o, i, p)));
	return most;
}

static int32_t code_of(const struct operand_cast *c, float x, struct scale s, uint64_t at)
{
	const struct format_cast how = { c->rounding, true };
	uint32_t code = format_encode(&c->format, x * s.multiply, &how, random_word(&stream, at));

	return (int32_t)format_decode(&c->format, code);
}

/* codes[lines][k] and the scale of each line. */
static void define(int32_t *codes, float *scales, const struct operand_of *o,
		   const struct operand_cast *c)
{
	for (size_t i = 0; i < o->lines; i++) {
		float amax = c->across == 1 ? amax_of(o, i, i + 1) : amax_of(o, 0, o->lines);
		struct scale s = operand_scale(c, amax, 0, format_max(&c->format));
		scales[i] = s.scale;
		for (size_t p = 0; p < o->k; p++)
			codes[i * o->k + p] = code_of(c, element(o, i, p), s,
						      o->k_along_memory ? i * o->k + p
									: p * o->lines + i);
	}
}

static void define_product(float *want, const struct gemm *g, const struct operand_of *a,
			   const struct operand_of *b, const struct operand_cast *c)
{
	int32_t *codes_a = xcalloc(g->m * g->k, sizeof(*codes_a));
	int32_t *codes_b = xcalloc(g->n * g->k, sizeof(*codes_b));
	float *scale_a = xcalloc(g->m, sizeof(float)), *scale_b = xcalloc(g->n, sizeof(float));

	define(codes_a, scale_a, a, c);
	define(codes_b, scale_b, b, c);
	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++) {
			int64_t sum = 0;
			for (size_t p = 0; p < g->k; p++)
				sum += (int64_t)codes_a[i * g->k + p] * codes_b[j * g->k + p];
			float *to = &want[i * g->ldc + j];
			float product = g->alpha * (scale_a[i] * (scale_b[j] * (float)sum));
			*to = g->beta != 0 ? *to + product : product;
			*to = g->bias ? *to + g->bias[j] : *to;
		}
	free(codes_a);
	free(codes_b);
	free(scale_a);
	free(scale_b);
}

/* flags: which is transposed, whether C is added to, alpha and a bias. */
static void compare(const char *set, int threads, const size_t size[3], unsigned flags,
		    const char *words)
{
	struct gemm g = { .m = size[0],
			  .n = size[1],
			  .k = size[2],
			  .trans_a = flags & 1,
			  .trans_b = flags & 2,
			  .alpha = flags & 8 ? 0.375f : 1.0f,
			  .beta = flags & 4 ? 1.0f : 0.0f };
	struct device *dev = open_device(threads);
	const struct operand_cast c = slot(words);
	const struct operand_use use = { .cast = &c, .random = stream };

	g.lda = (g.trans_a ? g.m : g.k) + PAD;
	g.ldb = (g.trans_b ? g.k : g.n) + PAD;
	g.ldc = g.n + PAD;
	float *a = noise(1, g.lda * (g.trans_a ? g.k : g.m));
	float *b = noise(2, g.ldb * (g.trans_b ? g.n : g.k)), *bias = noise(4, g.n);
	float *got = noise(3, g.ldc * g.m), *want = noise(3, g.ldc * g.m);
	g.a = a, g.b = b, g.c = got, g.bias = flags & 8 ? bias : NULL;
	g.use_a = g.use_b = &use;
	const struct operand_of left = { a, g.m, g.k, g.lda, !g.trans_a };
	const struct operand_of right = { b, g.n, g.k, g.ldb, g.trans_b };
	define_product(want, &g, &left, &right, &c);
	backend_cpu()->gemm(dev, &g);
	for (size_t i = 0; i < g.m * g.ldc; i++) /* what lies between the rows, too */
		if (bits_of(got[i]) != bits_of(want[i]))
			fail_msg(
				"%s, %s, %zux%zux%zu, flags %u, %d threads: C[%zu, %zu] = %.9g, not %.9g",
				set, words, g.m, g.n, g.k, flags, threads, i / g.ldc, i % g.ldc,
				(double)got[i], (double)want[i]);
	backend_cpu()->close(dev);
	free(a);
	free(b);
	free(bias);
	free(got);
	free(want);
}

static void test_definition(void **state)
{
	static const size_t sizes[][3] = {
		{ 1, 1, 2 }, { 7, 17, 5 }, { 64, 48, 300 }, { 97, 203, 131 }, { 3, 130, 1026 },
	};
	static const char *const slots[] = { "int8 row", "int8 tensor pow2", "int4 row",
					     "int8 row stochastic", "int8 row zero" };

	(void)state;
	for (size_t set = 0; set < SETS; set++) {
		setenv("LB_CPU_ISA", sets[set], 1);
		if (instructions_used() != (enum instructions)set)
			continue;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (size_t s = 0; s < sizeof(slots) / sizeof(slots[0]); s++)
				for (unsigned flags = s == 0 ? 0 : (unsigned)i;
				     flags < (s == 0 ? 16 : i + 1); flags++)
					compare(sets[set], 1 + (int)(flags % 3), sizes[i], flags,
						slots[s]);
	}
	unsetenv("LB_CPU_ISA");
}

/* The largest codes there are, all of one sign: sums near the end of 32 bits, and beyond it on the
 * way. */
static void test_largest_sums(void **state)
{
	enum { K = 131071 };
	const struct operand_cast c = slot("int8 tensor");
	const struct operand_use use = { .cast = &c };
	float *x = xcalloc(K, sizeof(*x)), result;
	struct gemm g = { .m = 1,
			  .n = 1,
			  .k = K,
			  .lda = K,
			  .ldb = K,
			  .ldc = 1,
			  .a = x,
			  .b = x,
			  .c = &result,
			  .trans_b = true,
			  .alpha = 1,
			  .use_a = &use,
			  .use_b = &use };

	(void)state;
	for (size_t set = 0; set < SETS; set++) {
		setenv("LB_CPU_ISA", sets[set], 1);
		struct device *dev = open_device(1);
		for (int sign = 1; sign >= -1; sign -= 2) {
			for (size_t i = 0; i < K; i++)
				x[i] = 127.0f * (float)sign;
			backend_cpu()->gemm(dev, &g);
			assert_true(result == (float)(127 * 127 * (int64_t)K));
		}
		backend_cpu()->close(dev);
	}
	unsetenv("LB_CPU_ISA");
	free(x);
}

/* A row that is not finite shows in its results, and in no other's. Turned operands are near those
 * that are not. */
static void test_not_finite_and_turned(void **state)
{
	enum { M = 5, N = 70, K = 64 };
	struct operand_cast c = slot("int8 row");
	const struct operand_use use = { .cast = &c };
	float *a = noise(1, M * K), *b = noise(2, N * K), *got = xcalloc(M * N, sizeof(*got));
	float *plain = xcalloc(M * N, sizeof(*plain));
	struct gemm g = { .m = M,
			  .n = N,
			  .k = K,
			  .a = a,
			  .b = b,
			  .c = plain,
			  .lda = K,
			  .ldb = K,
			  .ldc = N,
			  .trans_b = true,
			  .alpha = 1 };
	struct device *dev = open_device(2);

	(void)state;
	backend_cpu()->gemm(dev, &g);
	g.c = got;
	g.use_a = g.use_b = &use;
	c = slot("int8 row hadamard");
	backend_cpu()->gemm(dev, &g);
	for (size_t i = 0; i < M * N; i++)
		assert_true(fabsf(got[i] - plain[i]) < 0.5f);
	c = slot("int8 row");
	a[2 * K + 7] = INFINITY;
	a[4 * K + 1] = NAN;
	backend_cpu()->gemm(dev, &g);
	for (size_t i = 0; i < M * N; i++)
		assert_true(isnan(got[i]) == (i / N == 2 || i / N == 4));
	backend_cpu()->close(dev);
	free(a);
	free(b);
	free(got);
	free(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definition),
		cmocka_unit_test(test_largest_sums),
		cmocka_unit_test(test_not_finite_and_turned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
