/* SPDX-License-Identifier: MIT */
/* precision.c - the recipe of each product, by rules in order; and what its operands were like. */
#include "worker/lbworker/recipes/precision.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "kernels/backend.h"
#include "kernels/formats/modes.h"
#include "kernels/formats/scale.h"
#include "worker/lbworker/recipes/rules.h"

struct precision {
	size_t layers, rules;
	struct rule *rule;
	struct recipe *recipe; /* of each rule */
	bool *left_out;        /* [layers + 1][MODULE_COUNT] */
	uint64_t key, pass_key;
	int64_t step;
	bool watched, evaluating, only_faster;
	struct operand_stats *stats; /* [layers + 1][MODULE_COUNT][SLOTS] */
	size_t history;              /* the longest of all slots; 0: none is delayed */
	/* Of each slot AMAX_PAST + history floats (operand.h); NULL: none is delayed. The device's
	 * memory, where there is one, else ours */
	float *past;
	/* Of a pass on a device: the largest |x| of what several products read, TENSORS of each
	 * module; NULL: none is kept */
	float *amax;
	const struct backend *backend; /* of precision_attach; NULL: operands are the host's */
	struct device *device;
	struct random_stream *now; /* in the device's memory */
};

/* x, w and g of a module, by slot; and the slot of the product that read the same before, in the
 * order of a pass: forward, the weight's gradient, the input's; -1: none did. */
enum { TENSORS = 3 };
static const size_t tensor_of[SLOTS] = { 0, 1, 2, 1, 2, 0 };
static const int slot_before[SLOTS] = { -1, -1, 4, 1, -1, 0 };

static size_t past_floats(const struct precision *p)
{
	return AMAX_PAST + p->history;
}

static size_t place(size_t layer, enum module module, int slot)
{
	return (layer * MODULE_COUNT + module) * SLOTS + (size_t)slot;
}

static size_t places(const struct precision *p)
{
	return place(p->layers + 1, MODULE_QKV, 0);
}

/* --- making it -------------------------------------------------------------------------------- */

static int add_rule(struct precision *p, const struct rule *rule, struct err *err)
{
	p->rule = xrealloc(p->rule, (p->rules + 1) * sizeof(*p->rule));
	p->recipe = xrealloc(p->recipe, (p->rules + 1) * sizeof(*p->recipe));
	if (recipe_find(&p->recipe[p->rules], rule->recipe, err))
		return -1;
	for (int i = 0; i < SLOTS; i++)
		if (p->recipe[p->rules].slot[i].history > p->history)
			p->history = p->recipe[p->rules].slot[i].history;
	p->rule[p->rules++] = *rule;
	return 0;
}

/* What holds for all products. */
static int add_first(struct precision *p, const struct precision_wish *w, struct err *err)
{
	struct rule all = { .steps = { 0, INT64_MAX } };

	if (strlen(w->recipe) >= sizeof(all.recipe))
		return err_set(err, ERR_USAGE, "the name of the recipe is too long");
	memcpy(all.recipe, w->recipe, strlen(w->recipe) + 1);
	return add_rule(p, &all, err);
}

static void leave_out(struct precision *p, const struct precision_wish *w)
{
	for (size_t l = 0; l <= p->layers; l++)
		for (int m = 0; m < MODULE_COUNT; m++) {
			bool is_end = l < p->layers &&
				      (l < w->first_layers || l + w->last_layers >= p->layers);
			bool *out = &p->left_out[l * MODULE_COUNT + (size_t)m];
			*out = is_end;
			for (size_t i = 0; i < w->filters; i++)
				*out = *out || module_is_called((enum module)m, l, w->filter[i]);
		}
}

static bool does_anything(const struct precision *p)
{
	for (size_t r = 0; r < p->rules; r++)
		for (int i = 0; i < SLOTS; i++)
			if (p->recipe[r].slot[i].format.bits > 0)
				return true;
	return false;
}

static void make_room(struct precision *p)
{
	p->stats = xcalloc(places(p), sizeof(*p->stats));
	if (p->history > 0)
		p->past = xcalloc(places(p) * past_floats(p), sizeof(*p->past));
}

int precision_attach(struct precision *p, const struct backend *be, struct device *dev,
		     struct err *err)
{
	if (!p || !be->amax_step)
		return 0;
	size_t bytes = places(p) * past_floats(p) * sizeof(float);
	float *past = p->past ? be->alloc(dev, bytes, "amax of past steps") : NULL;
	size_t amaxes = (p->layers + 1) * MODULE_COUNT * TENSORS * sizeof(float);
	p->now = be->alloc(dev, sizeof(*p->now), "amax of past steps");
	p->amax = be->alloc(dev, amaxes, "amax of past steps");
	if (!p->now || !p->amax || (p->past && !past))
		return err_set(err, ERR_IO, "no memory for the amax of past steps (%zu KiB)",
			       bytes >> 10);
	p->backend = be;
	p->device = dev;
	free(p->past);
	p->past = past;
	return 0;
}

