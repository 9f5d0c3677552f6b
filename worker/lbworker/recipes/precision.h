/* SPDX-License-Identifier: MIT */
/* precision.h - which recipe holds where and when: a recipe for all products, modules left out,
 * layers left out at both ends, and rules by step, layer, module and product; and what is known of
 * each operand: statistics, and the amax of past steps.
 *
 * A rule is words, of which each narrows it, and the recipe; the last rule that fits counts:
 *     "steps=900- products=forward recipe=none"
 *     "layers=0-1,-1 modules=qkv,out recipe=mxfp8"
 * steps=A-B, A-, -B or A count from 1; layers count from 0, negative ones from the end (-1);
 * modules: qkv, out, up, down, output; products: forward (fprop), input (dgrad), weight (wgrad). */
#ifndef LBWORKER_PRECISION_H
#define LBWORKER_PRECISION_H

#include <stdbool.h>

#include "worker/lbworker/recipes/recipe.h"

struct backend; /* kernels/backend.h */
struct device;

/* The products of a layer, in the order of a pass; and the head, in the layer behind the last. */
enum module { MODULE_QKV, MODULE_OUT, MODULE_UP, MODULE_DOWN, MODULE_OUTPUT, MODULE_COUNT };

struct precision_wish {
	const char *recipe;
	size_t layers;
	size_t first_layers, last_layers; /* as they are */
	/* Modules left out: parts of their names in torchtitan or Hugging Face */
	char *const *filter;
	size_t filters;
	char *const *rules;
	size_t rule_count;
	uint64_t key; /* of the random numbers */
	bool only_faster;
};

struct precision;

/* 0; or -1 with err, and *which (may be NULL) is the member that is wrong: "recipe", "filter" or
 * "rules". NULL in *out: nothing is of few bits at any time. */
int precision_create(struct precision **out, const struct precision_wish *wish, const char **which,
		     struct err *err);
void precision_destroy(struct precision *p); /* NULL is fine */
/* Operands are in the memory of a device, which keeps there what is known of past steps: destroy
 * before the device is closed. p may be NULL. */
int precision_attach(struct precision *p, const struct backend *be, struct device *dev,
		     struct err *err);

/* Before a step (from 1): amax of the step before goes into the past; statistics begin anew when
 * `watched`, and are not kept otherwise. p may be NULL, here and below. */
void precision_step(struct precision *p, int64_t step, bool watched);
/* Before a pass: the number of its first sample. It and the step key the random numbers. */
void precision_pass(struct precision *p, uint64_t sample);

/* Products that a device makes faster without are to be made so. */
bool precision_only_faster(const struct precision *p);

/* A number for the rules that hold in this step: the same number, the same recipes everywhere. */
uint64_t precision_program(const struct precision *p);

/* While it is true products are rounded all the same, but leave no trace: no statistics, no
 * amax. */
void precision_evaluating(struct precision *p, bool evaluating);

/* The operand of a product now; false: as it is. */
bool precision_use(struct precision *p, size_t layer, enum module module, enum product product,
		   int operand, struct operand_use *use);

/* A product C[m,n], summed over k, now, on a GPU of that compute capability (90: 9.0). False:
 * neither operand is of few bits. *why: NULL, where its matrix units make it of the codes; else why
 * not (kernels/formats/modes.h). */
struct product_size {
	size_t m, n, k;
};
bool precision_by_codes(struct precision *p, size_t layer, enum module module, enum product product,
			const struct product_size *size, int capability, const char **why);

/* The slot of the module in the recipe of the i-th rule, the one for all products first, whether it
 * holds now or not; NULL behind the last, or where all layers leave the module out. */
const struct operand_cast *precision_cast(const struct precision *p, enum module module, int slot,
					  size_t i);

/* What makes codes of the weights of a module in all products of all steps, where other ranks could
 * make them as well: of 8 bits, to nearest, under one scale for the matrix as it is
 * (kernels/formats/sent.h). NULL: nothing does, or only where it is faster. */
const struct operand_cast *precision_sent(const struct precision *p, size_t layer,
					  enum module module);

/* What is known of an operand since precision_step; NULL: nothing is watched. */
const struct operand_stats *precision_stats(const struct precision *p, size_t layer,
					    enum module module, int slot);
size_t precision_layers(const struct precision *p);
extern const char *const module_names[MODULE_COUNT];

/* All amax of past steps, in a fixed order, for checkpoints: so many floats; 0 without delayed
 * scaling. What a step that is left out has noted may be no finite number, which leaves nothing
 * (amax_into_past): given is 0. */
size_t precision_history_count(const struct precision *p);
void precision_history_get(const struct precision *p, float *to);
void precision_history_set(struct precision *p, const float *from);

#endif
