/* SPDX-License-Identifier: MIT */
/* sdpa_graph.h - attention as a list of cuDNN's operations, one pass of it (sdpa.h has the
 * formulas). */
#ifndef KERNELS_CUDA_SDPA_GRAPH_H
#define KERNELS_CUDA_SDPA_GRAPH_H

#include "kernels/cuda/lib/sdpa.h"

enum { SDPA_DESCRIPTORS_MAX = 160, SDPA_OPERATIONS_MAX = 32, SDPA_TEXT_BYTES = 512 };

struct sdpa_graph {
	const struct cudnn *api;
	struct attention a;
	enum sdpa_pass pass;
	cudnnBackendDescriptor_t all[SDPA_DESCRIPTORS_MAX]; /* to be destroyed */
	size_t count;
	cudnnBackendDescriptor_t operation[SDPA_OPERATIONS_MAX];
	size_t operations;
	int64_t next_virtual;        /* unique ids of virtual tensors; SDPA_TENSORS at first */
	char error[SDPA_TEXT_BYTES]; /* the first one; nothing is done behind it */
};

/* api, a, pass and next_virtual are given. */
void sdpa_graph_build(struct sdpa_graph *g);
void sdpa_graph_clear(struct sdpa_graph *g);

/* Any descriptor: made (NULL: it failed), given attributes, made final. */
bool sdpa_good(struct sdpa_graph *g, cudnnStatus_t status, const char *what);
cudnnBackendDescriptor_t sdpa_make(struct sdpa_graph *g, cudnnBackendDescriptorType_t type);
void sdpa_set(struct sdpa_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
	      cudnnBackendAttributeType_t type, int64_t count, const void *values);
void sdpa_link(struct sdpa_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
	       cudnnBackendDescriptor_t other);
void sdpa_finalize(struct sdpa_graph *g, cudnnBackendDescriptor_t d, const char *what);

#endif
