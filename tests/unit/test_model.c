/* SPDX-License-Identifier: MIT */
/* test_model.c - the decoders against numbers of independent PyTorch programs
 * (tests/golden, NAME_reference.py): every loss, every gradient, and a training of 200 steps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/mem.h"
#include "kernels/formats/operand.h"
#include "kernels/load.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/optim/optimizer.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/optim/schedule.h"
#include "tests/unit/source.h"

/* Both sides start from the same fp32 weights; the reference computes in fp64. */
static const double LOSS_TOLERANCE = 2e-6; /* relative */
static const double GRAD_TOLERANCE = 2e-5; /* of the tensor's largest gradient */

struct golden {
	const char *path;
	struct model_shape shape;
	size_t batch, seq;
	double lr, decay; /* of its training; 0: the usual */
	float expert_loss;
};

#define COMMON(V, D, L, H, G, F) \
	.vocab = (V), .dim = (D), .layers = (L), .heads = (H), .kv_heads = (G), .ffn = (F), \
	.norm_eps = 1e-5f
#define THETA .rope_theta = 10000.0

/* clang-format off */
static const struct golden goldens[] = {
	{ "tests/golden/llama_tied.safetensors", { COMMON(37, 32, 2, 4, 2, 40), THETA, .tied = true },
	  2, 9, 0, 0, 0 },
	{ "tests/golden/llama_untied.safetensors", { COMMON(50, 24, 2, 6, 2, 36), THETA }, 3, 5, 0, 0, 0 },
	{ "tests/golden/llama_scaled.safetensors",
	  { COMMON(30, 24, 1, 3, 1, 20), THETA, .tied = true, .scaling = { 8, 1, 4, 100 } }, 1, 7, 0, 0, 0 },
	{ "tests/golden/neox.safetensors",
	  { COMMON(41, 32, 2, 4, 4, 56), THETA, .family = MODEL_NEOX, .rotary = 2 }, 2, 9, 0, 0, 0 },
	{ "tests/golden/neox_whole.safetensors",
	  { COMMON(30, 24, 1, 3, 3, 40), THETA, .family = MODEL_NEOX, .rotary = 8 }, 1, 6, 0, 0, 0 },
	{ "tests/golden/gpt2.safetensors",
	  { COMMON(43, 32, 2, 4, 4, 48), THETA, .family = MODEL_GPT2, .tied = true, .positions = 12 },
	  3, 8, 0, 0, 0 },
	{ "tests/golden/llama_odd.safetensors",
	  { COMMON(61, 30, 3, 3, 1, 37), .head_dim = 14, .rope_theta = 500.0 }, 2, 7, 0, 0, 0 },
	{ "tests/golden/neox_odd.safetensors",
	  { COMMON(53, 44, 1, 2, 2, 51), THETA, .family = MODEL_NEOX, .rotary = 6 }, 3, 5, 0, 0, 0 },
	{ "tests/golden/gpt2_odd.safetensors",
	  { COMMON(31, 42, 1, 3, 3, 65), THETA, .family = MODEL_GPT2, .tied = true, .positions = 11 },
	  1, 11, 0, 0, 0 },
	{ "tests/golden/umup.safetensors",
	  { COMMON(37, 32, 3, 4, 2, 40), THETA,
	    .umup = { true, .attention = 1.5, .activation = 0.7, .residual = 0.8, .ratio = 1.25,
		      .loss = 1.3, .context = 9 } },
	  2, 9, 0.25, 1e-3, 0 },
	{ "tests/golden/mistral.safetensors",
	  { COMMON(37, 32, 2, 4, 2, 40), THETA, .family = MODEL_MISTRAL, .tied = true, .window = 4 },
	  2, 9, 0, 0, 0 },
	{ "tests/golden/qwen3.safetensors",
	  { COMMON(37, 32, 2, 4, 2, 40), THETA, .family = MODEL_QWEN3, .tied = true, .head_dim = 10 },
	  2, 9, 0, 0, 0 },
	{ "tests/golden/qwen3_odd.safetensors",
	  { COMMON(41, 30, 1, 3, 1, 29), THETA, .family = MODEL_QWEN3, .head_dim = 6 }, 3, 5, 0, 0, 0 },
	{ "tests/golden/olmo2.safetensors",
	  { COMMON(37, 32, 2, 4, 2, 40), THETA, .family = MODEL_OLMO2 }, 2, 9, 0, 0, 0 },
	{ "tests/golden/gemma2.safetensors",
	  { COMMON(37, 32, 3, 4, 2, 40), THETA, .family = MODEL_GEMMA2, .tied = true,
	    .head_dim = 10, .window = 4, .full_every = 2, .query_scalar = 7, .score_softcap = 1.5,
	    .logit_softcap = 4 },
	  2, 9, 0, 0, 0 },
	{ "tests/golden/gemma3.safetensors",
	  { COMMON(37, 32, 3, 4, 2, 40), .rope_theta = 300, .family = MODEL_GEMMA3, .tied = true,
	    .head_dim = 10, .window = 4, .full_every = 3, .query_scalar = 7, .local_theta = 50,
	    .scaling = { .factor = 8 } },
	  2, 9, 0, 0, 0 },
	{ "tests/golden/qwen3_moe.safetensors",
	  { COMMON(37, 32, 2, 4, 2, 40), THETA, .family = MODEL_QWEN3_MOE, .tied = true,
	    .head_dim = 10,
	    .experts = { .count = 5, .top = 2, .ffn = 12, .normed = true, .scale = 1 } },
	  2, 9, 0, 0, .expert_loss = 0.5f },
	{ "tests/golden/qwen3_moe_odd.safetensors",
	  { COMMON(41, 30, 2, 3, 1, 29), THETA, .family = MODEL_QWEN3_MOE, .head_dim = 6,
	    .experts = { .count = 7, .top = 3, .ffn = 11, .dense = 1, .scale = 1 } },
	  3, 5, 0, 0, 0 },
	{ "tests/golden/dots1.safetensors",
	  { COMMON(37, 32, 3, 4, 4, 40), THETA, .family = MODEL_DOTS1, .tied = true,
	    .experts = { .count = 6, .top = 3, .ffn = 10, .shared = 2, .dense = 1, .normed = true,
			 .scale = 1.7 } },
	  2, 9, 0, 0, 0 },
};
/* clang-format on */
enum { GOLDENS = sizeof(goldens) / sizeof(goldens[0]) };

