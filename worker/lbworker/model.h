/* SPDX-License-Identifier: MIT */
/* model.h - the Llama decoder: shapes, parameters, and one pass forward and backward.
 *
 * Touvron et al. 2023: per layer x += Wo attention(rope(Wqkv rmsnorm(x))), then
 * x += Wdown swiglu(Wgate_up rmsnorm(x)); a norm and the head (tied to the embedding or not) at
 * the end. Weights are stored [out, in] as Hugging Face does, so y = x W^T; query, key and value
 * weights lie one after the other, as do gate and up, and each triple is one matrix product.
 *
 * All parameters are one array, and so are their gradients and both moments of the optimizer: the
 * matrices first (these decay), then the norm weights (these do not). Activations and gradients of
 * one micro-batch are planned once, when the model is made; a step allocates nothing. */
#ifndef LBWORKER_MODEL_H
#define LBWORKER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/backend.h"

struct model_shape {
	size_t vocab, dim, layers, heads, kv_heads, ffn;
	bool tied;			/* the head is the embedding */
	float norm_eps;
	double rope_theta;
};

/* A named shape; the names are those of torchtitan where it has them. */
struct model_flavor {
	const char *name;
	const char *help;
	struct model_shape shape;
};
/* NULL when there is none of that name; names (if not NULL) then lists all, "a, b, c". */
const struct model_flavor *model_flavor_find(const char *name, const char **names);

/* One tensor as a checkpoint knows it: a name of Hugging Face and a piece of the arrays. */
struct model_tensor {
	char name[96];
	size_t offset, rows, columns;	/* columns 0: a vector of `rows` */
};

struct model_layer {		/* offsets into the parameter array */
	size_t qkv, out, gate_up, down, attention_norm, ffn_norm;
};

struct model_activations;	/* private to forward.c */

struct model {
	struct model_shape shape;
	const struct backend *backend;
	struct device *device;			/* borrowed */
	size_t batch, seq;			/* one micro-batch: batch sequences of seq tokens */

	size_t parameters, decayed;		/* counts; the first `decayed` are matrices */
	size_t embedding, head, final_norm;	/* offsets */
	struct model_layer *layer;
	struct model_tensor *tensor;		/* in the order of the checkpoint */
	size_t tensors;

	float *weights, *grads;			/* device, [parameters] */
	struct model_activations *activations;
};

/* Checks the shape, plans and allocates everything. 0, or -1 with err and nothing left behind. */
int model_create(struct model **out, const struct model_shape *shape,
		 const struct backend *backend, struct device *device, size_t batch, size_t seq,
		 struct err *err);
/* The same without device and memory: only names, places and sizes. */
int model_plan(struct model **out, const struct model_shape *shape, size_t batch, size_t seq,
	       struct err *err);
void model_destroy(struct model *model);	/* NULL is fine */

/* Normal with std, residual outputs (Wo, Wdown) with std/sqrt(2 layers), norms 1: Radford 2019. */
void model_init_weights(struct model *model, uint64_t seed, double std);

/* Forward and backward for tokens and targets [batch, seq] (host memory, ids below vocab).
 * The gradient of scale * (sum of all token losses) replaces model->grads, or is added when
 * `accumulate`. *loss_sum gets the sum of the token losses. */
int model_backprop(struct model *model, const int32_t *tokens, const int32_t *targets, float scale,
		   bool accumulate, double *loss_sum, struct err *err);

/* The same without gradients. */
int model_loss(struct model *model, const int32_t *tokens, const int32_t *targets,
	       double *loss_sum, struct err *err);

/* private to model.c and forward.c */
struct model_activations *activations_create(const struct model *model, struct err *err);
void activations_destroy(const struct model *model, struct model_activations *a);

#endif