static void detach(struct precision *p)
{
	if (!p->backend)
		return;
	p->backend->free(p->device, p->past);
	p->backend->free(p->device, p->now);
	p->backend->free(p->device, p->amax);
	p->past = NULL;
	p->now = NULL;
	p->amax = NULL;
	p->backend = NULL;
}

static int read_wish(struct precision *p, const struct precision_wish *w, const char **which,
		     struct err *err)
{
	struct rule rule;

	*which = "recipe";
	if (add_first(p, w, err))
		return -1;
	*which = "rules";
	for (size_t i = 0; i < w->rule_count; i++)
		if (rule_parse(&rule, w->rules[i], w->layers, err) || add_rule(p, &rule, err))
			return -1;
	return 0;
}

int precision_create(struct precision **out, const struct precision_wish *w, const char **which,
		     struct err *err)
{
	struct precision *p = xcalloc(1, sizeof(*p));
	const char *ignored;

	*out = NULL;
	p->layers = w->layers;
	p->key = w->key;
	p->only_faster = w->only_faster;
	p->left_out = xcalloc((p->layers + 1) * MODULE_COUNT, sizeof(*p->left_out));
	int rc = read_wish(p, w, which ? which : &ignored, err);
	if (rc != 0 || !does_anything(p)) {
		precision_destroy(p);
		return rc;
	}
	leave_out(p, w);
	make_room(p);
	*out = p;
	return 0;
}

void precision_destroy(struct precision *p)
{
	if (!p)
		return;
	detach(p);
	for (size_t i = 0; i < p->rules; i++)
		recipe_clear(&p->recipe[i]);
	free(p->past);
	free(p->stats);
	free(p->left_out);
	free(p->recipe);
	free(p->rule);
	free(p);
}

/* --- using it --------------------------------------------------------------------------------- */

void precision_step(struct precision *p, int64_t step, bool watched)
{
	if (!p)
		return;
	p->step = step;
	p->watched = watched;
	if (watched)
		memset(p->stats, 0, places(p) * sizeof(*p->stats));
	if (p->past && p->backend)
		p->backend->amax_step(p->device, p->past, places(p), p->history);
	for (size_t i = 0; p->past && !p->backend && i < places(p); i++)
		amax_into_past(p->past + i * past_floats(p), (uint32_t)p->history);
}

void precision_pass(struct precision *p, uint64_t sample)
{
	if (!p)
		return;
	p->pass_key = p->key ^ (sample + 1) * 0x9e3779b97f4a7c15u;
	const struct random_stream now = { .key = p->pass_key, .step = (uint32_t)p->step };
	if (p->backend)
		p->backend->upload(p->device, p->now, &now, sizeof(now));
}

bool precision_only_faster(const struct precision *p)
{
	return p && p->only_faster;
}

uint64_t precision_program(const struct precision *p)
{
	uint64_t program = 0;

	for (size_t i = 0; p && i < p->rules; i++)
		program = (program + 1 + rule_holds(&p->rule[i], p->step)) * 0x9e3779b97f4a7c15u;
	return program;
}

void precision_evaluating(struct precision *p, bool evaluating)
{
	if (p)
		p->evaluating = evaluating;
}

/* What holds for a slot in this step; NULL: the operand stays as it is. */
static const struct operand_cast *cast_of(const struct precision *p, size_t layer,
					  enum module module, int slot)
{
	const enum product product = (enum product)(slot / OPERANDS);
	const struct operand_cast *cast = NULL;

	for (size_t i = 0; i < p->rules; i++)
		if (rule_fits(&p->rule[i], p->step, layer, module, product))
			cast = &p->recipe[i].slot[slot];
	return cast && cast->format.bits > 0 ? cast : NULL;
}

/* Whether a product before has found the largest |x|: one that is made as it is where that is
 * faster has not. */
static bool knows_amax(const struct precision *p, size_t layer, enum module module, int slot)
{
	const struct operand_cast *before = slot_before[slot] >= 0
						    ? cast_of(p, layer, module, slot_before[slot])
						    : NULL;

	return before && operand_asks_amax(before) && !p->only_faster;
}