struct fixture {
	struct device *device;
	struct model *model;
	struct st_file *file;
	const int32_t *tokens, *targets;
	const float *losses;
	size_t rows;
};

static const void *find(const struct st_file *file, const char *name, enum st_type type,
			uint64_t rows, uint64_t columns)
{
	const uint64_t shape[ST_MAX_DIMENSIONS] = { rows, columns };
	struct err err = { 0 };
	const struct st_tensor *t = st_find(file, name, type, shape, &err);

	if (!t)
		fail_msg("%s", err.text);
	return t->data;
}

static void open_with(struct fixture *f, const struct golden *g, int threads,
		      const struct model_options *keeps)
{
	const struct backend_options host = { .threads = threads };
	const struct model_options options = { .batch = g->batch,
					       .seq = g->seq,
					       .again = keeps->again,
					       .more = keeps->more,
					       .more_layers = keeps->more_layers,
					       .expert_loss = g->expert_loss };
	char why[BACKEND_TEXT_BYTES];
	struct err err = { 0 };

	f->device = backend_cpu()->open(&host, why);
	assert_non_null(f->device);
	if (model_create(&f->model, &g->shape, backend_cpu(), f->device, &options, &err))
		fail_msg("%s", err.text);
	f->file = st_open(source_path(g->path), &err);
	if (!f->file)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < f->model->tensors; i++) {
		const struct model_tensor *t = &f->model->tensor[i];
		size_t count = t->rows * (t->columns ? t->columns : 1);
		memcpy(f->model->weights + t->offset,
		       find(f->file, t->name, ST_F32, t->rows, t->columns), count * sizeof(float));
	}
	f->tokens = find(f->file, "tokens", ST_I32, g->batch, g->seq);
	f->targets = find(f->file, "targets", ST_I32, g->batch, g->seq);
	f->losses = find(f->file, "losses", ST_F32, g->batch, g->seq);
	f->rows = g->batch * g->seq;
}

static void open_golden(struct fixture *f, const struct golden *g, int threads)
{
	open_with(f, g, threads, &(struct model_options){ 0 });
}

static void close_golden(struct fixture *f)
{
	st_close(f->file);
	model_destroy(f->model);
	backend_cpu()->close(f->device);
}

static double loss_sum(const struct fixture *f)
{
	double sum = 0;
	for (size_t i = 0; i < f->rows; i++)
		sum += (double)f->losses[i];
	return sum;
}

