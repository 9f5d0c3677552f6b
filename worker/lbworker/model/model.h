/* SPDX-License-Identifier: MIT */
/* model/ - what is trained: shapes, parameters, and a pass as calls of kernels/backend.h.
 *
 * model.h - decoders of several families: shapes, parameters, and one pass forward and backward.
 *
 * Weights are stored as Hugging Face stores them: [out, in] so that y = x W^T, in gpt2 [in, out].
 * Query, key and value weights lie one after the other, as do gate and up, and each is one matrix
 * product.
 *
 * All parameters are one array, and so are their gradients and both moments of the optimizer: the
 * matrices first (these decay), then norm weights and biases (these do not). Activations and
 * gradients of one micro-batch are planned once, when the model is made; a step allocates
 * nothing. */
#ifndef LBWORKER_MODEL_H
#define LBWORKER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "kernels/backend.h"
#include "kernels/comm.h"
#include "worker/lbworker/families/shape.h"
#include "worker/lbworker/recipes/precision.h"

/* What a layer does not keep, so that backward computes it once more: a bit for each part of
 * struct layer_kept. Results are the same to the bit; only bf16 behind a GELU differs by a
 * rounding, where the product before it applied that to its fp32 sum. */
enum again {
	AGAIN_NORMED = 1,                          /* what both norms give */
	AGAIN_QKV = 2,                             /* query, key and value: a product */
	AGAIN_ATTENDED = 4,                        /* attention itself */
	AGAIN_MIDDLE = 8,                          /* the stream between the halves: a product */
	AGAIN_UP = 16,                             /* what goes into the activation: a product */
	AGAIN_HIDDEN = 32,                         /* what comes out of it */
	AGAIN_ALL = 63,                            /* all but the layer's input */
	AGAIN_CHEAP = AGAIN_NORMED | AGAIN_HIDDEN, /* no product, no attention */
	AGAIN_PARTS = 6
};
/* "normed", ...: the name of a part, 0 .. AGAIN_PARTS - 1 */
const char *model_part_name(int part);

/* Tensor parallelism (Shoeybi et al. 2019): `degree` ranks hold a model together, each a slice of
 * the heads, of the feed-forward and of the vocabulary; norms and biases of the stream are whole on
 * each. degree 0 or 1: all is here. */
struct model_split {
	int rank, degree;
	bool sequence; /* norms and the stream by rows, too (Korthikanti et al. 2022) */
};

/* Context parallelism (Dubey et al. 2024, as torchtitan has it): `degree` ranks share each
 * sequence. Of 2 * degree chunks rank i has i and 2 * degree - 1 - i, so that all have as much of
 * the past to look at; keys and values are gathered. degree 0 or 1: a sequence is all here. */
struct model_context {
	int rank, degree;
};

/* Pipeline parallelism (Narayanan et al. 2019): `degree` ranks have some of the layers each, one
 * stage behind the other; stage r those from end[r - 1], or 0, on and below end[r]. The first has
 * the tables before them, too, the last the head; norms and biases are on all. `depth`
 * micro-batches are under way at a time. degree 0 or 1: all is here. */
enum { MODEL_STAGES_MAX = 64 };
struct model_pipeline {
	int rank, degree, depth;
	uint16_t end[MODEL_STAGES_MAX];
};

/* The way to the others of such ranks: each gives each a piece, as in kernels/comm.h; [degree]. */
struct model_peers {
	void (*exchange)(void *arg, const struct comm_part *send, const struct comm_part *receive);
	void *arg;
};

/* What the optimizer keeps its moments in. 8BIT: torchao's, a code of a map of 256 numbers each,
 * and a scale for MOMENTS_SHARE of them (arXiv 2110.02861). */
enum moments { MOMENTS_FP32, MOMENTS_BF16, MOMENTS_8BIT };
/* What becomes of weights after an update. All but FP32 keep them in bf16 and have no copy of more
 * bits: to nearest; by chance; or what rounding has lost, in bf16, comes back in the next
 * update. */
