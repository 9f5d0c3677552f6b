/* SPDX-License-Identifier: MIT */
/* product.c - one kind of matrix product as cuBLASLt describes it: types, layouts, epilogue, and
 * the call.
 *
 * Row-major C = op(A) op(B) is, read by columns, C^T = op(B)^T op(A)^T: our B is the library's
 * first operand, our A its second, and a bias runs along the library's rows. */
#include "kernels/cuda/lib/gemm.h"

#include <stdio.h>

bool gemm_lt_ok(struct device *dev, const struct place *at, cublasStatus_t status)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return true;
	char text[96];
	snprintf(text, sizeof(text), "cuBLASLt: %s", cublasLtGetStatusString(status));
	cuda_fail(dev, at, text);
	return false;
}

/* Whose scales have two levels: the upper one is a factor of the product, and made on the
 * device. */
static bool is_fp4(uint32_t flags)
{
	return (flags & FLAG_CODES) &&
	       scale_mode(flags, MODE_A_BIT) == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
}

static bool make_layouts(struct device *dev, const struct place *at, struct product *p)
{
	const struct kind *k = &p->kind;
	bool ta = k->flags & FLAG_TRANS_A, tb = k->flags & FLAG_TRANS_B;
	cudaDataType_t in = k->flags & FLAG_BF16 ? CUDA_R_16BF : CUDA_R_32F;
	cudaDataType_t out = k->flags & FLAG_GRADIENT ? CUDA_R_32F : in;
	cudaDataType_t first = in, second = in; /* the library's */

	if (is_fp4(k->flags)) {
		first = second = CUDA_R_4F_E2M1;
	} else if (k->flags & FLAG_CODES) {
		first = k->flags & FLAG_B_E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
		second = k->flags & FLAG_A_E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
	}
	return gemm_lt_ok(dev, at,
			  cublasLtMatrixLayoutCreate(&p->a, first, tb ? k->k : k->n,
						     tb ? k->n : k->k, (int64_t)k->ldb)) &&
	       gemm_lt_ok(dev, at,
			  cublasLtMatrixLayoutCreate(&p->b, second, ta ? k->m : k->k,
						     ta ? k->k : k->m, (int64_t)k->lda)) &&
	       gemm_lt_ok(dev, at,
			  cublasLtMatrixLayoutCreate(&p->c, out, k->n, k->m, (int64_t)k->ldc));
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

	if (!gemm_lt_ok(dev, at,
			cublasLtMatmulDescCreate(&p->what, CUBLAS_COMPUTE_32F, CUDA_R_32F)) ||
	    !gemm_lt_ok(dev, at,
			cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSA, &a,
						       sizeof(a))) ||
	    !gemm_lt_ok(dev, at,
			cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSB, &b,
						       sizeof(b))))
		return false;
	if (!gemm_lt_ok(dev, at,
			cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE,
						       &epilogue, sizeof(epilogue))))
		return false;
	return !(p->kind.flags & (FLAG_GELU | FLAG_SLOPE)) ||
	       gemm_lt_ok(dev, at,
			  cublasLtMatmulDescSetAttribute(p->what,
							 CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
							 &aux_ld, sizeof(aux_ld)));
}

/* How many elements share a scale. Partial sums of FP8 go on in fp32 every so often, which is what
 * the library does unless it is asked for speed (CUBLASLT_MATMUL_DESC_FAST_ACCUM). */
static bool make_modes(struct device *dev, const struct place *at, struct product *p)
{
	const int32_t first = (int32_t)scale_mode(p->kind.flags, MODE_B_BIT);
	const int32_t second = (int32_t)scale_mode(p->kind.flags, MODE_A_BIT);
	const int32_t on_device = CUBLASLT_POINTER_MODE_DEVICE;

	if (!(p->kind.flags & FLAG_CODES))
		return true;
	if (is_fp4(p->kind.flags) &&
	    !gemm_lt_ok(dev, at,
			cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_POINTER_MODE,
						       &on_device, sizeof(on_device))))
		return false;
	return gemm_lt_ok(dev, at,
			  cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
							 &first, sizeof(first))) &&
	       gemm_lt_ok(dev, at,
			  cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
							 &second, sizeof(second)));
}

bool product_describe(struct device *dev, const struct place *at, struct product *p)
{
	return make_layouts(dev, at, p) && make_what(dev, at, p) && make_modes(dev, at, p);
}

static void set_scales(struct device *dev, const struct place *at, struct product *p)
{
	void *const *scale = dev->gemms->scale;

	gemm_lt_ok(dev, at,
		   cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
						  &scale[1], sizeof(scale[1])));
	gemm_lt_ok(dev, at,
		   cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
						  &scale[0], sizeof(scale[0])));
}

void product_set_places(struct device *dev, const struct place *at, struct product *p,
			const struct gemm *g)
{
	const void *bias = g->bias ? cuda_narrow(dev, g->bias) : g->sum_a ? g->sum_a : g->sum_b;

	if (bias)
		gemm_lt_ok(dev, at,
			   cublasLtMatmulDescSetAttribute(p->what,
							  CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
							  sizeof(bias)));
	if (g->kept)
		gemm_lt_ok(dev, at,
			   cublasLtMatmulDescSetAttribute(p->what,
							  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
							  &g->kept, sizeof(g->kept)));
	if (p->kind.flags & FLAG_CODES)
		set_scales(dev, at, p);
}

cublasStatus_t product_multiply(struct device *dev, const struct product *p, const struct gemm *g,
				const void *b, const cublasLtMatmulAlgo_t *algo, void *workspace)
{
	const struct gemm_state *s = dev->gemms;
	bool by_device = is_fp4(p->kind.flags);
	const float *alpha = by_device ? &s->factors[0] : &g->alpha;
	const float *beta = by_device ? &s->factors[1] : &g->beta;

	return cublasLtMatmul(s->library, p->what, alpha, b, p->a, g->a, p->b, beta, g->c, p->c,
			      g->c, p->c, algo, workspace, GEMM_WORKSPACE_BYTES, dev->stream);
}

void product_clear(struct product *p)
{
	if (p->what)
		cublasLtMatmulDescDestroy(p->what);
	if (p->a)
		cublasLtMatrixLayoutDestroy(p->a);
	if (p->b)
		cublasLtMatrixLayoutDestroy(p->b);
	if (p->c)
		cublasLtMatrixLayoutDestroy(p->c);
}