static void check_gradient(const struct fixture *f, const struct model_tensor *t)
{
	size_t count = t->rows * (t->columns ? t->columns : 1), worst = 0;
	const float *have = (const float *)f->model->grads + t->offset;
	char name[128];
	double largest = 0, error = 0;

	snprintf(name, sizeof(name), "grad.%s", t->name);
	const float *want = find(f->file, name, ST_F32, t->rows, t->columns);
	for (size_t i = 0; i < count; i++) {
		double e = fabs((double)have[i] - (double)want[i]);
		largest = fmax(largest, fabs((double)want[i]));
		if (!(e <= error)) { /* true for NaN */
			error = e;
			worst = i;
		}
	}
	if (!(error <= GRAD_TOLERANCE * largest))
		fail_msg("%s[%zu]: %.9g, reference %.9g (largest %.3g)", t->name, worst,
			 (double)have[worst], (double)want[worst], largest);
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		struct fixture f = { 0 };
		struct err err = { 0 };
		double sum, plain;
		open_golden(&f, &goldens[i], 2);
		double want = loss_sum(&f);
		assert_int_equal(model_loss(f.model, f.tokens, f.targets, &plain, &err), 0);
		assert_int_equal(model_backprop(f.model, f.tokens, f.targets, 1.0f / (float)f.rows,
						false, &sum, &err),
				 0);
		assert_true(plain == sum);
		if (!(fabs(sum - want) <= LOSS_TOLERANCE * want))
			fail_msg("%s: loss %.9g, reference %.9g", goldens[i].path, sum, want);
		for (size_t k = 0; k < f.model->tensors; k++)
			check_gradient(&f, &f.model->tensor[k]);
		close_golden(&f);
	}
}

/* Two passes of half the scale are one pass, up to rounding; and nothing old is left over. */
static void test_accumulate(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		struct fixture f = { 0 };
		struct err err = { 0 };
		double sum;
		open_golden(&f, &goldens[i], 2);
		for (int pass = 0; pass < 4; pass++)
			assert_int_equal(model_backprop(f.model, f.tokens, f.targets,
							0.5f / (float)f.rows, pass % 2 == 1, &sum,
							&err),
					 0);
		for (size_t k = 0; k < f.model->tensors; k++)
			check_gradient(&f, &f.model->tensor[k]);
		close_golden(&f);
	}
}

static void same_gradients(struct fixture *f, struct fixture *g)
{
	struct err err = { 0 };
	double a, b;

	assert_int_equal(model_backprop(f->model, f->tokens, f->targets, 1, false, &a, &err), 0);
	assert_int_equal(model_backprop(g->model, g->tokens, g->targets, 1, false, &b, &err), 0);
	assert_true(a == b);
	assert_memory_equal(f->model->grads, g->model->grads, f->model->parameters * sizeof(float));
}

/* Bit for bit the same gradients from one thread and from five. */
static void test_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		struct fixture one = { 0 }, five = { 0 };
		open_golden(&one, &goldens[i], 1);
		open_golden(&five, &goldens[i], 5);
		same_gradients(&one, &five);
		close_golden(&one);
		close_golden(&five);
	}
}

/* What is computed again is what was there before, to the bit; and it saves memory: each part
 * alone, all of them, and some in one layer only. */
static void test_recompute(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		const struct model_shape *shape = &goldens[i].shape;
		struct model_cost all, some;
		struct fixture kept = { 0 };
		struct err err = { 0 };
		open_golden(&kept, &goldens[i], 2);
		assert_int_equal(model_cost(&all, shape, &kept.model->options, &err), 0);
		for (int part = 0; part < AGAIN_PARTS + 2; part++) {
			struct fixture again = { 0 };
			const unsigned parts = part < AGAIN_PARTS ? 1U << part : AGAIN_ALL;
			const bool one = part > AGAIN_PARTS;
			open_with(&again, &goldens[i], 2,
				  &(struct model_options){ .again = one ? AGAIN_CHEAP : parts,
							   .more = one ? AGAIN_ALL : 0,
							   .more_layers = one });
			same_gradients(&kept, &again);
			assert_int_equal(model_cost(&some, shape, &again.model->options, &err), 0);
			assert_int_equal(some.parameters, all.parameters);
			/* Of one layer of a kind nothing is saved. Side by side there is no stream
			 * between the halves; OLMo 2 norms nothing before them. */
			if (shape->layers > 1 + shape->experts.dense && !one &&
			    (parts != AGAIN_MIDDLE || shape->family != MODEL_NEOX) &&
			    (parts != AGAIN_NORMED || shape->family != MODEL_OLMO2))
				assert_true(some.activation_bytes < all.activation_bytes);
			close_golden(&again);
		}
		close_golden(&kept);
	}
}

