/* SPDX-License-Identifier: MIT */
/* ops.c - every operation of the CUDA backend against the CPU's, tensor by tensor.
 *
 *   ops [--seed N] [--rounds N] [--large] [--fp32] [--only OPERATION]
 *
 * Shapes and values are drawn anew each round: odd sizes, one row, a vocabulary that is a multiple
 * of nothing. What an operation must write holds NaN before. Inputs are rounded to bf16 for both
 * sides in bf16, so what differs is the operation alone. |got - want| <= absolute + relative |want|
 * is asked of every element; each line tells the worst one. The library is the one that the trainer
 * would open, so LB_CUDA_LIBRARY may name the emulated one. Exit 77: there is no GPU. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "kernels/load.h"
#include "worker/lbworker/rng.h"

enum { NO_GPU = 77, TENSORS_MAX = 10 };

struct suite {
	const struct backend *be;
	struct device *gpu, *cpu;
	enum compute compute;
	uint64_t seed;
	uint32_t drawn;
	bool large;
	size_t compared, failed;
	const char *only;
	char shape[96];
};

/* --- draws ------------------------------------------------------------------------------------ */

static uint32_t draw(struct suite *s)
{
	const struct rng rng = { .seed = s->seed, .tensor = 1u << 30 };
	uint32_t words[4];

	rng_words(&rng, s->drawn++, words);
	return words[0];
}

static size_t between(struct suite *s, size_t least, size_t most)
{
	return least + draw(s) % (most - least + 1);
}

/* Often one, often odd, now and then a multiple of 64 so that vectors are read. */
static size_t size(struct suite *s, size_t most)
{
	switch (draw(s) % 4) {
	case 0:
		return between(s, 1, 3);
	case 1:
		return most >= 64 ? between(s, 1, most / 64) * 64 : most;
	default:
		return between(s, 1, most);
	}
}

static size_t pick(const struct suite *s, size_t small, size_t large)
{
	return s->large ? large : small;
}

/* --- tensors on both sides -------------------------------------------------------------------- */

struct tensor {
	size_t count;
	bool is_activation;
	float *cpu;			/* the CPU device's memory is ours to read */
	void *gpu;
	float *got;			/* host, after fetch() */
};

struct tensors {
	struct tensor t[TENSORS_MAX];
	size_t count;
};

static uint16_t narrow(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if (isnan(x))
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float y;

	memcpy(&y, &bits, sizeof(y));
	return y;
}

static bool is_narrow(const struct suite *s, const struct tensor *t)
{
	return t->is_activation && s->compute == COMPUTE_BF16;
}

static void to_gpu(struct suite *s, const struct tensor *t)
{
	if (!is_narrow(s, t)) {
		s->be->upload(s->gpu, t->gpu, t->cpu, t->count * sizeof(float));
		return;
	}
	uint16_t *half = xmalloc(t->count * sizeof(*half) + 1);
	for (size_t i = 0; i < t->count; i++)
		half[i] = narrow(t->cpu[i]);
	s->be->upload(s->gpu, t->gpu, half, t->count * sizeof(*half));
	free(half);
}

static struct tensor *add(struct suite *s, struct tensors *all, size_t count, bool is_activation)
{
	struct tensor *t = &all->t[all->count++];

	*t = (struct tensor){ .count = count, .is_activation = is_activation };
	t->cpu = backend_cpu.alloc(s->cpu, count * sizeof(float), "a test");
	t->gpu = s->be->alloc(s->gpu, count * sizeof(float), "a test");
	t->got = xmalloc(count * sizeof(float));
	if (!t->cpu || !t->gpu) {
		fprintf(stderr, "no memory for a tensor of %zu\n", count);
		exit(1);
	}
	return t;
}

/* Normal numbers times `scale`, the same on both sides to the bit. */
static struct tensor *random_tensor(struct suite *s, struct tensors *all, size_t count,
				    bool is_activation, float scale)
{
	struct tensor *t = add(s, all, count, is_activation);
	const struct rng rng = { .seed = s->seed, .tensor = draw(s) };

	rng_normal(&rng, t->cpu, count, (double)scale);
	for (size_t i = 0; i < count && is_narrow(s, t); i++)
		t->cpu[i] = widen(narrow(t->cpu[i]));
	to_gpu(s, t);
	return t;
}