enum weight_kind { WEIGHTS_FP32, WEIGHTS_NEAREST, WEIGHTS_STOCHASTIC, WEIGHTS_KAHAN };

struct model;
struct model_options {
	size_t batch, seq; /* one micro-batch: batch sequences of seq tokens */
	unsigned again;    /* AGAIN_ bits, of every layer; 0: all is kept */
	unsigned more;     /* and these of the first `more_layers` */
	size_t more_layers;
	enum compute compute; /* what the device was opened to compute in */
	size_t head_elements; /* logits held at a time; 0: some, as the type asks for */
	enum moments moments; /* of the optimizer */
	enum weight_kind weights;
	bool is_base;  /* of adapters (lora/), which alone are trained: it has no moments */
	bool averaged; /* the optimizer keeps the weights' mean over steps, too */
	/* of the layers' matrices, in the compute type: nothing is added to them */
	bool narrow_gradients;
	/* Takes the memory of weights and gradients of a model that several ranks share; what it
	 * leaves NULL there was no room for. NULL: all of it is taken. For model_create only. */
	void (*take)(void *arg, struct model *m);
	void *take_arg;
	struct model_split split;
	struct model_context context; /* batch and seq are of the whole sequences */
	struct model_pipeline pipeline;
	/* What a token sees ends behind the last `separator` before it. */
	bool mask_documents;
	int32_t separator;
	float smoothing, z_loss; /* of the loss that is trained on: struct loss_terms */
	/* times the loss of Fedus et al. 2021 over all layers with experts, as transformers has it,
	 * is trained on, too, for each micro-batch by itself */
	float expert_loss;
};

/* Parameters that are used together: [first, first + count) of the arrays. */
struct model_unit {
	size_t first, count;
};

/* Who stands between a pass and parameters that are not all here (ranks/); members may be NULL. */
struct model_watch {
	void (*soon)(void *arg, size_t unit);    /* the next that is needed, after what follows */
	void (*need)(void *arg, size_t unit);    /* its weights are read next */
	void (*release)(void *arg, size_t unit); /* and are not, for a while */
	void (*done)(void *arg, size_t unit);    /* its gradient of this pass is complete */
	/* For devices that record programs: a number for what these calls will queue in the next
	 * pass; and that a recorded pass has done it, without them. */
	uint64_t (*program)(void *arg);
	void (*replayed)(void *arg);
	void *arg;
};

/* One tensor as a checkpoint knows it: a name of Hugging Face and a piece of the arrays. */
struct model_tensor {
	char name[96];
	size_t offset, rows, columns; /* columns 0: a vector of `rows` */
	enum extent row_extent, column_extent;
	/* u-muP (umup.h); without it 1, and rate and unit_gradient are not looked at */
	double rate, unit_gradient;
	double folded;   /* times that it is the weight of a model without u-muP */
	bool is_balance; /* no gradient moves it: model_balance() */
};

struct family;            /* families/family.h */
struct model_layer;       /* where its parameters lie: layout.h */
struct model_activations; /* activations.h */

struct model {
	struct model_shape shape; /* of our slice */
	struct model_options options;
	struct model *whole; /* where all of its tensors lie, a plan; NULL: it is all here */
	const struct family *family;
	const struct backend *backend;
	struct device *device; /* borrowed */
	size_t batch, seq;     /* as in options; of each sequence what is here */

	size_t parameters, decayed;  /* counts; the first `decayed` are matrices */
	size_t narrow, narrow_end;   /* those whose gradients are in the compute type */
	struct umup_scales scales;   /* of the products */
	struct model_layer *layer;   /* [layers], and one more for what is in no layer */
	struct model_tensor *tensor; /* in the order of the checkpoint */
	size_t tensors;

	/* Matrices before the layers, those of each layer, those behind; all vectors. One after the
	 * other they are all parameters. */
	struct model_unit *unit; /* [units]; may be empty */
	size_t units;            /* layers + 3 */
	/* [layers + 1] where those of each layer begin, and those behind the layers */
	size_t *vectors;

