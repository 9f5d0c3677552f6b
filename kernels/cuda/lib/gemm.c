/* SPDX-License-Identifier: MIT */
/* gemm.c - matrix products by cuBLASLt, and by our own kernels what it does not do behind them.
 *
 * The algorithm of each kind of product is chosen once (gemm_measure.c) and kept as text
 * (gemm_choices.c) that a later run reads again: same algorithm, same bits.
 *
 * A bias, GELU (its tanh form), its slope, and sums of an operand may be left to the library's
 * epilogues. Where it has no algorithm with them, or the plain product with our kernels behind it
 * is faster, these follow it. */
#include "kernels/cuda/lib/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_MAX = 256, WAYS = 3 };

/* --- kinds -------------------------------------------------------------------------------- */

static uint32_t alignment(const void *a, const void *b, const void *c)
{
	uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | ALIGN_MAX;
	return (uint32_t)(bits & (~bits + 1));
}

struct kind gemm_kind(const struct device *dev, const struct gemm *g, const void *b,
		      uint32_t more_flags)
{
	struct kind k = { g->m, g->n, g->k, g->lda, g->ldb, g->ldc, 0, alignment(g->a, b, g->c) };

	if (g->kept)
		k.align = alignment(g->a, b, g->kept) < k.align ? alignment(g->a, b, g->kept)
								: k.align;
	k.flags = (g->trans_a ? FLAG_TRANS_A : 0) | (g->trans_b ? FLAG_TRANS_B : 0) |
		  (g->beta != 0.0f ? FLAG_ADD : 0) | (g->bias ? FLAG_BIAS : 0) |
		  (g->c_is_gradient ? FLAG_GRADIENT : 0) |
		  (dev->compute == COMPUTE_BF16 ? FLAG_BF16 : 0) |
		  (dev->deterministic ? FLAG_FIXED : 0) | (g->then == GEMM_GELU ? FLAG_GELU : 0) |
		  (g->then == GEMM_GELU_BACKWARD ? FLAG_SLOPE : 0) | (g->sum_a ? FLAG_SUM_A : 0) |
		  (g->sum_b ? FLAG_SUM_B : 0) | more_flags;
	return k;
}

struct product *gemm_ready(struct device *dev, const struct place *at, const struct gemm *g,
			   const void *b, uint32_t more_flags)
{
	const struct kind kind = gemm_kind(dev, g, b, more_flags);
	struct product *p = gemm_find(dev->gemms, &kind);
	bool is_known = p != NULL;

	if (p && (p->what || p->is_refused))
		return p->is_refused ? NULL : p;
	if (!p)
		p = gemm_add(dev->gemms, &kind);
	if (!p) {
		cuda_fail(dev, at, "out of memory");
		return NULL;
	}
	if (!product_describe(dev, at, p))
		return NULL;
	product_set_places(dev, at, p, g);
	cublasLtMatmulHeuristicResult_t unused;
	if (is_known && cublasLtMatmulAlgoCheck(dev->gemms->library, p->what, p->a, p->b, p->c,
						p->c, &p->algo, &unused) == CUBLAS_STATUS_SUCCESS)
		return p;
	return gemm_choose_algorithm(dev, at, p, g, b) ? p : NULL;
}

/* --- what the library does of a product, and what we do behind it ------------------------- */

static bool is_aligned(const void *at)
{
	return (uintptr_t)at % 16 == 0;
}

/* The part of g that the library may be asked for: its vectors must be able to read bias and
 * sums. */
static struct gemm fused(const struct device *dev, const struct gemm *g)
{
	struct gemm f = *g;
	bool bias = !g->bias || is_aligned(cuda_narrow(dev, g->bias));

	if (!bias)
		f.bias = NULL;
	bool is_slope_of_sum = g->bias && g->then == GEMM_GELU_BACKWARD; /* it has no such one */
	if (!bias || is_slope_of_sum || g->gelu != GELU_TANH || g->ldc % 8 != 0 ||
	    !is_aligned(g->kept) || !is_aligned(g->c))
		f.then = GEMM_PLAIN;
	if (g->beta != 0.0f || !is_aligned(g->sum_a) || !is_aligned(g->sum_b))
		f.sum_a = f.sum_b = NULL;
	return f;
}