static struct tensor *poisoned(struct suite *s, struct tensors *all, size_t count,
			       bool is_activation)
{
	struct tensor *t = add(s, all, count, is_activation);

	for (size_t i = 0; i < count; i++)
		t->cpu[i] = NAN;
	to_gpu(s, t);
	return t;
}

/* A gradient: accumulated onto numbers, or poison to be replaced. */
static struct tensor *gradient(struct suite *s, struct tensors *all, size_t count, bool accumulate)
{
	return accumulate ? random_tensor(s, all, count, false, 1) : poisoned(s, all, count, false);
}

static struct tensor *random_ids(struct suite *s, struct tensors *all, size_t count, size_t below)
{
	struct tensor *t = add(s, all, count, false);
	int32_t *ids = xmalloc(count * sizeof(*ids));

	for (size_t i = 0; i < count; i++)	/* few tokens are many rows, as in text */
		ids[i] = (int32_t)(draw(s) % (draw(s) % below + 1));
	memcpy(t->cpu, ids, count * sizeof(*ids));
	s->be->upload(s->gpu, t->gpu, ids, count * sizeof(*ids));
	free(ids);
	return t;
}

static void release(struct suite *s, struct tensors *all)
{
	for (size_t i = 0; i < all->count; i++) {
		backend_cpu.free(s->cpu, all->t[i].cpu);
		s->be->free(s->gpu, all->t[i].gpu);
		free(all->t[i].got);
	}
	all->count = 0;
}

/* --- comparing -------------------------------------------------------------------------------- */

struct tolerance {
	double absolute, relative;
};

/* Sums of `terms` products: fp32 differs by the order, bf16 by its rounding of what is stored. */
static struct tolerance tolerance(const struct suite *s, const struct tensor *t, double terms)
{
	if (is_narrow(s, t))
		return (struct tolerance){ 1e-2 + 2e-3 * sqrt(terms), 1.6e-2 };
	if (s->compute == COMPUTE_BF16)	/* fp32 sums of what may have been rounded on the way */
		return (struct tolerance){ 2e-3 * sqrt(terms), 5e-3 };
	return (struct tolerance){ 4e-6 * sqrt(terms) + 2e-6, 1e-5 };
}

static void compare(struct suite *s, const char *operation, const char *name, struct tensor *t,
		    double terms)
{
	const struct tolerance allowed = tolerance(s, t, terms);
	double worst = -1;
	size_t at = 0;

	if (is_narrow(s, t))
		s->be->download_activations(s->gpu, t->got, t->gpu, t->count);
	else
		s->be->download(s->gpu, t->got, t->gpu, t->count * sizeof(float));
	for (size_t i = 0; i < t->count; i++) {
		double want = t->cpu[i], difference = fabs((double)t->got[i] - want);
		double part = difference / (allowed.absolute + allowed.relative * fabs(want));
		if (!(part <= worst)) {
			worst = isnan(part) ? INFINITY : part;
			at = i;
		}
		if (isinf(worst))
			break;
	}
	s->compared++;
	s->failed += !(worst <= 1);
	printf("%-6s %-20s %-9s %-28s worst %.3f of the tolerance, at %zu: %.7g, not %.7g\n",
	       worst <= 1 ? "ok" : "not ok", operation, name, s->shape, worst, at,
	       (double)t->got[at], (double)t->cpu[at]);
}

__attribute__((format(printf, 2, 3)))
static void shape(struct suite *s, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(s->shape, sizeof(s->shape), format, arguments);
	va_end(arguments);
}

/* --- the operations --------------------------------------------------------------------------- */

/* Both backends, one after the other, on their own copies of the same tensors. */
#define BOTH(call, ...) \
	do { \
		{ const bool on_gpu = true; struct device *dev = s->gpu; (void)on_gpu; \
		  s->be->call(dev, __VA_ARGS__); } \
		{ const bool on_gpu = false; struct device *dev = s->cpu; (void)on_gpu; \
		  backend_cpu.call(dev, __VA_ARGS__); } \
	} while (0)
#define ON(tensor) (on_gpu ? (tensor)->gpu : (void *)(tensor)->cpu)

