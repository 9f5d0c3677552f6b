/* SPDX-License-Identifier: MIT */
/* lora/ - fine-tuning of few numbers: adapters beside matrices that stay.
 *
 * lora.h - low-rank adaptation (Hu et al. 2021): of each chosen matrix W the training learns B A,
 * of rank r, and the model computes with W + alpha/r B A.
 *
 * That sum is what lies in the model's weights, so a pass knows nothing of adapters; their
 * gradients come of the matrix's own, which is there after a pass: dB = alpha/r dW A^T, dA =
 * alpha/r B^T dW. What is saved against a whole training is the moments of all other weights, not
 * the gradients. */
#ifndef LBWORKER_LORA_H
#define LBWORKER_LORA_H

#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/optim/optimizer.h"

struct lora_rules {
	size_t rank; /* 0: no adapters */
	double alpha;
	char *const *targets; /* as peft's target_modules: "q_proj", or "all-linear" */
	size_t target_count;
};

/* The adapter of one matrix; floats from `values` on. */
struct lora_pair {
	const struct model_tensor *tensor; /* of the model */
	size_t in, out;
	size_t a, b; /* where A [rank, in] and B [out, rank] begin */
	size_t base; /* where the matrix begins in `base` */
};

struct lora {
	struct lora_rules rules;
	struct model *model; /* borrowed */
	struct lora_pair *pair;
	size_t pairs;
	size_t count, base_count; /* floats of all adapters; of their matrices */
	/* device memory: all adapters, their moments (values, m, v are one allocation); gradients;
	 * what the matrices were */
	float *values, *m, *v, *grads, *base;
};

/* -1 with err: a target that no matrix of the model (a plan will do) is called by. */
int lora_check(const struct lora_rules *rules, const struct model *model, struct err *err);
/* For a model whose weights may come later, and of which all is here, in fp32. NULL with err. */
struct lora *lora_create(const struct lora_rules *rules, struct model *model, struct err *err);
void lora_destroy(struct lora *lora); /* NULL is fine */
/* Bytes that it takes beside such a model (a plan will do). */
uint64_t lora_bytes(const struct lora_rules *rules, const struct model *model);

/* The model's weights as they are now are what is adapted. */
void lora_begin(struct lora *lora);
/* First adapters, as peft has them: A uniform by its inputs, B zero, so that the model is the
 * same. */
void lora_draw(struct lora *lora, uint64_t seed);
/* The model's weights become those with adapters. */
void lora_apply(const struct lora *lora);
/* As optimizer_squares, and optimizer_update, of adapters only. */
void lora_squares(const struct lora *lora, double *sum);
void lora_update(const struct optimizer *optimizer, const struct lora *lora,
		 struct step_control *control);

/* --- as peft's files (adapter_model.safetensors, adapter_config.json) --- */

/* "base_model.model.NAME.lora_A.weight" of the tensor "NAME.weight"; which: 'A' or 'B'. */
void lora_name(char *out, size_t bytes, const char *tensor, char which);
/* adapter_config.json as text (owned by the caller); base: where the model comes from. */
char *lora_config_json(const struct lora *lora, const char *base);

/* An adapter of a folder, to be merged row by row. */
struct lora_merge;
/* NULL with err, also for what is more than plain LoRA (DoRA, trained biases, whole modules). */
struct lora_merge *lora_merge_open(const char *folder, struct err *err);
/* -1 with err where the adapter has matrices that the model has not. */
int lora_merge_check(struct lora_merge *merge, const struct model *model, struct err *err);
void lora_merge_close(struct lora_merge *merge); /* NULL is fine */
/* Adds the adapter's part to row `row` of that tensor of a model, where it has one. */
void lora_merge_row(struct lora_merge *merge, const struct model *model,
		    const struct model_tensor *tensor, size_t row, float *to);

#endif
