/* SPDX-License-Identifier: MIT */
/* gemm.c - C = alpha op(A) op(B) + beta C + bias: oneDNN's sgemm where it is installed, else a
 * blocked one.
 *
 * C is cut into tiles whose size depends on the shape only, and a task computes one tile over the
 * whole of k, single-threaded: our pool is the only one (a second pool beside it costs 30-50 %),
 * and the result does not depend on the number of threads. oneDNN is told to use one thread before
 * it is loaded, by OMP_NUM_THREADS, because each of our threads would otherwise start its own team.
 *
 * The portable path packs op(B) and op(A) into scratch and multiplies 6 x 16 blocks in registers
 * (Goto & van de Geijn 2008): slower than oneDNN, correct everywhere. */
#include "kernels/cpu/cpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Tiles are as large as leaves enough of them to share: packing costs less in large ones, and
 * oneDNN's kernels are 48 columns wide. */
enum { TILES_MAX = 128, TILE_MIN_N = 192, TILE_MIN_M = 128 };
static const double WORK_PER_TILE = 32e6; /* multiply-adds */

/* dnnl_version_t of oneDNN 2 and 3 */
struct version {
	int major, minor, patch;
};

static void *symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

bool cpu_gemm_open(struct device *dev, char *why)
{
	static const char *const names[] = { "libdnnl.so.3", "libdnnl.so.2" };
	const struct version *(*version)(void) = NULL;

	setenv("OMP_NUM_THREADS", "1", 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !dev->gemm_library; i++)
		dev->gemm_library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (dev->gemm_library) {
		void *sgemm = symbol(dev->gemm_library, "dnnl_sgemm");
		void *tell = symbol(dev->gemm_library, "dnnl_version");
		memcpy(&dev->sgemm, &sgemm, sizeof(sgemm)); /* the POSIX way to a function */
		memcpy(&version, &tell, sizeof(tell));
	}
	if (!dev->sgemm || !version) {
		dev->sgemm = NULL;
		snprintf(why, BACKEND_TEXT_BYTES,
			 "oneDNN (libdnnl.so.2 or .3) was not found: matrix products use the "
			 "portable code, several times slower");
		return false;
	}
	const struct version *v = version();
	snprintf(why, BACKEND_TEXT_BYTES, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
	return true;
}

void cpu_gemm_close(struct device *dev)
{
	if (dev->gemm_library)
		dlclose(dev->gemm_library);
}

/* --- tiles ---------------------------------------------------------------------------------- */

/* A product, or a tile of one, in floats. */
struct product {
	size_t m, n, k;
	const float *a, *b;
	float *c;
	size_t lda, ldb, ldc;
	bool trans_a, trans_b;
	float alpha, beta;
};

struct tiles {
	struct product g;
	struct device *dev;
	size_t tile_m, tile_n, across; /* across: tiles along n */
};

static void library_tile(const struct tiles *t, const struct product *g)
{
	int status = t->dev->sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', (int64_t)g->m,
				   (int64_t)g->n, (int64_t)g->k, g->alpha, g->a, (int64_t)g->lda,
				   g->b, (int64_t)g->ldb, g->beta, g->c, (int64_t)g->ldc);
	if (status != 0)
		cpu_fail(t->dev, "oneDNN refused a matrix product");
}

enum { BLOCK_M = 6, BLOCK_N = CPU_LANES, BLOCK_K = 256 };

/* c[0..rows) += alpha * a[k][BLOCK_M] (packed) * b[k][BLOCK_N] (packed) */
CPU_INLINE void block_product(size_t k, float alpha, const float *a, const float *b, float *c,
			      size_t ldc, size_t rows, size_t columns)
{
	vec16 acc[BLOCK_M] = { { 0 } }, x;

	for (size_t p = 0; p < k; p++) {
		memcpy(&x, b + p * BLOCK_N, sizeof(x));
		for (int i = 0; i < BLOCK_M; i++)
			acc[i] += a[p * BLOCK_M + i] * x;
	}
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			c[i * ldc + j] += alpha * acc[i][j];
}

/* Element (row, column) of op(X). */
CPU_INLINE float element(const float *x, size_t ld, bool trans, size_t row, size_t column)
{
	return trans ? x[column * ld + row] : x[row * ld + column];
}

/* k x n of op(B) as strips of BLOCK_N columns, zero-filled at the edge. */
CPU_INLINE void pack_b(const struct product *g, size_t k0, size_t k, float *to)
{
	for (size_t j0 = 0; j0 < g->n; j0 += BLOCK_N)
		for (size_t p = 0; p < k; p++)
			for (size_t j = j0; j < j0 + BLOCK_N; j++)
				*to++ = j < g->n ? element(g->b, g->ldb, g->trans_b, k0 + p, j) : 0;
}

