/* SPDX-License-Identifier: MIT */
/* plan.c - sums over a shape; nothing is allocated and no device is opened. */
#include "worker/lbworker/telemetry/plan.h"

#include <inttypes.h>
#include <string.h>

#include "worker/lbworker/telemetry/meter.h"
#include "worker/lbworker/telemetry/again.h"

/* Data sheets, dense bf16; bytes as their drivers tell them, which is not the round number of the
 * data sheet. A CPU's rate is its own to measure: bench/fma_peak.c. */
static const struct plan_device devices[] = {
	{ "A100", "A100 SXM 80 GB", 312e12, 2.039e12, 84.9e9, 80 },
	{ "H100", "H100 SXM", 989.4e12, 3.35e12, 84.9e9, 90 },
	{ "H200", "H200 SXM", 989.4e12, 4.8e12, 150.1e9, 90 },
	{ "B200", "B200 SXM", 2250e12, 8e12, 191.5e9, 100 },
};
enum { DEVICES = sizeof(devices) / sizeof(devices[0]) };

const struct plan_device *plan_device_find(const char *name, const char **names)
{
	if (names)
		*names = "A100, H100, H200, B200";
	for (size_t i = 0; name && i < DEVICES; i++)
		if (strcmp(devices[i].name, name) == 0)
			return &devices[i];
	return NULL;
}

const struct plan_device *plan_device_of(const char *description)
{
	if (strstr(description, "PCIe") || strstr(description, "NVL"))
		return NULL; /* the table has the SXM ones */
	for (size_t i = 0; i < DEVICES; i++) {
		const char *at = strstr(description, devices[i].name);
		size_t length = strlen(devices[i].name);
		if (at && (at == description || at[-1] == ' ') && strcspn(at, " ,:") == length)
			return &devices[i];
	}
	return NULL;
}

