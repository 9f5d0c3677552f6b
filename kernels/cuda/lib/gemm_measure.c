/* SPDX-License-Identifier: MIT */
/* gemm_measure.c - which of cuBLASLt's algorithms computes a product: the fastest of CANDIDATES on
 * the operands at hand, or, where the same bits are asked for, the library's first proposal: a
 * stopwatch says something else every time. A gradient of weights sums over many rows into few
 * elements: for it the first two are also tried with that sum in 2, 4 or 8 parts, as the library's
 * heuristics may not have it.
 *
 * A product that adds to C cannot be repeated: it takes what was measured for the one that does
 * not, or the first proposal. */
#include "kernels/cuda/lib/gemm.h"

enum { CANDIDATES = 16, SPLIT = 2, SPLITS = 3, TRIALS = CANDIDATES + SPLIT * SPLITS, REPEATS = 3 };

/* Sums of parts are kept in fp32, as backend.h promises: not in the output's type, nor in place.
 * The order of those in workspace is fixed; without any no two algorithms can differ in it. */
static uint32_t schemes_of(uint32_t flags)
{
	return flags & FLAG_FIXED ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE
				  : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE |
					    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static int propose(struct device *dev, const struct place *at, const struct product *p,
		   cublasLtMatmulHeuristicResult_t out[CANDIDATES])
{
	const uint32_t align = p->kind.align;
	const uint32_t schemes = schemes_of(p->kind.flags);
	const size_t workspace = GEMM_WORKSPACE_BYTES;
	const struct {
		cublasLtMatmulPreferenceAttributes_t name;
		const void *value;
		size_t bytes;
	} attributes[] = {
		{ CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace) },
		{ CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof(align) },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof(align) },
	};
	cublasLtMatmulPreference_t preference;
	int found = 0;

	if (!gemm_lt_ok(dev, at, cublasLtMatmulPreferenceCreate(&preference)))
		return 0;
	bool good = true;
	for (size_t i = 0; good && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		good = gemm_lt_ok(dev, at,
				  cublasLtMatmulPreferenceSetAttribute(
					  preference, attributes[i].name, attributes[i].value,
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

float gemm_time(struct device *dev, const struct place *at, const struct trial *t)
{
	const struct gemm_state *s = dev->gemms;
	const float never = 1e30f;
	float ms = never;

	for (int i = 0; i <= REPEATS; i++) {
		if (i == 1)
			cudaEventRecord(s->start, dev->stream);
		if (product_multiply(dev, t->product, t->asked, t->b, t->algo, s->workspace) !=
		    CUBLAS_STATUS_SUCCESS)
			return never;
		if (t->behind)
			t->behind(dev, t->whole, t->asked);
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

bool gemm_may_measure(const struct device *dev, const struct product *p)
{
	return !(p->kind.flags & (FLAG_ADD | FLAG_FIXED)) && !dev->is_recording;
}

static int fastest(struct device *dev, const struct place *at, const struct product *p,
		   const struct gemm *g, const void *b,
		   const cublasLtMatmulHeuristicResult_t *proposal, int found)
{
	float least = 0;
	int best = 0;

	for (int i = 0; i < found; i++) {
		const struct trial t = {
			.product = p, .asked = g, .b = b, .algo = &proposal[i].algo
		};
		float ms = gemm_time(dev, at, &t);
		if (i == 0 || ms < least) {
			least = ms;
			best = i;
		}
	}
	return best;
}

/* proposal[from] with its sum in so many parts, behind the others, if the library has that. */
static int add_split(struct device *dev, const struct product *p,
		     cublasLtMatmulHeuristicResult_t proposal[TRIALS], int found, int from,
		     int32_t parts)
{
	const uint32_t in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	cublasLtMatmulHeuristicResult_t more = proposal[from], check;

	if (cublasLtMatmulAlgoConfigSetAttribute(&more.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
						 &parts, sizeof(parts)) != CUBLAS_STATUS_SUCCESS ||
	    cublasLtMatmulAlgoConfigSetAttribute(&more.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
						 &in_fp32,
						 sizeof(in_fp32)) != CUBLAS_STATUS_SUCCESS ||
	    cublasLtMatmulAlgoCheck(dev->gemms->library, p->what, p->a, p->b, p->c, p->c,
				    &more.algo, &check) != CUBLAS_STATUS_SUCCESS ||
	    check.workspaceSize > GEMM_WORKSPACE_BYTES)
		return found;
	proposal[found] = more;
	return found + 1;
}

static int add_splits(struct device *dev, const struct product *p,
		      cublasLtMatmulHeuristicResult_t proposal[TRIALS], int found)
{
	int all = found;

	for (int i = 0; i < found && i < SPLIT; i++)
		for (int32_t parts = 2; parts <= 1 << SPLITS; parts *= 2)
			all = add_split(dev, p, proposal, all, i, parts);
	return all;
}

bool gemm_choose_algorithm(struct device *dev, const struct place *at, struct product *p,
			   const struct gemm *g, const void *b)
{
	cublasLtMatmulHeuristicResult_t proposal[TRIALS];
	int found, best;

	if (take_twin(dev, p))
		return true;
	found = propose(dev, at, p, proposal);
	p->is_refused = found == 0 && (p->kind.flags & (FLAGS_FUSED | FLAG_CODES));
	dev->gemms->is_new = true;
	if (p->is_refused)
		return false;
	if (found == 0) {
		cuda_fail(dev, at, "cuBLASLt has no algorithm for it");
		return false;
	}
	if (!gemm_may_measure(dev, p)) {
		p->algo = proposal[0].algo;
		return true;
	}
	if (g->trans_a && !g->b_is_weight)
		found = add_splits(dev, p, proposal, found);
	best = fastest(dev, at, p, g, b, proposal, found);
	p->algo = proposal[best].algo;
	return true;
}