	float *weights;   /* device, [parameters] */
	float *grads;     /* device; model_grad() where some may be narrow */
	bool norms_whole; /* all query heads are normed as one, and all key heads */
	float *ones;      /* device, for norms with weights around 0: layer.h; else NULL */
	/* [layers * experts] tokens that backward passes have seen go to each since the caller last
	 * cleared it; NULL: there are no experts */
	uint64_t *loads;
	struct model_watch watch;
	struct model_peers peers;              /* where the model is split */
	struct model_peers sharers;            /* where sequences are */
	struct model_activations *activations; /* of the present micro-batch: one of */
	struct model_activations **under_way;  /* [depth] */
	struct precision *precision;           /* borrowed; NULL: nothing is of few bits */
};

/* The matrices that products of layer l read, which are all that its unit has; 0: they are not an
 * operand each (experts, u-muP). */
struct linear_matrix {
	enum module module;
	struct model_unit range;
};
size_t linear_matrices(const struct model *m, size_t l, struct linear_matrix out[MODULE_COUNT]);

static inline bool model_is_first_stage(const struct model *m)
{
	return m->options.pipeline.degree <= 1 || m->options.pipeline.rank == 0;
}

static inline bool model_is_last_stage(const struct model *m)
{
	return m->options.pipeline.degree <= 1 ||
	       m->options.pipeline.rank + 1 == m->options.pipeline.degree;
}

/* Layers of ours: from the first on, and below the end. */
static inline size_t model_first_layer(const struct model *m)
{
	return model_is_first_stage(m) ? 0 : m->options.pipeline.end[m->options.pipeline.rank - 1];
}

static inline size_t model_end_layer(const struct model *m)
{
	return model_is_last_stage(m) ? m->shape.layers
				      : m->options.pipeline.end[m->options.pipeline.rank];
}

/* The stage that has a unit of matrices; of vectors, which are on all, the first. */
int model_stage_of(const struct model *m, size_t unit);
/* What is here of a unit: all, or nothing. */
static inline struct model_unit model_unit_here(const struct model *m, size_t unit)
{
	bool is_here = unit + 1 == m->units || m->options.pipeline.degree <= 1 ||
		       model_stage_of(m, unit) == m->options.pipeline.rank;

	return (struct model_unit){ m->unit[unit].first, is_here ? m->unit[unit].count : 0 };
}
/* Of all vectors those that a stage's passes use. */
struct model_unit model_vectors_of(const struct model *m, int stage);
/* Whether tensor number i of a model may be read or written here. */
bool model_tensor_is_here(const struct model *m, size_t i);

/* Checks the shape, plans and allocates everything. 0, or -1 with err and nothing left behind. */
int model_create(struct model **out, const struct model_shape *shape, const struct backend *backend,
		 struct device *device, const struct model_options *options, struct err *err);
/* The model of which this one is a slice; itself when it is all here. */
static inline const struct model *model_whole(const struct model *m)
{
	return m->whole ? m->whole : m;
}

/* The same without device and memory: only names, places and sizes. */
int model_plan(struct model **out, const struct model_shape *shape,
	       const struct model_options *options, struct err *err);
void model_destroy(struct model *model); /* NULL is fine */

/* Normal with std, residual outputs with std/sqrt(2 layers), norms 1, biases 0: Radford 2019. With
 * u-muP std is 1 everywhere. */
void model_init_weights(struct model *model, uint64_t seed, double std);

/* Where the gradient of parameter `at` lies: fp32, or an activation for those from m->narrow on and
 * below m->narrow_end. */
static inline void *model_grad(const struct model *m, size_t at)
{
	size_t narrow = at <= m->narrow      ? 0
			: at > m->narrow_end ? m->narrow_end - m->narrow
					     : at - m->narrow;

	return (char *)m->grads + (at - narrow) * sizeof(float) +
	       narrow * compute_bytes(m->options.compute);
}

