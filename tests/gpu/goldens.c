/* SPDX-License-Identifier: MIT */
/* goldens.c - loss and every gradient of small whole models on the CUDA backend, against what
 * PyTorch said in fp64 (tests/golden): once operation by operation, once while it is recorded, once
 * replayed.
 *
 *   goldens [--bf16] [--deterministic]
 *
 * Prints the worst gradient of each model, as a share of its tensor's largest. Exit 77: no GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "kernels/load.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/base/safetensors.h"

enum { NO_GPU = 77, PASSES = 3 };

#define SIZES(V, D, L, H, G, F) \
	.vocab = (V), .dim = (D), .layers = (L), .heads = (H), .kv_heads = (G), .ffn = (F), \
	.norm_eps = 1e-5f
#define COMMON(...) SIZES(__VA_ARGS__), .rope_theta = 10000.0

#define FAMILY(name) .family = MODEL_##name

static const struct {
	const char *path;
	struct model_shape shape;
	size_t batch, seq;
} goldens[] = {
	{ "llama_tied", { COMMON(37, 32, 2, 4, 2, 40), .tied = true }, 2, 9 },
	{ "llama_untied", { COMMON(50, 24, 2, 6, 2, 36) }, 3, 5 },
	{ "llama_scaled",
	  { COMMON(30, 24, 1, 3, 1, 20), .tied = true, .scaling = { 8, 1, 4, 100 } },
	  1,
	  7 },
	{ "neox", { COMMON(41, 32, 2, 4, 4, 56), .family = MODEL_NEOX, .rotary = 2 }, 2, 9 },
	{ "neox_whole", { COMMON(30, 24, 1, 3, 3, 40), .family = MODEL_NEOX, .rotary = 8 }, 1, 6 },
	{ "gpt2",
	  { COMMON(43, 32, 2, 4, 4, 48), .family = MODEL_GPT2, .tied = true, .positions = 12 },
	  3,
	  8 },
	{ "mistral",
	  { COMMON(37, 32, 2, 4, 2, 40), FAMILY(MISTRAL), .tied = true, .window = 4 },
	  2,
	  9 },
	{ "qwen3",
	  { COMMON(37, 32, 2, 4, 2, 40), FAMILY(QWEN3), .tied = true, .head_dim = 10 },
	  2,
	  9 },
	{ "qwen3_odd", { COMMON(41, 30, 1, 3, 1, 29), FAMILY(QWEN3), .head_dim = 6 }, 3, 5 },
	{ "olmo2", { COMMON(37, 32, 2, 4, 2, 40), FAMILY(OLMO2) }, 2, 9 },
	{ "gemma2",
	  { COMMON(37, 32, 3, 4, 2, 40), FAMILY(GEMMA2), .tied = true, .head_dim = 10, .window = 4,
	    .full_every = 2, .query_scalar = 7, .score_softcap = 1.5, .logit_softcap = 4 },
	  2,
	  9 },
	{ "gemma3",
	  { SIZES(37, 32, 3, 4, 2, 40), FAMILY(GEMMA3), .rope_theta = 300, .tied = true,
	    .head_dim = 10, .window = 4, .full_every = 3, .query_scalar = 7, .local_theta = 50,
	    .scaling = { .factor = 8 } },
	  2,
	  9 },
};
enum { GOLDENS = sizeof(goldens) / sizeof(goldens[0]) };

struct tolerance {
	double loss, gradient; /* of the loss; of a tensor's largest gradient */
};
static const struct tolerance fp32 = { 5e-6, 1e-4 }, bf16 = { 5e-3, 8e-2 };

struct checked {
	const struct backend *be;
	struct device *device;
	const struct tolerance *allowed;
	struct model *model;
	struct st_file *file;
	float *host;
};

static void fail(const char *text)
{
	printf("not ok %s\n", text);
	exit(1);
}

static const void *find(const struct checked *c, const char *name, enum st_type type, size_t rows,
			size_t columns)
{
	const uint64_t shape[ST_MAX_DIMENSIONS] = { rows, columns };
	struct err err = { 0 };
	const struct st_tensor *t = st_find(c->file, name, type, shape, &err);

	if (!t)
		fail(err.text);
	return t->data;
}

