/* SPDX-License-Identifier: MIT */
/* sdpa.h - causal attention as graphs of cuDNN, forward and backward, by its C interface.
 *
 *   forward   s = scale q k^T; masked where key > query; p = softmax(s); out = p v;
 *             stats = max + log sum exp
 *   backward  p = exp(s - stats);  dv = p^T dout;  ds = p (dout v^T - rowsum(dout out)) scale;
 *             dq = ds k;  dk = ds^T q
 *
 * dq is added up in fp32 and rounded by cuDNN; what turns it back by its position is
 * ops/heads_backward.cu. The rotation cannot be part of the graphs: cuDNN 9.19 has no engine where
 * queries or keys are anything but memory, and runs none that ends with the sum.
 *
 * A graph needs no GPU to be built: with `properties` (JSON of a GPU, as cuDNN writes it) it is
 * planned for that one. */
#ifndef KERNELS_CUDA_SDPA_H
#define KERNELS_CUDA_SDPA_H

#include "kernels/backend.h"
#include "kernels/cuda/lib/cudnn_api.h"

/* Tensors that the caller provides, by their unique ids. ACCUMULATED: the sum of dq in fp32
 * [B,H,T,C], zeroed before each run (BACKWARD_FIXED has none); ALONG: fp32 [B,H,T]; DQ, DK and DV
 * lie in dqkv; DK and DV are [B,T,H,C] where heads are shared. */
/* clang-format off */
enum sdpa_tensor {
	SDPA_Q = 1, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_DOUT, SDPA_DQ, SDPA_DK, SDPA_DV,
	SDPA_ALONG, SDPA_ACCUMULATED, SDPA_SCALE, SDPA_MASKED, SDPA_ONE, SDPA_TENSORS
};
/* clang-format on */

/* FIXED: the same bits every time, at the price of a workspace of B H T^2 bf16: ds, from which dq
 * is one product, instead of atomic additions. (So NVIDIA's own front end does it; the numerical
 * notes of engines do not tell the two apart.) */
enum sdpa_pass { SDPA_FORWARD, SDPA_BACKWARD, SDPA_BACKWARD_FIXED, SDPA_PASSES };

struct sdpa_plan;

/* NULL with a line in why[bytes]. Exactly one of handle and properties is given. */
struct sdpa_plan *sdpa_plan_create(const struct cudnn *api, cudnnHandle_t handle,
				   const char *properties, const struct attention *a,
				   enum sdpa_pass pass, char *why, size_t bytes);
void sdpa_plan_destroy(struct sdpa_plan *plan); /* NULL is fine */

size_t sdpa_plan_workspace(const struct sdpa_plan *plan); /* bytes */
size_t sdpa_plan_operations(const struct sdpa_plan *plan);

/* pointers[SDPA_...]; those a pass does not use are not looked at. 0, or -1 with a line in why. */
int sdpa_plan_run(const struct sdpa_plan *plan, cudnnHandle_t handle,
		  void *const pointers[SDPA_TENSORS], void *workspace, char *why, size_t bytes);

#endif
