/* SPDX-License-Identifier: MIT */
/* gemm.c - matrix products by cuBLASLt, its algorithms chosen by measurement.
 *
 * Row-major C = op(A) op(B) is, read by columns, C^T = op(B)^T op(A)^T: our B is the library's
 * first operand, our A its second, and a bias runs along the library's rows.
 *
 * The first product of a kind asks for CANDIDATES algorithms and times each on the operands at
 * hand; the fastest is kept, as text (choices) that a later run reads again: same algorithm, same
 * bits. A product that adds to C cannot be repeated: it takes what was measured for the one that
 * does not, or the first proposal.
 *
 * GELU (its tanh form), its slope, and sums of an operand are left to the library's epilogues where
 * it has an algorithm with them; elsewhere our own kernels follow the plain product. */
#include "kernels/cuda/lib/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 8, REPEATS = 3, ALIGN_MAX = 256 };
static const size_t WORKSPACE_BYTES = (size_t)64 << 20;

/* --- kinds -------------------------------------------------------------------------------- */

static uint32_t alignment(const void *a, const void *b, const void *c)
{
	uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | ALIGN_MAX;
	return (uint32_t)(bits & (~bits + 1));
}

static struct kind kind_of(const struct device *dev, const struct gemm *g, const void *b)
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
		  (g->sum_b ? FLAG_SUM_B : 0);
	return k;
}

/* --- descriptors -------------------------------------------------------------------------- */

static bool lt_ok(struct device *dev, const struct place *at, cublasStatus_t status)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return true;
	char text[96];
	snprintf(text, sizeof(text), "cuBLASLt: %s", cublasLtGetStatusString(status));
	cuda_fail(dev, at, text);
	return false;
}

static bool make_layouts(struct device *dev, const struct place *at, struct product *p)
{
	const struct kind *k = &p->kind;
	bool ta = k->flags & FLAG_TRANS_A, tb = k->flags & FLAG_TRANS_B;
	cudaDataType_t in = k->flags & FLAG_BF16 ? CUDA_R_16BF : CUDA_R_32F;
	cudaDataType_t out = k->flags & FLAG_GRADIENT ? CUDA_R_32F : in;

	return lt_ok(dev, at,
		     cublasLtMatrixLayoutCreate(&p->a, in, tb ? k->k : k->n, tb ? k->n : k->k,
						(int64_t)k->ldb)) &&
	       lt_ok(dev, at,
		     cublasLtMatrixLayoutCreate(&p->b, in, ta ? k->m : k->k, ta ? k->k : k->m,
						(int64_t)k->lda)) &&
	       lt_ok(dev, at, cublasLtMatrixLayoutCreate(&p->c, out, k->n, k->m, (int64_t)k->ldc));
}

/* Our A is the library's second operand: its sums are BGRADB. */
static cublasLtEpilogue_t epilogue_of(uint32_t flags)
{
	const bool bias = flags & FLAG_BIAS;

	if (flags & FLAG_GELU)
		return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
	if (flags & FLAG_SLOPE)
		return CUBLASLT_EPILOGUE_DGELU;
	if (flags & FLAG_SUM_A)
		return CUBLASLT_EPILOGUE_BGRADB;
	if (flags & FLAG_SUM_B)
		return CUBLASLT_EPILOGUE_BGRADA;
	return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static bool make_what(struct device *dev, const struct place *at, struct product *p)
{
	const cublasOperation_t a = p->kind.flags & FLAG_TRANS_B ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t b = p->kind.flags & FLAG_TRANS_A ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasLtEpilogue_t epilogue = epilogue_of(p->kind.flags);
	const int64_t aux_ld = (int64_t)p->kind.ldc;

	if (!lt_ok(dev, at, cublasLtMatmulDescCreate(&p->what, CUBLAS_COMPUTE_32F, CUDA_R_32F)) ||
	    !lt_ok(dev, at,
		   cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSA, &a,
						  sizeof(a))) ||
	    !lt_ok(dev, at,
		   cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSB, &b,
						  sizeof(b))))
		return false;
	if (!lt_ok(dev, at,
		   cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
						  sizeof(epilogue))))
		return false;
	return !(p->kind.flags & (FLAG_GELU | FLAG_SLOPE)) ||
	       lt_ok(dev, at,
		     cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
						    &aux_ld, sizeof(aux_ld)));
}

/* Bias, sums and what GELU keeps lie elsewhere in every layer: their places are set before each
 * call. */
static void set_places(struct device *dev, const struct place *at, struct product *p,
		       const struct gemm *g)
{
	const void *bias = g->bias ? cuda_narrow(dev, g->bias) : g->sum_a ? g->sum_a : g->sum_b;

	if (bias)
		lt_ok(dev, at,
		      cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
						     &bias, sizeof(bias)));
	if (g->kept)
		lt_ok(dev, at,
		      cublasLtMatmulDescSetAttribute(p->what,
						     CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
						     &g->kept, sizeof(g->kept)));
}