/* Bytes of all gradients. */
static inline size_t model_grads_bytes(const struct model *m)
{
	size_t narrow = m->narrow_end - m->narrow;

	return (m->parameters - narrow) * sizeof(float) +
	       narrow * compute_bytes(m->options.compute);
}

/* Forward and backward for tokens and targets [batch, options.seq] (host memory, ids below vocab),
 * as far as these are ours.
 * The gradient of scale * (sum of all token losses) replaces model->grads, or is added when
 * `accumulate`, which narrow gradients do not allow. *loss_sum gets the sum of the token losses. */
int model_backprop(struct model *model, const int32_t *tokens, const int32_t *targets, float scale,
		   bool accumulate, double *loss_sum, struct err *err);

/* The same, but only queued: *loss_sum lies in device memory and is added to when `accumulate`.
 * behind(arg), where it is not NULL, queues what belongs to the same pass, always the same; scale,
 * accumulate and whether there is something behind say which pass it is. The host's tokens may
 * change again. */
void model_queue(struct model *model, const int32_t *tokens, const int32_t *targets, float scale,
		 bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg);

/* --- a stage of a pipeline: a micro-batch in two halves, between which others may come --- */

/* What comes into this stage of micro-batch number `at` of those under way, and goes out of it:
 * `bytes` each. Of the first stage nothing comes in, of the last nothing goes out. */
size_t model_stream_bytes(const struct model *model);
void *model_stream_in(const struct model *model, int at);
void *model_stream_out(const struct model *model, int at);
/* The gradient of what goes out, which backward turns into that of what came in. */
void *model_stream_gradient(const struct model *model);
/* Only queued. The last stage sets *loss_sum (device memory) to the sum of the token losses, or
 * adds it; without gradients backward does not follow. */
struct model_half {
	int at;
	bool gradients, accumulate; /* the loss, and of the head the gradient */
	float scale;                /* as in model_backprop */
	double *loss_sum;
};
void model_stage_forward(struct model *model, const int32_t *tokens, const int32_t *targets,
			 const struct model_half *half);
/* On the last stage before any other forward. */
void model_stage_backward(struct model *model, const struct model_half *half);

/* Where the ranks that hold the model together have the stream by rows: each has the gradients of
 * norms of its own rows, and gets their sums. */
void model_sum_norms(const struct model *model);

/* The same without gradients. */
int model_loss(struct model *model, const int32_t *tokens, const int32_t *targets, double *loss_sum,
	       struct err *err);

/* Forward only; logits [rows, vocab] (host memory) of the tokens from `first` on. */
int model_logits(struct model *model, const int32_t *tokens, size_t first, size_t rows,
		 float *logits, struct err *err);

/* The same for a sequence that goes on, in a model of batch 1 that keeps everything: logits
 * [rows,vocab] of the last `rows` of the `count` tokens behind tokens[0..first). Those must be the
 * tokens of the calls before this one: their keys and values are there still. To the bit what
 * model_logits gives, on a CPU. */
int model_extend(struct model *model, const int32_t *tokens, size_t first, size_t count,
		 size_t rows, float *logits, struct err *err);

/* The bias of each expert that had less than the mean of its layer goes up by `rate`, that of each
 * that had more down, less their mean (torchtitan's; DeepSeek-AI 2024). loads: as model->loads. */
void model_balance(struct model *model, const uint64_t *loads, double rate);

/* What a model of that shape takes, without a device. 0, or -1 when the shape is refused. */
struct model_cost {
	uint64_t parameters;
	uint64_t active; /* of these, those that a token meets: not all experts */
	uint64_t
		/* of the active ones, those in matrix products: the head, not a table */
		multiplied;
	uint64_t matrices; /* of the parameters, those that lie first */
	uint64_t gradient_bytes;
	uint64_t widest;           /* of a unit */
	uint64_t activation_bytes; /* kept for backward, and the buffers all layers share */
};
/* The same of a model that is there. */
uint64_t model_multiplied(const struct model *model);
uint64_t model_active(const struct model *model);
int model_cost(struct model_cost *out, const struct model_shape *shape,
	       const struct model_options *options, struct err *err);

#endif