/* What may be asked of the library, the most of g first: all that fused() leaves, then nothing
 * behind the product but a bias, then nothing at all. How many of these differ. */
static size_t ways_of(const struct device *dev, const struct gemm *g, struct gemm way[WAYS])
{
	size_t count = 0;

	way[count++] = fused(dev, g);
	if (way[0].then != GEMM_PLAIN || way[0].sum_a || way[0].sum_b) {
		way[count] = way[0];
		way[count].then = GEMM_PLAIN;
		way[count].sum_a = way[count].sum_b = NULL;
		count++;
	}
	if (way[0].bias) {
		way[count] = way[count - 1];
		way[count].bias = NULL;
		way[count].then = GEMM_PLAIN;
		count++;
	}
	for (size_t i = 0; i < count; i++)
		if (way[i].then == GEMM_PLAIN) {
			way[i].c = g->then == GEMM_GELU ? g->kept : g->c;
			way[i].kept = NULL;
		}
	return count;
}

void gemm_complete(struct device *dev, const struct gemm *g, const struct gemm *f)
{
	const bool add = g->beta != 0.0f;

	if (g->bias && !f->bias)
		cuda_bias_forward(dev, f->c, g->bias, g->m, g->n);
	if (g->then == GEMM_GELU && f->then == GEMM_PLAIN)
		cuda_gelu_forward(dev, g->c, g->kept, g->m * g->n, g->gelu);
	if (g->then == GEMM_GELU_BACKWARD && f->then == GEMM_PLAIN)
		cuda_gelu_backward(dev, g->c, g->c, g->kept, g->m * g->n, g->gelu);
	if (g->sum_a && !f->sum_a)
		cuda_bias_backward(dev, g->sum_a, g->a, g->k, g->m, add);
	if (g->sum_b && !f->sum_b)
		cuda_bias_backward(dev, g->sum_b, g->b, g->k, g->n, add);
}

/* Asked once for each kind: refused when the library's epilogue loses against the next way, with
 * our kernels behind it. These finish nothing meanwhile: it may go where an operand of g lies,
 * which the next round reads (expect.c). */
static struct product *compared(struct device *dev, const struct place *at, struct product *p,
				const struct gemm *g, const struct gemm *way, const void *b)
{
	const struct kind kind = p->kind;
	const struct product *next = gemm_ready(dev, at, &way[1], b, 0);
	const void *expected = dev->expected->out;
	float with, without;

	p = gemm_find(dev->gemms, &kind); /* the next one may have moved it */
	p->is_compared = true;
	if (!next)
		return p;
	product_set_places(dev, at, p, &way[0]);
	dev->expected->out = NULL;
	with = gemm_time(dev, at, &(struct trial){ p, &p->algo, &way[0], g, b, gemm_complete });
	without = gemm_time(dev, at,
			    &(struct trial){ next, &next->algo, &way[1], g, b, gemm_complete });
	dev->expected->out = expected;
	p->is_refused = without < with;
	return p;
}

/* The first of the ways that the library has, unless a later one is faster. NULL: a failure. */
static struct product *pick(struct device *dev, const struct place *at, const struct gemm *g,
			    const struct gemm *way, size_t count, const void *b, size_t *picked)
{
	for (size_t i = 0; i < count && dev->error[0] == '\0'; i++) {
		struct product *p = gemm_ready(dev, at, &way[i], b, 0);
		if (p && i + 1 < count && !p->is_compared && gemm_may_measure(dev, p))
			p = compared(dev, at, p, g, &way[i], b);
		*picked = i;
		if (p && !p->is_refused)
			return p;
	}
	return NULL;
}