static void rmsnorm(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 4096)), dim = 15 + size(s, pick(s, 300, 5000));
	bool residual = draw(s) % 2, accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *delta = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *weight = random_tensor(s, &all, dim, false, 1);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *sum = poisoned(s, &all, rows * dim, true);
	struct tensor *rstd = poisoned(s, &all, rows, false);
	struct tensor *dx = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *dweight = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s%s", rows, dim, residual ? " residual" : "", accumulate ? " add" : "");
	BOTH(rmsnorm_forward, ON(out), ON(rstd), residual ? ON(sum) : NULL, ON(x),
	     residual ? ON(delta) : NULL, ON(weight), rows, dim, 1e-5f);
	if (residual)
		compare(s, "rmsnorm_forward", "sum", sum, 1);
	compare(s, "rmsnorm_forward", "rstd", rstd, 1);
	compare(s, "rmsnorm_forward", "out", out, 1);
	BOTH(rmsnorm_backward, ON(dx), ON(dweight), ON(delta), ON(x), ON(rstd), ON(weight), rows,
	     dim, accumulate);
	compare(s, "rmsnorm_backward", "dx", dx, 4);
	compare(s, "rmsnorm_backward", "dweight", dweight, (double)rows);
	release(s, &all);
}

static void layernorm(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 4096)), dim = 16 + size(s, pick(s, 300, 5000));
	bool residual = draw(s) % 2, accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *delta = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *weight = random_tensor(s, &all, 2 * dim, false, 1);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *sum = poisoned(s, &all, rows * dim, true);
	struct tensor *mean = poisoned(s, &all, rows, false);
	struct tensor *rstd = poisoned(s, &all, rows, false);
	struct tensor *dx = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *dweight = gradient(s, &all, dim, accumulate);
	struct tensor *dbias = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s%s", rows, dim, residual ? " residual" : "", accumulate ? " add" : "");
	BOTH(layernorm_forward, ON(out), ON(mean), ON(rstd), residual ? ON(sum) : NULL, ON(x),
	     residual ? ON(delta) : NULL, ON(weight), (float *)ON(weight) + dim, rows, dim, 1e-2f);
	compare(s, "layernorm_forward", "mean", mean, 1);
	compare(s, "layernorm_forward", "rstd", rstd, 1);
	compare(s, "layernorm_forward", "out", out, 4);
	BOTH(layernorm_backward, ON(dx), ON(dweight), ON(dbias), ON(delta), ON(x), ON(mean),
	     ON(rstd), ON(weight), rows, dim, accumulate);
	compare(s, "layernorm_backward", "dx", dx, 16);
	compare(s, "layernorm_backward", "dweight", dweight, 4 * (double)rows);
	compare(s, "layernorm_backward", "dbias", dbias, (double)rows);
	release(s, &all);
}

static void bias(struct suite *s)
{
	size_t rows = size(s, pick(s, 600, 9000)), dim = size(s, pick(s, 100, 3000));
	bool accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *y = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *b = random_tensor(s, &all, dim, false, 1);
	struct tensor *db = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s", rows, dim, accumulate ? " add" : "");
	BOTH(bias_backward, ON(db), ON(y), rows, dim, accumulate);
	compare(s, "bias_backward", "dbias", db, (double)rows);
	BOTH(bias_forward, ON(y), ON(b), rows, dim);
	compare(s, "bias_forward", "y", y, 1);
	release(s, &all);
}

static void positions(struct suite *s)
{
	size_t seq = size(s, pick(s, 20, 1000)), batch = between(s, 1, 4), rows = batch * seq;
	size_t dim = size(s, pick(s, 90, 2000));
	bool accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *table = random_tensor(s, &all, seq * dim, false, 1);
	struct tensor *dtable = gradient(s, &all, seq * dim, accumulate);

	shape(s, "%zux%zux%zu%s", batch, seq, dim, accumulate ? " add" : "");
	BOTH(positions_backward, ON(dtable), ON(x), rows, seq, dim, accumulate);
	compare(s, "positions_backward", "dtable", dtable, (double)batch);
	BOTH(positions_forward, ON(x), ON(table), rows, seq, dim);
	compare(s, "positions_forward", "x", x, 1);
	release(s, &all);
}