/* Products and attention of a token that are computed again. */
static double again(const struct model_shape *s, const struct model_options *o)
{
	double flop = 0;

	for (int i = 0; i < AGAIN_PARTS; i++) {
		const struct part_cost cost = again_cost(s, o, i);
		size_t layers = o->again >> i & 1  ? s->layers
				: o->more >> i & 1 ? o->more_layers
						   : 0;
		flop += (cost.flop + cost.attention_flop) * (double)layers;
	}
	return flop;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Partial sums of the widest reduction on a GPU, at most: a norm's two for each run of eight rows
 * or more, a bias's for each 256 rows, the gradient's norm's for each 16384 elements; and the keys
 * by which the embedding's rows are sorted. */
static uint64_t reduction_area(const struct model_shape *s, uint64_t rows, uint64_t parameters)
{
	uint64_t runs = rows / 8 < 2112 ? rows / 8 + 1 : 2112;
	uint64_t norm = runs * 2 * s->dim * sizeof(float);
	uint64_t bias = (rows / 256 + 1) * larger(3 * s->dim, s->ffn) * sizeof(float);
	uint64_t squares = (parameters / 16384 + 2) * sizeof(double);
	uint64_t sorted = (4 * rows + 256 * (rows / 1024 + 1)) * sizeof(uint32_t);

	return larger(larger(norm, bias), larger(squares, sorted));
}

/* What matrix products, attention and reductions on a GPU work in: dq of attention in fp32, or all
 * gradients of scores where the order of sums is fixed; dk and dv of every query head where heads
 * are shared, the library's own 64 MiB for each of two streams, and partial sums. */
static uint64_t work_area(const struct model_shape *s, const struct model_options *o, bool is_fixed,
			  uint64_t parameters)
{
	uint64_t rows = (uint64_t)o->batch * o->seq;
	uint64_t wide = rows * (s->head_dim ? s->heads * s->head_dim : s->dim);

	if (o->compute != COMPUTE_BF16)
		return 0;
	return ((uint64_t)128 << 20) +
	       (is_fixed ? rows * s->heads * o->seq * sizeof(uint16_t) : wide * sizeof(float)) +
	       rows * s->heads * sizeof(float) +
	       (s->heads == s->kv_heads ? 0 : 2 * wide * sizeof(uint16_t)) +
	       reduction_area(s, rows, parameters);
}

/* On a GPU that computes in bf16 a matrix is bf16 and the rest of its bits; a vector has a copy in
 * bf16; and there is an area in which matrices become fp32 on their way to the host. */
static uint64_t weight_bytes(const struct model_cost *cost, enum compute compute)
{
	const uint64_t joined = (uint64_t)16 << 20, whole = cost->parameters * sizeof(float);

	if (compute != COMPUTE_BF16)
		return whole;
	return whole + (cost->parameters - cost->matrices) * sizeof(uint16_t) + joined;
}

/* Adapters with their moments, and what their matrices were. */
static int add_adapters(struct plan *p, const struct config *c, struct err *err)
{
	const struct model_options options = config_model_options(c);
	const struct lora_rules rules = config_lora(c);
	struct model *m;

	if (model_plan(&m, &c->shape, &options, err))
		return -1;
	p->moments += lora_bytes(&rules, m);
	model_destroy(m);
	return 0;
}

/* Muon's matrices have one moment; and what it works in. */
static int add_muon(struct plan *p, const struct config *c, struct err *err)
{
	const struct model_options options = config_model_options(c);
	struct model *m;

	if (model_plan(&m, &c->shape, &options, err))
		return -1;
	for (size_t u = 0; u < m->units; u++)
		if (muon_takes(m, u))
			p->moments -= model_unit_here(m, u).count * sizeof(float);
	p->activations += muon_floats(m) * sizeof(float);
	if (p->checkpoint > 0)
		p->checkpoint -= muon_range(model_whole(m)).count * sizeof(float);
	model_destroy(m);
	return 0;
}

/* What a checkpoint is written from: weights, moments, the weights' mean; in fp32, but for moments
 * of 8 bits. */
static uint64_t copy_bytes(const struct model_options *o, uint64_t parameters)
{
	uint64_t each = parameters * sizeof(float), moments = 2 * each;

	if (o->moments == MOMENTS_8BIT)
		moments = 2 * kept_moment_bytes(MOMENTS_8BIT, parameters);
	return each + (o->is_base ? 0 : moments) + (o->averaged ? each : 0);
}

int plan_make(struct plan *p, const struct config *c, struct err *err)
{
	const struct model_shape *s = &c->shape;
	const struct model_options o = config_model_options(c);
	struct model_options all = o;

	*p = (struct plan){ 0 };
	all.split = (struct model_split){ 0 };
	all.pipeline = (struct model_pipeline){ 0 };
	if (model_cost(&p->cost, s, &o, err) || model_cost(&p->whole, s, &all, err))
		return -1;
	p->gradients = p->cost.gradient_bytes;
	p->weights = weight_bytes(&p->cost, o.compute);
	p->moments = kept_bytes(&o, p->cost.parameters);
	if (c->lora_rank > 0 && add_adapters(p, c, err))
		return -1;
	p->widest = p->cost.widest * sizeof(float);
	p->are_split = o.compute == COMPUTE_BF16;
	p->is_fast = c->reduction == REDUCTION_FAST;
	p->codes = c->fp8_gather ? p->cost.matrices : 0;
	p->few_bits = plan_few_bits(c);
	p->activations = p->cost.activation_bytes + p->few_bits +
			 work_area(s, &o, c->deterministic, p->cost.parameters);
	p->checkpoint = c->checkpoint_enable ? copy_bytes(&o, p->whole.parameters) : 0;
	if (c->optimizer_name == OPTIMIZER_MUON && add_muon(p, c, err))
		return -1;
	p->tokens = c->accumulate * c->local_batch_size * c->seq_len;
	const struct token_flop flop = meter_flop(s, p->whole.active, p->whole.multiplied,
						  (size_t)c->seq_len);
	p->flop_palm = flop.palm;
	p->flop_causal = flop.causal;
	p->flop_handbook = o.again == AGAIN_ALL ? flop.handbook_again : flop.handbook;
	p->flop_again = again(s, &o);
	return 0;
}

void plan_share(struct plan *p, const struct config_mesh *m)
{
	uint64_t shard = (uint64_t)m->shard, ranks = shard * (uint64_t)m->replicate, levels = 1;
	uint64_t all = p->gradients, weights = p->weights;

	if (m->width == 0)
		return;
	for (int64_t width = 1; width < m->width; width *= 2)
		levels++;
	/* A unit is used while the next is gathered; of gradients one is made while two are under
	 * way. */
	p->sums = levels * (all / ranks) + 2 * p->widest;
	if (m->stage >= 1)
		p->moments /= shard;
	bool is_kept = p->is_fast && ranks > 1; /* passes add to what nobody has sent off */
	if (m->stage >= 2 && !is_kept)
		p->gradients = all / shard + 3 * p->widest;
	if (p->are_split && m->stage >= 1)
		p->weights = weights / 2 + weights / 2 / shard;
	if (m->stage >= 3)
		p->weights = weights / shard + 2 * p->widest / (p->are_split ? 2 : 1);
	if (shard > 1)
		p->sums += p->codes / shard + (p->codes ? p->cost.widest : 0);
}

uint64_t plan_bytes(const struct plan *p)
{
	return p->weights + p->gradients + p->moments + p->activations + p->sums;
}

/* AdamW reads weight, gradient and both moments, and writes all but the gradient. */
static uint64_t optimizer_bytes(const struct plan *p)
{
	return 2 * p->weights + p->gradients + 2 * p->moments;
}

double plan_ceiling(const struct plan *p, const struct plan_device *d)
{
	/* a slice of the model is as much of its products */
	double share = (double)p->cost.multiplied / (double)p->whole.multiplied;
	double arithmetic = share * (p->flop_causal + p->flop_again) * (double)p->tokens / d->flops;
	double optimizer = (double)optimizer_bytes(p) / d->bytes_per_s;

	return (double)p->tokens / (arithmetic + optimizer);
}

static void print_ceiling(const struct plan *p, const struct plan_device *d, FILE *to)
{
	double needed = (double)plan_bytes(p), tokens = plan_ceiling(p, d);
	/* as much of the arithmetic is this device's */
	double share = (double)p->cost.multiplied / (double)p->whole.multiplied;

	fprintf(to,
		"%-12s at most %.0f tokens/s (MFU %.0f%% PaLM, %.0f%% causal), %.2f s a step; %s: "
		"%.1f of %.1f GiB (%s, %.0f TFLOP/s, %.2f TB/s)\n",
		d->name, tokens, 100 * share * p->flop_palm * tokens / d->flops,
		100 * share * p->flop_causal * tokens / d->flops, (double)p->tokens / tokens,
		needed <= d->bytes ? "fits" : "does not fit", gib(needed), gib(d->bytes), d->about,
		d->flops / 1e12, d->bytes_per_s / 1e12);
}

static void print_model(const struct plan *p, const struct config *c, FILE *to)
{
	const struct model_experts *e = &c->shape.experts;

	fprintf(to, "%-12s %s %s: %" PRIu64 " parameters, ", "model",
		model_family_name(c->shape.family), config_flavor(c), p->whole.parameters);
	if (e->count > 0)
		fprintf(to, "%" PRIu64 " of them active in a token, ", p->whole.active);
	fprintf(to, "%" PRIu64 " of them multiplied\n", p->whole.multiplied);
	if (e->count > 0)
		fprintf(to,
			"%-12s %zu of %zu, %zu wide, and %zu for all tokens, in %zu layers of "
			"%zu\n",
			"experts", e->top, e->count, e->ffn, e->shared, c->shape.layers - e->dense,
			c->shape.layers);
}

void plan_print(const struct plan *p, const struct config *c, const struct plan_device *device,
		FILE *to)
{
	print_model(p, c, to);
	if (c->shape.umup.enable)
		fprintf(to,
			"%-12s every matrix starts at 1 and has a learning rate of its own; the "
			"head is not the embedding\n",
			"u-muP");
	fprintf(to,
		"%-12s %.2f GiB: weights %.2f, gradients %.2f, moments %.2f, activations %.2f\n",
		"memory", gib((double)plan_bytes(p)), gib((double)p->weights),
		gib((double)p->gradients), gib((double)p->moments), gib((double)p->activations));
	if (p->few_bits > 0)
		fprintf(to,
			"%-12s %.2f GiB of the activations: codes and scales of a product's "
			"operands\n",
			"few bits", gib((double)p->few_bits));
	fprintf(to, "%-12s %.2f GiB of host memory that it is written from\n", "checkpoint",
		gib((double)p->checkpoint));
	fprintf(to, "%-12s %" PRId64 " tokens: %" PRId64 " x %" PRId64 " sequences of %" PRId64,
		"step", p->tokens, c->accumulate, c->local_batch_size, c->seq_len);
	if (c->batch_ramp.count > 0)
		fprintf(to, ", once the batch has grown from %" PRId64 " sequences",
			c->batch_ramp.items[0]);
	fputc('\n', to);
	fprintf(to, "%-12s %.4g GFLOP a token (PaLM), %.4g causal", "arithmetic",
		p->flop_palm / 1e9, p->flop_causal / 1e9);
	if (p->flop_again > 0)
		fprintf(to, ", %.4g more to compute activations again", p->flop_again / 1e9);
	fprintf(to, "; %.4g as handbooks have it", p->flop_handbook / 1e9);
	fprintf(to, "; %.4g TFLOP a step\n", p->flop_palm * (double)p->tokens / 1e12);
	const double trained = config_samples(c, c->steps) * (double)c->seq_len;
	fprintf(to, "%-12s %.4g tokens, %.4g EFLOP (PaLM)\n", "training", trained,
		p->flop_palm * trained / 1e18);
	again_say(c, to);
	for (size_t i = 0; i < (device ? 1 : DEVICES); i++) {
		const struct plan_device *d = device ? device : &devices[i];
		print_ceiling(p, d, to);
		plan_few_bits_print(c, d, to);
	}
}

int plan_fits(const struct plan *p, uint64_t copy, uint64_t available, struct err *err)
{
	uint64_t needed = plan_bytes(p) + copy;
	char more[64] = "";

	if (needed <= available)
		return 0;
	if (copy > 0)
		snprintf(more, sizeof(more), ", checkpoint copy %.2f", gib((double)copy));
	return err_set(err, ERR_USAGE,
		       "not enough memory: %.2f GiB needed (weights %.2f, gradients %.2f, moments "
		       "%.2f, activations %.2f%s), %.2f GiB available; a smaller batch, or "
		       "activation_checkpoint.mode",
		       gib((double)needed), gib((double)p->weights), gib((double)p->gradients),
		       gib((double)p->moments), gib((double)p->activations), more,
		       gib((double)available));
}