/* A sequence that goes on, in any pieces, has the logits of one that is computed whole. */
static void check_extended(const struct golden *g)
{
	enum { SEQ = 101 }; /* several stripes of attention */
	const size_t seq = g->shape.positions ? g->shape.positions : SEQ;
	const struct model_options options = { .batch = 1, .seq = seq };
	const struct backend_options host = { .threads = 2 };
	size_t vocab = g->shape.vocab, count;
	float *whole = xcalloc(seq * vocab, sizeof(*whole)), *last = xcalloc(vocab, sizeof(*last));
	struct device *device = backend_cpu()->open(&host, (char[BACKEND_TEXT_BYTES]){ 0 });
	int32_t tokens[SEQ];
	struct model *m;
	struct err err = { 0 };

	assert_non_null(device);
	assert_int_equal(model_create(&m, &g->shape, backend_cpu(), device, &options, &err), 0);
	model_init_weights(m, 7, 0.3);
	for (size_t i = 0; i < seq; i++)
		tokens[i] = (int32_t)((i * i + 3 * i) % vocab);
	assert_int_equal(model_logits(m, tokens, 0, seq, whole, &err), 0);
	for (size_t piece = 1; piece <= seq; piece = piece * 3 + 1)
		for (size_t at = 0; at < seq; at += count) {
			count = seq - at < piece ? seq - at : piece;
			assert_int_equal(model_extend(m, tokens, at, count, 1, last, &err), 0);
			assert_memory_equal(last, whole + (at + count - 1) * vocab,
					    vocab * sizeof(*last));
		}
	free(whole);
	free(last);
	model_destroy(m);
	backend_cpu()->close(device);
}

static void test_extended(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++)
		check_extended(&goldens[i]);
}

/* --- 200 steps of training -------------------------------------------------------------------- */

enum { POOL = 8, WARMUP = 20, STEPS = 200 }; /* as in golden.py */

/* The loss of each step, before its update. */
static void train(struct fixture *f, const struct golden *g, double losses[STEPS])
{
	const double peak = g->lr > 0 ? g->lr : 6e-4;
	const struct optimizer optimizer = { .beta1 = 0.9,
					     .beta2 = 0.95,
					     .eps = 1e-8,
					     .weight_decay = g->decay > 0 ? g->decay : 0.1,
					     .max_norm = 1,
					     .peak_lr = peak };
	/* the reference decays from the first step behind the warm-up on */
	const struct schedule schedule = { .peak = peak,
					   .warmup_steps = WARMUP,
					   .steps = STEPS,
					   .decay_ratio = (STEPS - WARMUP + 1.0) / STEPS,
					   .decay = SCHEDULE_COSINE,
					   .min_factor = 0.1 };
	struct model *model = f->model;
	size_t rows = POOL * model->batch;
	const int32_t *tokens = find(f->file, "train.tokens", ST_I32, rows, model->seq);
	const int32_t *targets = find(f->file, "train.targets", ST_I32, rows, model->seq);
	float *m = xcalloc(model->parameters, sizeof(*m));
	float *v = xcalloc(model->parameters, sizeof(*v));

	for (int64_t i = 0; i < STEPS; i++) {
		size_t at = (size_t)i % POOL * f->rows;
		struct optimizer_step step = { .lr = schedule_lr(&schedule, i + 1),
					       .update = i + 1,
					       .norm_limit = INFINITY };
		struct step_control control = optimizer_control(&optimizer, &step);
		struct err err = { 0 };
		assert_int_equal(model_backprop(model, tokens + at, targets + at,
						1.0f / (float)f->rows, false, &losses[i], &err),
				 0);
		control.loss_sum = losses[i];
		losses[i] /= (double)f->rows;
		optimizer_update(&optimizer, model, &(struct kept){ .m = m, .v = v }, &control,
				 (int64_t)f->rows);
		assert_int_equal(control.is_left_out, 0);
	}
	free(m);
	free(v);
}