static void embedding(struct suite *s)
{
	size_t rows = size(s, pick(s, 2500, 70000)), dim = size(s, pick(s, 40, 600));
	size_t vocab = between(s, 1, pick(s, 300, 70000));
	struct tensors all = { .count = 0 };
	struct tensor *ids = random_ids(s, &all, rows, vocab);
	struct tensor *table = random_tensor(s, &all, vocab * dim, false, 1);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *dtable = random_tensor(s, &all, vocab * dim, false, 1);

	shape(s, "%zux%zu of %zu", rows, dim, vocab);
	BOTH(embed_forward, ON(out), ON(table), ON(ids), rows, dim);
	compare(s, "embed_forward", "out", out, 1);
	to_gpu(s, out);			/* the CPU's, so that both sides add up the same */
	for (size_t i = 0; i < out->count && is_narrow(s, out); i++)
		out->cpu[i] = widen(narrow(out->cpu[i]));
	BOTH(embed_backward, ON(dtable), ON(out), ON(ids), rows, dim);
	compare(s, "embed_backward", "dtable", dtable, 1);
	if (memcmp(dtable->got, dtable->cpu, dtable->count * sizeof(float)) != 0) {
		printf("not ok embed_backward is not the CPU's to the bit\n");
		s->failed++;
	}
	release(s, &all);
}

static struct attention heads(struct suite *s, size_t seq)
{
	struct attention a = { .batch = between(s, 1, 2), .seq = seq,
			       .kv_heads = between(s, 1, 3) };
	size_t group = between(s, 1, 4);

	a.interleaved = draw(s) % 3 == 0;
	a.heads = a.interleaved ? a.kv_heads : a.kv_heads * group;
	a.head_dim = draw(s) % 3 ? 8 * between(s, 1, pick(s, 4, 16)) : 2 * between(s, 1, 20);
	a.rotary = draw(s) % 2 ? 2 * between(s, 1, a.head_dim / 2) : 0;
	a.scale = draw(s) % 2 ? 0.0f : 0.2f;
	return a;
}

static size_t qkv_width(const struct attention *a)
{
	return (a->heads + 2 * a->kv_heads) * a->head_dim;
}

static void describe_heads(struct suite *s, const struct attention *a)
{
	shape(s, "%zux%zux%zu/%zux%zu%s", a->batch, a->seq, a->heads, a->kv_heads, a->head_dim,
	      a->interleaved ? " mixed" : "");
}

static void rope(struct suite *s)
{
	const struct attention a = heads(s, size(s, pick(s, 30, 2000)));
	size_t turned = a.rotary ? a.rotary : a.head_dim, rows = a.batch * a.seq;
	bool inverse = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *qkv = random_tensor(s, &all, rows * qkv_width(&a), true, 1);
	struct tensor *table = random_tensor(s, &all, a.seq * turned, false, 1);

	describe_heads(s, &a);
	BOTH(rope, ON(qkv), ON(table), &a, inverse);
	compare(s, "rope", "qkv", qkv, 2);
	release(s, &all);
}

static void attention(struct suite *s)
{
	const struct attention a = heads(s, size(s, pick(s, 40, 700)));
	size_t rows = a.batch * a.seq, width = a.heads * a.head_dim;
	struct tensors all = { .count = 0 };
	struct tensor *qkv = random_tensor(s, &all, rows * qkv_width(&a), true, 1);
	struct tensor *out = poisoned(s, &all, rows * width, true);
	struct tensor *lse = poisoned(s, &all, rows * a.heads, false);
	struct tensor *dout = random_tensor(s, &all, rows * width, true, 1);
	struct tensor *dqkv = poisoned(s, &all, rows * qkv_width(&a), true);

	describe_heads(s, &a);
	BOTH(attention_forward, ON(out), ON(lse), ON(qkv), &a);
	compare(s, "attention_forward", "lse", lse, 1);
	compare(s, "attention_forward", "out", out, 16);
	BOTH(attention_backward, ON(dqkv), ON(dout), ON(out), ON(lse), ON(qkv), &a);
	compare(s, "attention_backward", "dqkv", dqkv, 16 * (double)a.heads / (double)a.kv_heads);
	release(s, &all);
}