/* --- choosing ----------------------------------------------------------------------------- */

static cublasStatus_t multiply(struct device *dev, const struct product *p, const struct gemm *g,
			       const void *b, const cublasLtMatmulAlgo_t *algo)
{
	const struct gemm_state *s = dev->gemms;

	return cublasLtMatmul(s->library, p->what, &g->alpha, b, p->a, g->a, p->b, &g->beta, g->c,
			      p->c, g->c, p->c, algo, s->workspace, WORKSPACE_BYTES, dev->stream);
}

static int propose(struct device *dev, const struct place *at, const struct product *p,
		   cublasLtMatmulHeuristicResult_t out[CANDIDATES])
{
	const uint32_t align = p->kind.align;
	/* Sums of parts in workspace have a fixed order; sums in place depend on who comes
	 * first. */
	const uint32_t schemes = p->kind.flags & FLAG_FIXED ? CUBLASLT_REDUCTION_SCHEME_NONE
							    : CUBLASLT_REDUCTION_SCHEME_MASK;
	const struct {
		cublasLtMatmulPreferenceAttributes_t name;
		const void *value;
		size_t bytes;
	} attributes[] = {
		{ CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE_BYTES,
		  sizeof(WORKSPACE_BYTES) },
		{ CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof(align) },
	};
	cublasLtMatmulPreference_t preference;
	int found = 0;

	if (!lt_ok(dev, at, cublasLtMatmulPreferenceCreate(&preference)))
		return 0;
	bool good = true;
	for (size_t i = 0; good && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		good = lt_ok(dev, at,
			     cublasLtMatmulPreferenceSetAttribute(preference, attributes[i].name,
								  attributes[i].value,
								  attributes[i].bytes));
	if (good && cublasLtMatmulAlgoGetHeuristic(dev->gemms->library, p->what, p->a, p->b, p->c,
						   p->c, preference, CANDIDATES, out,
						   &found) != CUBLAS_STATUS_SUCCESS)
		found = 0;
	cublasLtMatmulPreferenceDestroy(preference);
	int usable = 0; /* the library marks each proposal that holds */
	for (int i = 0; i < found; i++)
		if (out[i].state == CUBLAS_STATUS_SUCCESS)
			out[usable++] = out[i];
	return usable;
}

/* Milliseconds of REPEATS products after one to warm up; a huge number when it fails. */
static float time_of(struct device *dev, const struct place *at, const struct product *p,
		     const struct gemm *g, const void *b, const cublasLtMatmulAlgo_t *algo)
{
	const struct gemm_state *s = dev->gemms;
	const float never = 1e30f;
	float ms = never;

	for (int i = 0; i <= REPEATS; i++) {
		if (i == 1)
			cudaEventRecord(s->start, dev->stream);
		if (multiply(dev, p, g, b, algo) != CUBLAS_STATUS_SUCCESS)
			return never;
	}
	cudaEventRecord(s->end, dev->stream);
	if (!cuda_ok(dev, at, cudaEventSynchronize(s->end)) ||
	    !cuda_ok(dev, at, cudaEventElapsedTime(&ms, s->start, s->end)))
		return never;
	return ms;
}

/* The same product without adding to C, with sums or not, has been measured: its algorithm serves
 * here, too. */
static bool take_twin(struct device *dev, struct product *p)
{
	static const uint32_t sums[] = { 0, FLAG_SUM_A, FLAG_SUM_B };
	cublasLtMatmulHeuristicResult_t unused;
	struct kind kind = p->kind;

	for (size_t i = 0; (p->kind.flags & FLAG_ADD) && i < sizeof(sums) / sizeof(sums[0]); i++) {
		kind.flags = (p->kind.flags & ~(uint32_t)FLAG_ADD) | sums[i];
		const struct product *twin = gemm_find(dev->gemms, &kind);
		if (!twin || !twin->what || twin->is_refused ||
		    cublasLtMatmulAlgoCheck(dev->gemms->library, p->what, p->a, p->b, p->c, p->c,
					    &twin->algo, &unused) != CUBLAS_STATUS_SUCCESS)
			continue;
		p->algo = twin->algo;
		dev->gemms->is_new = true;
		return true;
	}
	return false;
}

static bool choose(struct device *dev, const struct place *at, struct product *p,
		   const struct gemm *g, const void *b)
{
	cublasLtMatmulHeuristicResult_t proposal[CANDIDATES];
	int found, best = 0;
	float least = 0;

	if (take_twin(dev, p))
		return true;
	found = propose(dev, at, p, proposal);
	p->is_refused = found == 0 && (p->kind.flags & FLAGS_FUSED);
	if (p->is_refused)
		return false;
	if (found == 0) {
		cuda_fail(dev, at, "cuBLASLt has no algorithm for it");
		return false;
	}
	for (int i = 0; !(p->kind.flags & FLAG_ADD) && !dev->is_recording && i < found; i++) {
		float ms = time_of(dev, at, p, g, b, &proposal[i].algo);
		if (i == 0 || ms < least) {
			least = ms;
			best = i;
		}
	}
	p->algo = proposal[best].algo;
	dev->gemms->is_new = true;
	return true;
}

/* The product of that kind, ready to run; NULL and a failure, or it is_refused. */
static struct product *ready(struct device *dev, const struct place *at, const struct gemm *g,
			     const void *b)
{
	const struct kind kind = kind_of(dev, g, b);
	struct product *p = gemm_find(dev->gemms, &kind);

	if (p && p->what)
		return p->is_refused ? NULL : p;
	bool is_known = p != NULL;
	if (!p)
		p = gemm_add(dev->gemms, &kind);
	if (!p) {
		cuda_fail(dev, at, "out of memory");
		return NULL;
	}
	if (!make_layouts(dev, at, p) || !make_what(dev, at, p))
		return NULL;
	set_places(dev, at, p, g);
	cublasLtMatmulHeuristicResult_t unused;
	if (is_known && cublasLtMatmulAlgoCheck(dev->gemms->library, p->what, p->a, p->b, p->c,
						p->c, &p->algo, &unused) == CUBLAS_STATUS_SUCCESS)
		return p;
	return choose(dev, at, p, g, b) ? p : NULL;
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
	if (!bias || g->gelu != GELU_TANH || g->ldc % 8 != 0 || !is_aligned(g->kept) ||
	    !is_aligned(g->c))
		f.then = GEMM_PLAIN;
	if (g->beta != 0.0f || !is_aligned(g->sum_a) || !is_aligned(g->sum_b))
		f.sum_a = f.sum_b = NULL;
	return f;
}

/* The same with nothing behind it but a bias. */
static struct gemm plain(const struct gemm *f)
{
	struct gemm p = *f;

	p.then = GEMM_PLAIN;
	p.sum_a = p.sum_b = NULL;
	return p;
}

/* False: it was refused, or has failed. */
static bool run(struct device *dev, const struct place *at, const struct gemm *g, const void *b)
{
	struct product *p = ready(dev, at, g, b);

	if (!p)
		return false;
	set_places(dev, at, p, g);
	cuda_range_push(dev, at->operation);
	lt_ok(dev, at, multiply(dev, p, g, b, &p->algo));
	cuda_range_pop(dev);
	cuda_ok(dev, at, cudaGetLastError());
	return true;
}

/* What of g is not in f, which has run. */
static void complete(struct device *dev, const struct gemm *g, const struct gemm *f)
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

void cuda_gemm(struct device *dev, const struct gemm *g)
{
	const struct place *at = AT("gemm", g->m, g->n, g->k, 0);
	const void *b = g->b_is_weight ? cuda_narrow(dev, g->b) : g->b;

	if (g->m == 0 || g->n == 0 || dev->error[0] != '\0')
		return;
	if (dev->compute == COMPUTE_BF16 && g->b_is_weight && b == g->b) {
		cuda_fail(dev, at, "its weights do not come from alloc_weights");
		return;
	}
	const struct gemm most = fused(dev, g), least = plain(&most);
	const struct gemm *const tries[] = { &most, &least };
	for (size_t i = 0; i < 2 && dev->error[0] == '\0'; i++) {
		struct gemm f = *tries[i];
		if (f.then == GEMM_PLAIN) {
			f.c = g->then == GEMM_GELU ? g->kept : g->c;
			f.kept = NULL;
		}
		if (run(dev, at, &f, b)) {
			complete(dev, g, &f);
			return;
		}
	}
}

/* --- open and close ----------------------------------------------------------------------- */

bool cuda_gemm_open(struct device *dev, char *why)
{
	struct gemm_state *s = dev->gemms = calloc(1, sizeof(*s));

	if (s && cublasLtCreate(&s->library) == CUBLAS_STATUS_SUCCESS &&
	    (s->workspace = cuda_take(dev, WORKSPACE_BYTES, "matrix products")) != NULL &&
	    cudaEventCreate(&s->start) == cudaSuccess && cudaEventCreate(&s->end) == cudaSuccess) {
		gemm_load_cache(dev);
		return true;
	}
	snprintf(why, BACKEND_TEXT_BYTES, "cuda: cuBLASLt does not start on %s", dev->name);
	return false;
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
	for (size_t i = 0; i < s->products; i++) {
		const struct product *p = &s->product[i];
		if (p->what)
			cublasLtMatmulDescDestroy(p->what);
		if (p->a)
			cublasLtMatrixLayoutDestroy(p->a);
		if (p->b)
			cublasLtMatrixLayoutDestroy(p->b);
		if (p->c)
			cublasLtMatrixLayoutDestroy(p->c);
	}
	cuda_give(dev, s->workspace);
	if (s->start)
		cudaEventDestroy(s->start);
	if (s->end)
		cudaEventDestroy(s->end);
	free(s->product);
	free(s);
	dev->gemms = NULL;
}