static void test_training(void **state)
{
	static const double tolerance = 1e-4; /* relative, of each step's loss */

	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		struct fixture f = { 0 };
		double losses[STEPS], worst = 0;
		open_golden(&f, &goldens[i], 2);
		train(&f, &goldens[i], losses);
		const float *want = find(f.file, "train.losses", ST_F32, STEPS, 0);
		for (int k = 0; k < STEPS; k++) {
			double off = fabs(losses[k] - (double)want[k]) / (double)want[k];
			if (!(off <= tolerance))
				fail_msg("%s: step %d: loss %.9g, reference %.9g", goldens[i].path,
					 k + 1, losses[k], (double)want[k]);
			worst = fmax(worst, off);
		}
		print_message("%s: %d steps, worst loss off by %.1e\n", goldens[i].path, STEPS,
			      worst);
		close_golden(&f);
	}
}

/* Logits of the last document, behind a first one that begins with `first`. */
static void document_logits(bool masked, int32_t first, float *logits, size_t rows)
{
	const struct golden *g = &goldens[0];
	const struct model_options options = {
		.batch = 1, .seq = 60, .mask_documents = masked, .separator = 5
	};
	const struct backend_options host = { .threads = 2 };
	struct device *device = backend_cpu()->open(&host, (char[BACKEND_TEXT_BYTES]){ 0 });
	int32_t tokens[60];
	struct model *m;
	struct err err = { 0 };

	assert_non_null(device);
	assert_int_equal(model_create(&m, &g->shape, backend_cpu(), device, &options, &err), 0);
	model_init_weights(m, 7, 0.3);
	for (size_t i = 0; i < 60; i++)
		tokens[i] = (int32_t)(i * i % 31) + 6;
	tokens[0] = first;
	tokens[60 - rows - 1] = 5; /* the last document has `rows` tokens */
	assert_int_equal(model_logits(m, tokens, 60 - rows, rows, logits, &err), 0);
	model_destroy(m);
	backend_cpu()->close(device);
}

/* What stands in an earlier document changes nothing of a later one, to the bit; unmasked it
 * does. */
static void test_documents(void **state)
{
	enum { ROWS = 9, SIZE = ROWS * 37 };
	static float a[SIZE], b[SIZE];

	(void)state;
	document_logits(true, 6, a, ROWS);
	document_logits(true, 30, b, ROWS);
	assert_memory_equal(a, b, sizeof(a));
	document_logits(false, 6, a, ROWS);
	document_logits(false, 30, b, ROWS);
	assert_memory_not_equal(a, b, sizeof(a));
	document_logits(true, 30, b, ROWS);
	assert_memory_not_equal(a, b, sizeof(a));
}

/* What the products of the head round by chance, one stream after the other. */
static uint32_t streams[16];
static size_t stream_count;

static void note_streams(struct device *dev, const struct gemm *g)
{
	const struct operand_use *use[] = { g->use_a, g->use_b };

	for (size_t i = 0; i < 2; i++)
		if (use[i] && use[i]->cast->rounding == ROUND_STOCHASTIC)
			streams[stream_count++ % 16] = use[i]->random.tensor;
	backend_cpu()->gemm(dev, g);
}

/* Rows of the head come in chunks, each with random numbers of its own: the same ones would make
 * the same mistakes. */
