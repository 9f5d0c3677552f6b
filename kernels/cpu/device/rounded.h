/* SPDX-License-Identifier: MIT */
/* rounded.h - the operations of cpu.h whose results a device in bf16 rounds (rounded.c); contracts
 * in kernels/backend.h. */
#ifndef KERNELS_CPU_ROUNDED_H
#define KERNELS_CPU_ROUNDED_H

#include "kernels/cpu/cpu.h"

void rounded_gemm(struct device *dev, const struct gemm *g);
void rounded_embed_forward(struct device *dev, void *out, const float *table, const int32_t *tokens,
			   size_t rows, size_t dim);
void rounded_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum, const void *x,
			     const void *delta, const float *weight, size_t rows, size_t dim,
			     float eps);
void rounded_rmsnorm_backward(struct device *dev, void *dx, float *dweight, const void *dout,
			      const void *x, const float *rstd, const float *weight, size_t rows,
			      size_t dim, bool accumulate);
void rounded_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd, void *sum,
			       const void *x, const void *delta, const float *weight,
			       const float *bias, size_t rows, size_t dim, float eps);
void rounded_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
				const void *dout, const void *x, const float *mean,
				const float *rstd, const float *weight, size_t rows, size_t dim,
				bool accumulate);
void rounded_bias_forward(struct device *dev, void *y, const float *bias, size_t rows, size_t dim);
void rounded_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
			       size_t seq, size_t dim);
void rounded_rope(struct device *dev, void *qkv, const float *table, const struct attention *a,
		  bool inverse);
void rounded_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			       const struct attention *a);
void rounded_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
				const float *lse, const void *qkv, const float *table,
				const struct attention *a);
void rounded_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			    size_t width);
void rounded_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
			     const void *gate_up, size_t rows, size_t width);
void rounded_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
			  enum gelu_form form);
void rounded_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x,
			   size_t count, enum gelu_form form);
void rounded_cross_entropy(struct device *dev, float *loss, void *logits, const int32_t *targets,
			   size_t rows, size_t vocab, float scale);

#endif
