/* SPDX-License-Identifier: MIT */
/* plan_few_bits.c - the memory on a GPU for codes, or codes times scales, of a product's operands,
 * and for their scales (kernels/cuda/lib/narrow.c has them for one product at a time); and which
 * products its matrix units make of codes. */
#include "worker/lbworker/telemetry/plan.h"

#include <string.h>

enum { LOGITS_MOST = 1 << 30 };

/* A matrix of weights. */
struct width {
	uint64_t in, out;
};

static struct width width_of(const struct model_shape *s, enum module module)
{
	const uint64_t head = s->head_dim ? s->head_dim : s->dim / s->heads;
	const uint64_t up = model_is_gated(s->family) ? 2 * s->ffn : s->ffn;

	switch (module) {
	case MODULE_QKV:
		return (struct width){ s->dim, (s->heads + 2 * s->kv_heads) * head };
	case MODULE_OUT:
		return (struct width){ s->heads * head, s->dim };
	case MODULE_UP:
		return (struct width){ s->dim, up };
	case MODULE_DOWN:
		return (struct width){ s->ffn, s->dim };
	default:
		return (struct width){ s->dim, s->vocab };
	}
}

/* Elements of the operand in a slot (recipe.h). */
static uint64_t elements_of(const struct width *w, int slot, uint64_t rows)
{
	static const bool is_weight[SLOTS] = { false, true, false, true, false, false };
	static const bool is_input[SLOTS] = { true, false, false, false, false, true };

	if (is_weight[slot])
		return w->in * w->out;
	return rows * (is_input[slot] ? w->in : w->out);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct room {
	uint64_t operand[OPERANDS], area;
};

/* Of the recipe that rule i has, in one product. */
static void add_product(struct room *room, const struct precision *p, enum module module, int slot,
			size_t i, const struct width *w, uint64_t rows)
{
	for (int side = 0; side < OPERANDS; side++) {
		const struct operand_cast *c = precision_cast(p, module, slot + side, i);
		uint64_t count = elements_of(w, slot + side, rows);
		uint64_t along = c->along ? c->along : 64, across = c->across ? c->across : 64;
		uint64_t tiles = count / along / across + 1; /* rows are longer than 64 */
		if (c->format.bits == 0)
			continue;
		/* two bytes each where they are emulated; where they are not, codes, their scales,
		 * and dy's codes the other way take no more */
		room->operand[side] = larger(room->operand[side], 2 * count);
		room->area = larger(room->area, 12 * tiles + (c->hadamard ? 4 * count : 0));
	}
}

uint64_t plan_few_bits(const struct config *c)
{
	const uint64_t all = (uint64_t)(c->local_batch_size * c->seq_len);
	struct precision *p = NULL;
	struct room room = { 0 };
	struct err err = { 0 };

	if (c->compute != COMPUTE_BF16 || config_precision(c, &p, NULL, &err))
		return 0;
	for (enum module m = MODULE_QKV; p && m < MODULE_COUNT; m++) {
		const struct width w = width_of(&c->shape, m);
		uint64_t rows = m == MODULE_OUTPUT && all * w.out > LOGITS_MOST
					? LOGITS_MOST / w.out
					: all;
		for (size_t i = 0; precision_cast(p, m, 0, i); i++)
			for (int slot = 0; slot < SLOTS; slot += OPERANDS)
				add_product(&room, p, m, slot, i, &w, rows);
	}
	precision_destroy(p);
	return room.operand[0] + room.operand[1] + room.area;
}

/* --- which products --------------------------------------------------------------------------- */

/* C[m,n] summed over k, in the order of recipe.h. */
static struct product_size size_of(const struct width *w, enum product product, uint64_t rows)
{
	if (product == PRODUCT_FORWARD)
		return (struct product_size){ rows, w->out, w->in };
	if (product == PRODUCT_INPUT)
		return (struct product_size){ rows, w->in, w->out };
	return (struct product_size){ w->out, w->in, rows };
}

enum { REASONS = 4 };

struct tally {
	size_t codes, others[REASONS];
	const char *reason[REASONS];
};

static void count_reason(struct tally *t, const char *why)
{
	size_t i = 0;

	while (i < REASONS - 1 && t->reason[i] && strcmp(t->reason[i], why) != 0)
		i++;
	t->reason[i] = why;
	t->others[i]++;
}

static void count_layer(struct tally *t, struct precision *p, const struct config *c, size_t layer,
			int capability)
{
	const uint64_t rows = (uint64_t)(c->local_batch_size * c->seq_len);
	bool is_head = layer == c->shape.layers;

	for (enum module m = MODULE_QKV; m < MODULE_COUNT; m++) {
		const struct width w = width_of(&c->shape, m);
		if ((m == MODULE_OUTPUT) != is_head)
			continue;
		for (int i = 0; i < PRODUCT_COUNT; i++) {
			const struct product_size size = size_of(&w, (enum product)i, rows);
			const char *why;
			if (!precision_by_codes(p, layer, m, (enum product)i, &size, capability,
						&why))
				continue;
			if (why)
				count_reason(t, why);
			else
				t->codes++;
		}
	}
}

void plan_few_bits_print(const struct config *c, const struct plan_device *d, FILE *to)
{
	struct precision *p = NULL;
	struct tally t = { 0 };
	struct err err = { 0 };

	if (config_precision(c, &p, NULL, &err) || !p)
		return;
	precision_step(p, 1, false);
	for (size_t layer = 0; layer <= c->shape.layers; layer++)
		count_layer(&t, p, c, layer, d->capability);
	bool stays = precision_only_faster(p);
	precision_destroy(p);
	if (t.codes == 0 && !t.reason[0])
		return;
	fprintf(to, "%-12s %zu products by codes%s", "  few bits", t.codes,
		t.codes > 0 && stays ? " where they are faster" : "");
	for (int i = 0; i < REASONS && t.reason[i]; i++)
		fprintf(to, "; %zu %s: %s", t.others[i], stays ? "as they are" : "emulated",
			t.reason[i]);
	fprintf(to, "\n");
}