static void test_chunks_by_chance(void **state)
{
	const struct golden *g = &goldens[0];
	const struct precision_wish wish = { .recipe = "mxfp4",
					     .layers = g->shape.layers,
					     .first_layers = g->shape.layers };
	const struct model_options options = { .batch = 1,
					       .seq = 8,
					       .head_elements = 3 * g->shape.vocab };
	const struct backend_options host = { .threads = 1 };
	struct device *device = backend_cpu()->open(&host, (char[BACKEND_TEXT_BYTES]){ 0 });
	struct backend noting = *backend_cpu();
	int32_t tokens[8] = { 1, 2, 3, 1, 2, 3, 1, 2 };
	struct err err = { 0 };
	struct model *m;
	double loss;

	(void)state;
	assert_non_null(device);
	noting.gemm = note_streams;
	assert_int_equal(model_create(&m, &g->shape, &noting, device, &options, &err), 0);
	model_init_weights(m, 7, 0.3);
	assert_int_equal(precision_create(&m->precision, &wish, NULL, &err), 0);
	precision_step(m->precision, 1, false);
	stream_count = 0;
	assert_int_equal(model_backprop(m, tokens, tokens, 1, false, &loss, &err), 0);
	assert_true(stream_count == 3 * 2); /* chunks; of the gradient, in both its products */
	for (size_t i = 0; i < stream_count; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(streams[i], streams[k]);
	precision_destroy(m->precision);
	model_destroy(m);
	backend_cpu()->close(device);
}

/* The loss with its terms and its gradient, by their formulas in double. */
static void test_loss_terms(void **state)
{
	enum { VOCAB = 700, TARGET = 300 };
	static const struct loss_terms cases[] = {
		{ 0, 0, 0 }, { 0.1f, 0, 0 }, { 0, 0.01f, 0 }, { 0, 0, 3 }, { 0.2f, 0.03f, 2 },
	};
	const struct backend_options host = { .threads = 1 };
	struct device *device = backend_cpu()->open(&host, (char[BACKEND_TEXT_BYTES]){ 0 });
	const int32_t target = TARGET;

	(void)state;
	assert_non_null(device);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		const struct loss_terms *t = &cases[c];
		double y[VOCAB], sum = 0, mean = 0, e = (double)t->smoothing;
		float z[VOCAB], loss;
		for (int i = 0; i < VOCAB; i++)
			z[i] = (float)(4 * sin(i * 1.7));
		if (t->softcap > 0)
			backend_cpu()->softcap(device, z, VOCAB, t->softcap);
		for (int i = 0; i < VOCAB; i++) {
			double x = 4 * sin(i * 1.7), cap = (double)t->softcap;
			y[i] = cap > 0 ? cap * tanh((double)(float)x / cap) : (double)(float)x;
			assert_true(fabs((double)z[i] - y[i]) < 2e-6);
			sum += exp(y[i]);
			mean += y[i] / VOCAB;
		}
		backend_cpu()->cross_entropy_with(device, &loss, z, &target, 1, VOCAB, 0.5f, t);
		double lse = log(sum);
		double want = lse - (1 - e) * y[TARGET] - e * mean + (double)t->z_loss * lse * lse;
		assert_true(fabs((double)loss - want) < 1e-5);
		for (int i = 0; i < VOCAB; i++) {
			double d = exp(y[i]) / sum * (1 + 2 * (double)t->z_loss * lse) -
				   (i == TARGET ? 1 - e : 0) - e / VOCAB;
			double ratio = t->softcap > 0 ? y[i] / (double)t->softcap : 0;
			d *= 0.5 * (1 - ratio * ratio);
			if (fabs((double)z[i] - d) > 1e-6)
				fail_msg("case %zu: %d: %.9g, not %.9g", c, i, (double)z[i], d);
		}
	}
	backend_cpu()->close(device);
}

static void test_shapes_refused(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text;
		struct model_shape shape;
	} cases[] = {
		{ "heads", { .vocab = 8, .dim = 8, .layers = 1, .heads = 3, .kv_heads = 1, .ffn = 8 } },
		{ "kv_heads", { .vocab = 8, .dim = 12, .layers = 1, .heads = 3, .kv_heads = 2, .ffn = 8 } },
		{ "kv_heads", { .family = MODEL_NEOX, .vocab = 8, .dim = 16, .layers = 1, .heads = 4,
				.kv_heads = 2, .ffn = 8 } },
		{ "rotary", { .vocab = 8, .dim = 8, .layers = 1, .heads = 2, .kv_heads = 1, .ffn = 8,
			      .rotary = 6 } },
		{ "positions", { .family = MODEL_GPT2, .vocab = 8, .dim = 8, .layers = 1, .heads = 2,
				 .kv_heads = 2, .ffn = 8, .positions = 3 } },
		{ "vocab 0 must be 1 to 16777216",
		  { .vocab = 0, .dim = 8, .layers = 1, .heads = 2, .kv_heads = 1, .ffn = 8 } },
	};
	/* clang-format on */
	const struct backend_options options = { .threads = 1 };
	const struct model_options small = { .batch = 1, .seq = 4 };
	char why[BACKEND_TEXT_BYTES];
	struct device *device = backend_cpu()->open(&options, why);
	struct model *model;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		assert_int_equal(model_create(&model, &cases[i].shape, backend_cpu(), device,
					      &small, &err),
				 -1);
		assert_null(model);
		assert_non_null(strstr(err.text, cases[i].text));
	}
	backend_cpu()->close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),     cmocka_unit_test(test_accumulate),
		cmocka_unit_test(test_threads),    cmocka_unit_test(test_recompute),
		cmocka_unit_test(test_training),   cmocka_unit_test(test_shapes_refused),
		cmocka_unit_test(test_extended),   cmocka_unit_test(test_documents),
		cmocka_unit_test(test_loss_terms), cmocka_unit_test(test_chunks_by_chance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
