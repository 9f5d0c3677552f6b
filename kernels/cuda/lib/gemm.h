/* SPDX-License-Identifier: MIT */
/* gemm.h - the kinds of products that gemm.c has met, each with its algorithm; gemm_choices.c keeps
 * them. */
#ifndef KERNELS_CUDA_GEMM_H
#define KERNELS_CUDA_GEMM_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

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
	FLAG_SUM_B = 1024
};
enum { FLAGS_FUSED = FLAG_GELU | FLAG_SLOPE | FLAG_SUM_A | FLAG_SUM_B };

struct product {
	struct kind kind;
	cublasLtMatmulAlgo_t algo;
	cublasLtMatmulDesc_t what;
	cublasLtMatrixLayout_t a, b, c; /* the library's */
	bool is_refused;                /* with this epilogue there is no algorithm */
};

struct gemm_state {
	cublasLtHandle_t library;
	void *workspace;
	struct product *product;
	size_t products, room;
	cudaEvent_t start, end;
	bool is_new; /* something was measured that is not in the cache */
};

/* NULL: not met yet. */
struct product *gemm_find(struct gemm_state *s, const struct kind *kind);
/* NULL: out of memory. Moves all others. */
struct product *gemm_add(struct gemm_state *s, const struct kind *kind);

/* The cache file of this GPU and library, below dev->cache; "" there: none. */
void gemm_load_cache(struct device *dev);
void gemm_save_cache(struct device *dev);

#endif