bool precision_use(struct precision *p, size_t layer, enum module module, enum product product,
		   int operand, struct operand_use *use)
{
	int slot = (int)product * OPERANDS + operand;
	size_t at = place(layer, module, slot);

	if (!p || p->left_out[layer * MODULE_COUNT + module])
		return false;
	const struct operand_cast *cast = cast_of(p, layer, module, slot);
	if (!cast)
		return false;
	size_t tensor = (layer * MODULE_COUNT + module) * TENSORS + tensor_of[slot];
	*use = (struct operand_use){
		.cast = cast,
		.random = { .key = p->pass_key, .tensor = (uint32_t)at, .step = (uint32_t)p->step },
		.now = p->now,
		.stats = p->watched && !p->evaluating ? &p->stats[at] : NULL,
		.history = p->past ? p->past + at * past_floats(p) : NULL,
		.notes = !p->evaluating,
		.amax = p->amax ? p->amax + tensor : NULL,
		.amax_known = p->amax && knows_amax(p, layer, module, slot),
	};
	return true;
}

bool precision_by_codes(struct precision *p, size_t layer, enum module module, enum product product,
			const struct product_size *size, int capability, const char **why)
{
	const struct product_sizes sizes = { size->m, size->n, size->k };
	const struct operand_cast *cast[OPERANDS] = { NULL };
	enum scale_layout layout[OPERANDS];
	struct operand_use use;

	for (int i = 0; i < OPERANDS; i++)
		if (precision_use(p, layer, module, product, i, &use))
			cast[i] = use.cast;
	*why = codes_refused(cast[0], cast[1], &sizes, capability, layout);
	return cast[0] || cast[1];
}

const struct operand_cast *precision_cast(const struct precision *p, enum module module, int slot,
					  size_t i)
{
	size_t first = module == MODULE_OUTPUT ? p->layers : 0;
	bool out = true;

	for (size_t l = first; l < (module == MODULE_OUTPUT ? p->layers + 1 : p->layers); l++)
		out = out && p->left_out[l * MODULE_COUNT + module];
	return out || i >= p->rules ? NULL : &p->recipe[i].slot[slot];
}

/* Any scale but of all there is now, and any codes but the nearest, ask for more than amax. */
static bool can_be_sent(const struct operand_cast *c)
{
	const struct format *f = &c->format;

	return f->bits == 8 && (f->kind == FORMAT_FN || f->kind == FORMAT_IEEE) &&
	       c->rounding == ROUND_NEAREST_EVEN && c->scale == SCALE_FP32 &&
	       c->along == OPERAND_ALL && c->across == OPERAND_ALL && !c->hadamard &&
	       !c->four_over_six && c->history == 0;
}

const struct operand_cast *precision_sent(const struct precision *p, size_t layer,
					  enum module module)
{
	const int forward = PRODUCT_FORWARD * OPERANDS + 1, input = PRODUCT_INPUT * OPERANDS + 1;

	/* where a product without codes takes less time it reads the weights as they are */
	if (!p || p->only_faster || p->rules != 1 || p->left_out[layer * MODULE_COUNT + module])
		return NULL;
	const struct operand_cast *a = &p->recipe[0].slot[forward], *b = &p->recipe[0].slot[input];
	bool is_same = a->format.kind == b->format.kind && a->format.bits == b->format.bits &&
		       a->format.exponent == b->format.exponent &&
		       a->format.mantissa == b->format.mantissa && a->format.bias == b->format.bias;

	return can_be_sent(a) && can_be_sent(b) && is_same ? a : NULL;
}

const struct operand_stats *precision_stats(const struct precision *p, size_t layer,
					    enum module module, int slot)
{
	return p && p->watched ? &p->stats[place(layer, module, slot)] : NULL;
}

size_t precision_layers(const struct precision *p)
{
	return p->layers;
}

/* --- in checkpoints --------------------------------------------------------------------------- */

/* As they lie in memory: for each operand the present step's, how many past ones, and these. */
size_t precision_history_count(const struct precision *p)
{
	return p && p->past ? places(p) * past_floats(p) : 0;
}

void precision_history_get(const struct precision *p, float *to)
{
	size_t count = precision_history_count(p), bytes = count * sizeof(float);

	if (bytes > 0 && p->backend)
		p->backend->download(p->device, to, p->past, bytes);
	else if (bytes > 0)
		memcpy(to, p->past, bytes);
	for (size_t i = 0; i < count; i++)
		to[i] = is_finite_bits(to[i]) ? to[i] : 0;
}

void precision_history_set(struct precision *p, const float *from)
{
	size_t bytes = precision_history_count(p) * sizeof(float);

	if (bytes > 0 && p->backend)
		p->backend->upload(p->device, p->past, from, bytes);
	else if (bytes > 0)
		memcpy(p->past, from, bytes);
}