static void load(struct checked *c)
{
	struct model *m = c->model;

	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		size_t count = t->rows * (t->columns ? t->columns : 1);
		memcpy(c->host + t->offset, find(c, t->name, ST_F32, t->rows, t->columns),
		       count * sizeof(float));
	}
	c->be->upload(c->device, m->weights, c->host, m->parameters * sizeof(float));
}

/* The worst gradient of a tensor, as a share of its largest. */
static double worst_of(const struct checked *c, const struct model_tensor *t)
{
	size_t count = t->rows * (t->columns ? t->columns : 1);
	double largest = 1e-12, error = 0;
	char name[128];

	snprintf(name, sizeof(name), "grad.%s", t->name);
	const float *want = find(c, name, ST_F32, t->rows, t->columns);
	for (size_t i = 0; i < count; i++) {
		double e = fabs((double)c->host[t->offset + i] - (double)want[i]);
		largest = fmax(largest, fabs((double)want[i]));
		error = e <= error ? error : isnan(e) ? INFINITY : e;
	}
	return error / largest;
}

static int pass(struct checked *c, const char *name, int number, size_t rows)
{
	struct model *m = c->model;
	const int32_t *tokens = find(c, "tokens", ST_I32, m->batch, m->seq);
	const int32_t *targets = find(c, "targets", ST_I32, m->batch, m->seq);
	const float *losses = find(c, "losses", ST_F32, m->batch, m->seq);
	struct err err = { 0 };
	double sum, want = 0, worst = 0;
	const char *where = "";

	if (model_backprop(m, tokens, targets, 1.0f / (float)rows, false, &sum, &err))
		fail(err.text);
	for (size_t i = 0; i < rows; i++)
		want += (double)losses[i];
	c->be->download(c->device, c->host, m->grads, m->parameters * sizeof(float));
	for (size_t i = 0; i < m->tensors; i++) {
		double w = worst_of(c, &m->tensor[i]);
		where = w > worst ? m->tensor[i].name : where;
		worst = fmax(worst, w);
	}
	bool good = fabs(sum - want) <= c->allowed->loss * want && worst <= c->allowed->gradient;
	printf("%-6s %-14s pass %d: loss %.7g, PyTorch %.7g; worst gradient %.2e in %s\n",
	       good ? "ok" : "not ok", name, number, sum, want, worst, where);
	return !good;
}

static int check(struct checked *c, size_t g, const struct backend_options *options)
{
	const struct model_options o = { .batch = goldens[g].batch,
					 .seq = goldens[g].seq,
					 .compute = options->compute };
	char path[64];
	struct err err = { 0 };
	int failed = 0;

	snprintf(path, sizeof(path), "tests/golden/%s.safetensors", goldens[g].path);
	c->file = st_open(path, &err);
	if (!c->file || model_create(&c->model, &goldens[g].shape, c->be, c->device, &o, &err))
		fail(err.text);
	c->host = xcalloc(c->model->parameters, sizeof(float));
	load(c);
	for (int number = 1; number <= PASSES; number++)
		failed += pass(c, goldens[g].path, number, o.batch * o.seq);
	free(c->host);
	model_destroy(c->model);
	st_close(c->file);
	return failed;
}

int main(int argc, char **argv)
{
	struct backend_options options = { .compute = COMPUTE_FP32 };
	struct checked c = { .allowed = &fp32 };
	char why[BACKEND_TEXT_BYTES];
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--bf16") == 0)
			options.compute = COMPUTE_BF16;
		else if (strcmp(argv[i], "--deterministic") == 0)
			options.deterministic = true;
		else
			return fprintf(stderr, "goldens: unknown argument %s\n", argv[i]), 2;
	}
	if (options.compute == COMPUTE_BF16)
		c.allowed = &bf16;
	c.be = backend_load_cuda(why);
	c.device = c.be ? c.be->open(&options, why) : NULL;
	if (!c.device) {
		printf("%s\n", why);
		return NO_GPU;
	}
	printf("%s\n", c.be->describe(c.device));
	for (size_t g = 0; g < GOLDENS; g++)
		failed += check(&c, g, &options);
	c.be->close(c.device);
	printf("%s\n", failed ? "DISAGREE with PyTorch" : "agree with PyTorch");
	return failed != 0;
}