static void swiglu(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 3000)), width = size(s, pick(s, 300, 5000));
	struct tensors all = { .count = 0 };
	struct tensor *gate_up = random_tensor(s, &all, rows * 2 * width, true, 2);
	struct tensor *out = poisoned(s, &all, rows * width, true);
	struct tensor *dout = random_tensor(s, &all, rows * width, true, 1);

	shape(s, "%zux%zu", rows, width);
	BOTH(swiglu_forward, ON(out), ON(gate_up), rows, width);
	compare(s, "swiglu_forward", "out", out, 1);
	BOTH(swiglu_backward, ON(gate_up), ON(dout), ON(gate_up), rows, width);
	compare(s, "swiglu_backward", "in place", gate_up, 1);
	release(s, &all);
}

static void gelu(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 5000000));
	enum gelu_form form = draw(s) % 2 ? GELU_TANH : GELU_ERF;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, count, true, 3);
	struct tensor *out = poisoned(s, &all, count, true);
	struct tensor *dout = random_tensor(s, &all, count, true, 1);

	shape(s, "%zu %s", count, form == GELU_TANH ? "tanh" : "erf");
	BOTH(gelu_forward, ON(out), ON(x), count, form);
	compare(s, "gelu_forward", "out", out, 1);
	BOTH(gelu_backward, ON(x), ON(dout), ON(x), count, form);
	compare(s, "gelu_backward", "in place", x, 1);
	release(s, &all);
}

static void cross_entropy(struct suite *s)
{
	size_t rows = size(s, pick(s, 30, 600)), vocab = 1 + size(s, pick(s, 5000, 130000));
	float scale = draw(s) % 3 ? 1.0f : 0.0f;
	struct tensors all = { .count = 0 };
	struct tensor *logits = random_tensor(s, &all, rows * vocab, true, 4);
	struct tensor *targets = random_ids(s, &all, rows, vocab);
	struct tensor *loss = poisoned(s, &all, rows, false);

	shape(s, "%zux%zu%s", rows, vocab, scale == 0.0f ? " loss only" : "");
	BOTH(cross_entropy, ON(loss), ON(logits), ON(targets), rows, vocab, scale);
	compare(s, "cross_entropy", "loss", loss, 8);
	compare(s, "cross_entropy", "dlogits", logits, 1);
	release(s, &all);
}

/* Decided on both sides: a gradient twice as large as it may be, or one that is left out. */
static struct tensor *decision_of(struct suite *s, struct tensors *all, bool is_left_out)
{
	const struct decision d = { .norm_limit = is_left_out ? 1 : INFINITY, .norm_most = 2,
				    .lr = 2e-2f, .to_m_hat = 1.7f, .to_v_hat = 3.1f,
				    .step = (uint32_t)between(s, 1, 1000), .loss_sum = 3,
				    .squares = 16 };
	struct tensor *t = add(s, all, sizeof(d) / sizeof(float), false);

	memcpy(t->cpu, &d, sizeof(d));
	to_gpu(s, t);
	BOTH(decide, ON(t));
	return t;
}

static void adamw(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 3000000));
	struct tensors all = { .count = 0 };
	bool narrow_moments = draw(s) % 2;
	struct tensor *w = random_tensor(s, &all, count, false, 1);
	struct tensor *m = random_tensor(s, &all, count, false, 1);
	struct tensor *v = random_tensor(s, &all, count, false, 1);
	struct tensor *g = random_tensor(s, &all, count, false, 1);
	struct tensor *decision = decision_of(s, &all, draw(s) % 5 == 0);
	const struct adamw a = { .rate = 0.5f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f,
				 .weight_decay = 0.1f, .bf16_moments = narrow_moments, .first = between(s, 0, 2) * 11,
				 .key = 0x123456789abcdefULL };

	shape(s, "%zu from %" PRIu64 "%s", count, a.first, narrow_moments ? " bf16 moments" : "");
	for (size_t i = 0; i < count; i++) {
		v->cpu[i] = v->cpu[i] * v->cpu[i];
		if (narrow_moments) {	/* two bf16 in each word */
			((uint16_t *)(void *)m->cpu)[i] = narrow(m->cpu[i]);
			((uint16_t *)(void *)v->cpu)[i] = narrow(v->cpu[i]);
		}
	}
	to_gpu(s, m);
	to_gpu(s, v);
	BOTH(adamw, ON(w), ON(m), ON(v), ON(g), count, &a, ON(decision));
	compare(s, "adamw", "weight", w, 1);
	if (narrow_moments)
		m->count = v->count = count / 2;	/* whole words, of two moments each */
	else
		compare(s, "adamw", "m", m, 1);
	if (!narrow_moments)
		compare(s, "adamw", "v", v, 1);
	s->be->download(s->gpu, m->got, m->gpu, m->count * sizeof(float));
	size_t apart = 0;
	for (size_t i = 0; narrow_moments && i < 2 * m->count; i++)
		apart += ((uint16_t *)(void *)m->got)[i] != ((uint16_t *)(void *)m->cpu)[i];
	if (apart > m->count / 500 + 1) {	/* sums may differ in their last fp32 bit */
		printf("not ok adamw: %zu of %zu bf16 moments differ\n", apart, 2 * m->count);
		s->failed++;
	}
	release(s, &all);
}