/* Whether all of it is the library's, and there is, or can be, a workspace for a second product. */
static bool goes_aside(struct device *dev, const struct gemm *g, const struct gemm *f)
{
	struct gemm_state *s = dev->gemms;

	if (!g->aside || !dev->beside || (g->sum_a && !f->sum_a) || (g->sum_b && !f->sum_b))
		return false;
	if (!s->beside && !dev->is_recording)
		s->beside = cuda_take(dev, GEMM_WORKSPACE_BYTES, "matrix products");
	return s->beside != NULL;
}

void gemm_plain(struct device *dev, const struct gemm *g)
{
	const struct place *at = AT("gemm", g->m, g->n, g->k, 0);
	const void *b = g->b_is_weight ? cuda_table(dev, at, g->b) : g->b;
	struct gemm way[WAYS];
	size_t picked = 0;

	if (g->m == 0 || g->n == 0 || dev->error[0] != '\0')
		return;
	struct product *p = pick(dev, at, g, way, ways_of(dev, g, way), b, &picked);
	if (!p)
		return;
	product_set_places(dev, at, p, &way[picked]);
	expected_overwritten(dev, way[picked].c);
	bool aside = goes_aside(dev, g, &way[picked]) && cuda_fork(dev, at);
	cuda_range_push(dev, at->operation);
	gemm_lt_ok(dev, at,
		   product_multiply(dev, p, &way[picked], b, &p->algo,
				    aside ? dev->gemms->beside : dev->gemms->workspace));
	cuda_range_pop(dev);
	if (aside)
		cuda_fork_end(dev, at);
	cuda_ok(dev, at, cudaGetLastError());
	gemm_complete(dev, g, &way[picked]);
}

/* --- open and close ----------------------------------------------------------------------- */

bool cuda_gemm_open(struct device *dev, char *why)
{
	struct gemm_state *s = dev->gemms = calloc(1, sizeof(*s));
	const char *few_bits = getenv("LB_CUDA_FEW_BITS");

	if (s)
		s->emulates = few_bits && strcmp(few_bits, "emulated") == 0;
	if (!s || cublasLtCreate(&s->library) != CUBLAS_STATUS_SUCCESS ||
	    cudaEventCreate(&s->start) != cudaSuccess || cudaEventCreate(&s->end) != cudaSuccess) {
		snprintf(why, BACKEND_TEXT_BYTES, "cuda: cuBLASLt does not start on %s", dev->name);
		return false;
	}
	s->workspace = cuda_take(dev, GEMM_WORKSPACE_BYTES, "matrix products");
	if (!s->workspace && dev->error[0] != '\0') {
		snprintf(why, BACKEND_TEXT_BYTES, "%s", dev->error);
		return false;
	}
	if (!s->workspace) {
		snprintf(why, BACKEND_TEXT_BYTES,
			 "cuda: out of memory on %s, of which %zu MiB are free: nvidia-smi says "
			 "who has the rest",
			 dev->name, (size_t)(cuda_available(dev) >> 20));
		return false;
	}
	gemm_load_cache(dev);
	return true;
}

void cuda_gemm_version(char *out, size_t bytes)
{
	size_t version = cublasLtGetVersion();

	snprintf(out, bytes, "cuBLASLt %zu.%zu", version / 10000, version / 100 % 100);
}

void cuda_gemm_close(struct device *dev)
{
	struct gemm_state *s = dev->gemms;

	if (!s)
		return;
	if (s->library) {
		gemm_save_cache(dev);
		cublasLtDestroy(s->library);
	}
	for (size_t i = 0; i < s->products; i++)
		product_clear(&s->product[i]);
	cuda_give(dev, s->workspace);
	cuda_give(dev, s->beside);
	cuda_give(dev, s->operand[0].memory);
	cuda_give(dev, s->operand[1].memory);
	cuda_give(dev, s->kept.area.memory);
	if (s->start)
		cudaEventDestroy(s->start);
	if (s->end)
		cudaEventDestroy(s->end);
	free(s->product);
	free(s);
	dev->gemms = NULL;
}