CPU_INLINE void pack_a(const struct product *g, size_t row, size_t k0, size_t k, float *to)
{
	for (size_t p = 0; p < k; p++)
		for (size_t i = row; i < row + BLOCK_M; i++)
			*to++ = i < g->m ? element(g->a, g->lda, g->trans_a, i, k0 + p) : 0;
}

CPU_CLONES static void gemm_portable_tile(const struct product *g, float *scratch)
{
	float *packed_a = scratch, *packed_b = scratch + BLOCK_M * BLOCK_K;

	for (size_t i = 0; i < g->m && g->beta == 0.0f; i++)
		memset(g->c + i * g->ldc, 0, g->n * sizeof(float));
	for (size_t k0 = 0; k0 < g->k; k0 += BLOCK_K) {
		size_t k = cpu_min(BLOCK_K, g->k - k0);
		pack_b(g, k0, k, packed_b);
		for (size_t i = 0; i < g->m; i += BLOCK_M) {
			pack_a(g, i, k0, k, packed_a);
			for (size_t j = 0; j < g->n; j += BLOCK_N)
				block_product(k, g->alpha, packed_a, packed_b + j * k,
					      g->c + i * g->ldc + j, g->ldc,
					      cpu_min(BLOCK_M, g->m - i),
					      cpu_min(BLOCK_N, g->n - j));
		}
	}
}

static void tile_task(const void *args, size_t index, unsigned worker)
{
	const struct tiles *t = args;
	struct product g = t->g;
	size_t row = index / t->across * t->tile_m, column = index % t->across * t->tile_n;

	g.m = cpu_min(t->tile_m, g.m - row);
	g.n = cpu_min(t->tile_n, g.n - column);
	g.a += g.trans_a ? row : row * g.lda;
	g.b += g.trans_b ? column * g.ldb : column;
	g.c += row * g.ldc + column;
	if (t->dev->sgemm)
		library_tile(t, &g);
	else
		gemm_portable_tile(&g, (float *)(void *)t->dev->scratch[worker]);
}

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* The largest power of two of parts that is at most `most` and leaves none shorter than `least`.
 * Parts are of one size and a power of two of them is shared evenly by most numbers of threads: of
 * three tiles two threads take two turns, the second of them with one thread idle. */
static size_t even_parts(size_t length, size_t most, size_t least)
{
	size_t parts = 1;

	while (parts * 2 <= most && length / (parts * 2) >= least)
		parts *= 2;
	return parts;
}

/* The longer side is cut first, the other one only when that leaves too few tiles. */
static void cut(struct tiles *t)
{
	const struct product *g = &t->g;
	double tiles = (double)g->m * (double)g->n * (double)g->k / WORK_PER_TILE;
	size_t wanted = tiles < TILES_MAX ? (size_t)tiles : TILES_MAX, rows, columns;

	if (g->n >= g->m) {
		columns = even_parts(g->n, wanted, TILE_MIN_N);
		rows = even_parts(g->m, wanted / columns, TILE_MIN_M);
	} else {
		rows = even_parts(g->m, wanted, TILE_MIN_M);
		columns = even_parts(g->n, wanted / rows, TILE_MIN_N);
	}
	t->tile_m = round_up(cpu_tasks(g->m, rows), BLOCK_N);
	t->tile_n = round_up(cpu_tasks(g->n, columns), BLOCK_N);
	t->across = cpu_tasks(g->n, t->tile_n);
}

static void multiply(struct device *dev, const struct gemm *g)
{
	const struct product whole = { g->m,       g->n,     g->k,   g->a,   g->b,
				       g->c,       g->lda,   g->ldb, g->ldc, g->trans_a,
				       g->trans_b, g->alpha, g->beta };
	struct tiles t = { .g = whole, .dev = dev };

	if (g->m == 0 || g->n == 0)
		return;
	cut(&t);
	size_t packed = (round_up(t.tile_n, BLOCK_N) + BLOCK_M) * BLOCK_K * sizeof(float);
	if (!dev->sgemm && !cpu_scratch(dev, packed))
		return;
	pool_run(dev->pool, cpu_tasks(g->m, t.tile_m) * t.across, tile_task, &t);
	if (g->bias)
		cpu_bias_forward(dev, g->c, g->bias, g->m, g->n);
}

void cpu_gemm(struct device *dev, const struct gemm *g)
{
	struct gemm product = *g;

	if (g->then == GEMM_GELU)
		product.c = g->kept;
	multiply(dev, &product);
	if (g->then == GEMM_GELU)
		cpu_gelu_forward(dev, g->c, g->kept, g->m * g->n, g->gelu);
	if (g->then == GEMM_GELU_BACKWARD)
		cpu_gelu_backward(dev, g->c, g->c, g->kept, g->m * g->n, g->gelu);
	if (g->sum_a)
		cpu_bias_backward(dev, g->sum_a, g->a, g->k, g->m, g->beta != 0.0f);
	if (g->sum_b)
		cpu_bias_backward(dev, g->sum_b, g->b, g->k, g->n, g->beta != 0.0f);
}