static void sum_squares(struct suite *s)
{
	size_t count = size(s, pick(s, 100000, 30000000));
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, count, false, 1);
	struct tensor *sums = poisoned(s, &all, 4, false);	/* two of fp64 */
	double got[2], want[2];

	BOTH(sum_squares, ON(sums), ON(x), count);
	BOTH(sum_losses, (double *)ON(sums) + 1, ON(x), count, false);
	BOTH(sum_losses, (double *)ON(sums) + 1, ON(x), count / 2, true);
	s->be->download(s->gpu, got, sums->gpu, sizeof(got));
	memcpy(want, sums->cpu, sizeof(want));
	bool good = fabs(got[0] - want[0]) <= 1e-6 * want[0] &&
		    fabs(got[1] - want[1]) <= 1e-9 * (double)count;

	s->compared++;
	s->failed += !good;
	printf("%-6s %-20s %-9s %-28zu %.9g, CPU %.9g; losses %.9g, CPU %.9g\n",
	       good ? "ok" : "not ok", "sums", "", count, got[0], want[0], got[1], want[1]);
	release(s, &all);
}

/* A weight's own memory: the device's copy of it is what is multiplied. */
static float *as_weights(struct suite *s, const struct tensor *t)
{
	float *weights = s->be->alloc_weights(s->gpu, t->count);

	if (weights)
		s->be->upload(s->gpu, weights, t->cpu, t->count * sizeof(float));
	return weights;
}

