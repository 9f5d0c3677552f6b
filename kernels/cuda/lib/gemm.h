/* SPDX-License-Identifier: MIT */
/* gemm.h - the kinds of products that gemm.c has met, each with its algorithm: product.c describes
 * them to cuBLASLt, gemm_measure.c chooses, gemm_choices.c keeps what was chosen. */
#ifndef KERNELS_CUDA_GEMM_H
#define KERNELS_CUDA_GEMM_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/few_bits.h"

/* What makes two products of one kind: every byte of it is set. */
struct kind {
	uint64_t m, n, k, lda, ldb, ldc;
	uint32_t flags, align; /* FLAG_*; bytes that all pointers are aligned to */
};
enum {
	FLAG_TRANS_A = 1,
	FLAG_TRANS_B = 2,
	FLAG_ADD = 4,
	FLAG_BIAS = 8,
	FLAG_GRADIENT = 16,
	FLAG_BF16 = 32,
	FLAG_FIXED = 64,
	FLAG_GELU = 128,
	FLAG_SLOPE = 256,
	FLAG_SUM_A = 512,
	FLAG_SUM_B = 1024,
	FLAG_CODES = 2048, /* A and B are codes: e2m1 where scales are e4m3, else e4m3fn or */
	FLAG_A_E5M2 = 4096,
	FLAG_B_E5M2 = 8192,
	FLAG_MEASURED = 16384, /* no product: whether that of codes is slower than one of A and B */
	/* how the library has their scales (cublasLtMatmulMatrixScale_t), three bits each */
	MODE_A_BIT = 15,
	MODE_B_BIT = 18
};
/* What the library may be asked to do behind a product. */
enum { FLAGS_FUSED = FLAG_BIAS | FLAG_GELU | FLAG_SLOPE | FLAG_SUM_A | FLAG_SUM_B };

static inline uint32_t scale_mode(uint32_t flags, int mode_bit)
{
	return flags >> mode_bit & 7;
}

struct product {
	struct kind kind;
	cublasLtMatmulAlgo_t algo;
	cublasLtMatmulDesc_t what;
	cublasLtMatrixLayout_t a, b, c; /* the library's */
	/* with this epilogue there is no algorithm, or the plain product and our kernels behind it
	 * are faster */
	bool is_refused;
	bool is_compared; /* that was looked at */
};

struct gemm_state {
	cublasLtHandle_t library;
	void *workspace, *beside; /* of products that run aside; NULL: not yet */
	struct product *product;
	size_t products, room;
	cudaEvent_t start, end;
	bool is_new; /* something was measured that is not in the cache */
	/* products of few bits (narrow.c): A and B as numbers, or as codes with their scales behind
	 * them */
	struct work_area operand[2];
	void *scale[2];
	const float *factors; /* alpha and beta of a product of e2m1, in the device's memory */
	/* The other order of the codes that the product before had of an operand; in: of which,
	 * NULL: none */
	struct {
		struct work_area area;
		const void *in;
		struct stored shape;
		struct format format;
		float *scale;
	} kept;
	bool emulates; /* LB_CUDA_FEW_BITS=emulated: never as codes */
};

static const size_t GEMM_WORKSPACE_BYTES = (size_t)64 << 20;

/* NULL: not met yet. */
struct product *gemm_find(struct gemm_state *s, const struct kind *kind);
/* NULL: out of memory. Moves all others. */
struct product *gemm_add(struct gemm_state *s, const struct kind *kind);

/* False, and the failure is kept. */
bool gemm_lt_ok(struct device *dev, const struct place *at, cublasStatus_t status);

/* A product of operands as they are: cuda_gemm without use_a and use_b. */
void gemm_plain(struct device *dev, const struct gemm *g);
struct kind gemm_kind(const struct device *dev, const struct gemm *g, const void *b,
		      uint32_t more_flags);
/* The product of g's kind, with more flags of it, ready to run; NULL and a failure, or it is
 * refused. Moves all others. */
struct product *gemm_ready(struct device *dev, const struct place *at, const struct gemm *g,
			   const void *b, uint32_t more_flags);
/* What of g is not in f, which has run: by kernels of ours. */
void gemm_complete(struct device *dev, const struct gemm *g, const struct gemm *f);
/* The library's descriptors of p->kind; false and a failure. */
bool product_describe(struct device *dev, const struct place *at, struct product *p);
/* Bias, sums and what GELU keeps lie elsewhere in every layer: their places are set before each
 * call. */
void product_set_places(struct device *dev, const struct place *at, struct product *p,
			const struct gemm *g);
cublasStatus_t product_multiply(struct device *dev, const struct product *p, const struct gemm *g,
				const void *b, const cublasLtMatmulAlgo_t *algo, void *workspace);
void product_clear(struct product *p);

/* narrow.c: the operand of g that lies at `in` as that product would have it made, with room for
 * it: where the product looks for it, or in `own`, codes only. False: it has no use for it, or a
 * failure. */
bool narrow_operand(struct device *dev, const struct place *at, const struct gemm *g,
		    const void *in, struct work_area *own, struct few_bits *f);

/* A product to be timed, with what our kernels do behind it. */
struct trial {
	const struct product *product;
	const cublasLtMatmulAlgo_t *algo;
	const struct gemm *asked, *whole; /* of the library, of us */
	const void *b;
	void (*behind)(struct device *dev, const struct gemm *whole, const struct gemm *asked);
};

/* Milliseconds of some products after one to warm up; a huge number when it fails. */
float gemm_time(struct device *dev, const struct place *at, const struct trial *t);
/* It may be repeated, and a stopwatch may decide. */
bool gemm_may_measure(const struct device *dev, const struct product *p);
/* p->algo; false and a failure, or p->is_refused. */
bool gemm_choose_algorithm(struct device *dev, const struct place *at, struct product *p,
			   const struct gemm *g, const void *b);

/* The cache file of this GPU and library, below dev->cache; "" there: none. */
void gemm_load_cache(struct device *dev);
void gemm_save_cache(struct device *dev);

#endif