static void gemm(struct suite *s)
{
	size_t most = pick(s, 70, 1500), m = size(s, most), n = size(s, most), k = size(s, most);
	bool weight = draw(s) % 2, is_gradient = !weight && draw(s) % 2, add_to = draw(s) % 2;
	bool ta = draw(s) % 2, tb = draw(s) % 2, has_bias = weight && draw(s) % 2;
	enum gemm_then then = is_gradient || add_to ? GEMM_PLAIN : (enum gemm_then)(draw(s) % 3);
	bool sum_a = is_gradient && ta && draw(s) % 2, sum_b = is_gradient && !sum_a && !tb;
	struct tensors all = { .count = 0 };
	struct tensor *a = random_tensor(s, &all, m * k, true, 1);
	struct tensor *b = random_tensor(s, &all, k * n + n, !weight, 1);
	struct tensor *c = add_to ? random_tensor(s, &all, m * n, !is_gradient, 1)
				  : poisoned(s, &all, m * n, !is_gradient);
	struct gemm g = { .m = m, .n = n, .k = k, .lda = ta ? m : k, .ldb = tb ? k : n, .ldc = n,
			  .trans_a = ta, .trans_b = tb, .alpha = draw(s) % 2 ? 1.0f : 0.5f,
			  .beta = add_to ? 1.0f : 0.0f, .b_is_weight = weight,
			  .c_is_gradient = is_gradient, .then = then,
			  .gelu = draw(s) % 3 ? GELU_TANH : GELU_ERF };
	struct tensor *kept = then == GEMM_GELU_BACKWARD ? random_tensor(s, &all, m * n, true, 2)
							 : poisoned(s, &all, m * n, true);
	struct tensor *sum = gradient(s, &all, sum_a ? m : n, add_to);
	float *weights = weight ? as_weights(s, b) : NULL;

	shape(s, "%zux%zux%zu %c%c%s%s%s%s%s%s", m, n, k, ta ? 'T' : 'N', tb ? 'T' : 'N',
	      weight ? " weight" : "", is_gradient ? " gradient" : "", add_to ? " add" : "",
	      has_bias ? " bias" : "", then == GEMM_GELU ? " gelu" : then ? " slope" : "",
	      sum_a ? " sum a" : sum_b ? " sum b" : "");
	for (size_t i = 0; weight && s->compute == COMPUTE_BF16 && i < b->count; i++)
		b->cpu[i] = widen(narrow(b->cpu[i]));
	g.a = a->gpu;
	g.b = weights ? (void *)weights : b->gpu;
	g.c = c->gpu;
	g.bias = has_bias ? weights + k * n : NULL;
	g.kept = then ? kept->gpu : NULL;
	g.sum_a = sum_a ? sum->gpu : NULL;
	g.sum_b = sum_b ? sum->gpu : NULL;
	s->be->gemm(s->gpu, &g);
	g.a = a->cpu;
	g.b = b->cpu;
	g.c = c->cpu;
	g.bias = has_bias ? b->cpu + k * n : NULL;
	g.kept = then ? kept->cpu : NULL;
	g.sum_a = sum_a ? sum->cpu : NULL;
	g.sum_b = sum_b ? sum->cpu : NULL;
	backend_cpu.gemm(s->cpu, &g);
	compare(s, "gemm", "c", c, (double)k);
	if (then == GEMM_GELU)
		compare(s, "gemm", "kept", kept, (double)k);
	if (sum_a || sum_b)
		compare(s, "gemm", "sum", sum, (double)k);
	s->be->free(s->gpu, weights);
	release(s, &all);
}

static const struct {
	const char *name;
	void (*run)(struct suite *s);
} operations[] = {
	{ "rmsnorm", rmsnorm }, { "layernorm", layernorm }, { "bias", bias },
	{ "positions", positions }, { "embedding", embedding }, { "rope", rope },
	{ "attention", attention }, { "swiglu", swiglu }, { "gelu", gelu },
	{ "cross_entropy", cross_entropy }, { "adamw", adamw }, { "sum_squares", sum_squares },
	{ "gemm", gemm },
};

/* --- the program ------------------------------------------------------------------------------ */

static void say(const char *text)
{
	fprintf(stderr, "note: %s\n", text);
}

static int run(struct suite *s, int64_t rounds)
{
	const struct backend_options options = { .compute = s->compute, .warn = say };
	const struct backend_options host = { .threads = 0 };
	char why[BACKEND_TEXT_BYTES];

	s->gpu = s->be->open(&options, why);
	if (!s->gpu) {
		printf("%s\n", why);
		return NO_GPU;
	}
	s->cpu = backend_cpu.open(&host, why);
	printf("%s\n", s->be->describe(s->gpu));
	for (int64_t round = 0; round < rounds; round++, s->seed++)
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			if (!s->only || strcmp(s->only, operations[i].name) == 0)
				operations[i].run(s);
	bool good = s->be->finish(s->gpu, why) == 0;
	if (!good)
		printf("not ok %s\n", why);
	s->be->close(s->gpu);
	backend_cpu.close(s->cpu);
	printf("%s: %zu tensors compared in %s, %zu differ\n",
	       good && s->failed == 0 ? "agree" : "DISAGREE", s->compared,
	       s->compute == COMPUTE_BF16 ? "bf16" : "fp32", s->failed);
	return good && s->failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct suite s = { .compute = COMPUTE_BF16, .seed = 1 };
	char why[BACKEND_TEXT_BYTES];
	int64_t rounds = 4;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--large") == 0)
			s.large = true;
		else if (strcmp(argv[i], "--fp32") == 0)
			s.compute = COMPUTE_FP32;
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			s.seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = strtoll(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			s.only = argv[++i];
		else
			return fprintf(stderr, "ops: unknown argument %s\n", argv[i]), 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.be = backend_load_cuda(why);
	if (!s.be) {
		printf("%s\n", why);
		return NO_GPU;
	}
	return run(&s, rounds);
}
