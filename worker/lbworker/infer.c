/* SPDX-License-Identifier: MIT */
/* infer.c - lbworker eval and generate: what a trained model says. */
#include "worker/lbworker/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/hf.h"
#include "worker/lbworker/device.h"
#include "worker/lbworker/rng.h"
#include "worker/lbworker/token_text.h"

enum { SEQ_DEFAULT_MAX = 1024, TOKENS_DEFAULT = 256 };

struct arguments {
	const char *model, *data, *logits, *prompt, *prompt_tokens, *tokenizer;
	int64_t seq_len, samples, tokens, seed;
	double temperature;
	enum device_wish device;
	enum compute compute;
};

struct infer {
	struct opened on;
	struct model *model;
};

/* --- arguments ------------------------------------------------------------------------------ */

static int take_number(const char *name, const char *text, double min, double *out, struct err *err)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end != '\0' || !(*out >= min) || *out > 1e15)
		return err_set(err, ERR_USAGE, "%s: \"%.40s\" is no number of at least %g", name,
			       text, min);
	return 0;
}

/* One of `words`, by its place in them. */
static int take_word(const char *name, const char *text, const char *const words[], int *out,
		     struct err *err)
{
	for (*out = 0; words[*out]; ++*out)
		if (strcmp(words[*out], text) == 0)
			return 0;
	err_set(err, ERR_USAGE, "%s: there is no \"%.40s\", allowed are %s, %s%s%s", name, text,
		words[0], words[1], words[2] ? ", " : "", words[2] ? words[2] : "");
	return -1;
}

static int take_device(struct arguments *a, const char *name, const char *value, struct err *err)
{
	static const char *const wishes[] = { [DEVICE_AUTO] = "auto", [DEVICE_CPU] = "cpu",
					      [DEVICE_CUDA] = "cuda", NULL };
	static const char *const types[] = { [COMPUTE_FP32] = "float32",
					     [COMPUTE_BF16] = "bfloat16", NULL };
	bool is_device = strcmp(name, "--device") == 0;
	int word;

	if (take_word(name, value, is_device ? wishes : types, &word, err))
		return -1;
	if (is_device)
		a->device = (enum device_wish)word;
	else
		a->compute = (enum compute)word;
	return 0;
}

static int take_option(struct arguments *a, const char *name, const char *value, struct err *err)
{
	const struct {
		const char *name, **text;
		int64_t *integer;
		double *real, min;
	} options[] = {
		{ "--logits", &a->logits, NULL, NULL, 0 },
		{ "--prompt", &a->prompt, NULL, NULL, 0 },
		{ "--prompt-tokens", &a->prompt_tokens, NULL, NULL, 0 },
		{ "--tokenizer", &a->tokenizer, NULL, NULL, 0 },
		{ "--seq-len", NULL, &a->seq_len, NULL, 1 },
		{ "--samples", NULL, &a->samples, NULL, 1 },
		{ "--tokens", NULL, &a->tokens, NULL, 1 },
		{ "--seed", NULL, &a->seed, NULL, 0 },
		{ "--temperature", NULL, NULL, &a->temperature, 0 },
	};

	if (strcmp(name, "--device") == 0 || strcmp(name, "--dtype") == 0)
		return take_device(a, name, value, err);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		double number;
		if (strcmp(options[i].name, name) != 0)
			continue;
		if (options[i].text) {
			*options[i].text = value;
			return 0;
		}
		if (take_number(name, value, options[i].min, &number, err))
			return -1;
		if (options[i].integer)
			*options[i].integer = (int64_t)number;
		else
			*options[i].real = number;
		return 0;
	}
	return err_set(err, ERR_USAGE, "there is no option %s here", name);
}

static int parse(struct arguments *a, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0) {
			if (i + 1 == argc)
				return err_set(err, ERR_USAGE, "%s needs a value", argv[i]);
			if (take_option(a, argv[i], argv[i + 1], err))
				return -1;
			i++;
		} else if (!a->model) {
			a->model = argv[i];
		} else if (!a->data) {
			a->data = argv[i];
		} else {
			return err_set(err, ERR_USAGE, "%s: one argument too many", argv[i]);
		}
	}
	return a->model ? 0 : err_set(err, ERR_USAGE, "%s needs a model", argv[0]);
}

/* --- the model ------------------------------------------------------------------------------ */

static void infer_close(struct infer *f)
{
	model_destroy(f->model);
	if (f->on.device)
		f->on.backend->close(f->on.device);
}

static int infer_open(struct infer *f, const struct arguments *a, struct err *err)
{
	const struct device_order order = { .wish = a->device, .wish_name = "--device cuda",
					    .compute = a->compute, .compute_name = "--dtype" };
	struct model_options options = { .batch = 1 };
	struct model_shape shape;
	size_t positions;

	if (hf_config_read(&shape, &positions, a->model, err))
		return -1;
	options.seq = positions < SEQ_DEFAULT_MAX ? positions : SEQ_DEFAULT_MAX;
	if (a->seq_len > 0)
		options.seq = (size_t)a->seq_len;
	if (device_open(&f->on, &order, err))
		return -1;
	options.compute = f->on.compute;
	if (model_create(&f->model, &shape, f->on.backend, f->on.device, &options, err))
		return -1;
	return hf_load(f->model, a->model, err);
}

/* --- eval ----------------------------------------------------------------------------------- */

/* The first sample's tokens and logits, for a comparison with other programs. */
static int write_logits(struct model *m, const int32_t *tokens, const char *path, struct err *err)
{
	size_t vocab = m->shape.vocab;
	float *logits = xmalloc(m->seq * vocab * sizeof(*logits));
	const struct st_tensor list[] = {
		{ .name = "tokens", .type = ST_I32, .dimensions = 1, .shape = { m->seq },
		  .data = tokens },
		{ .name = "logits", .type = ST_F32, .dimensions = 2, .shape = { m->seq, vocab },
		  .data = logits },
	};
	int rc = model_logits(m, tokens, 0, m->seq, logits, err);

	if (rc == 0)
		rc = st_write(path, list, 2, NULL, err);
	free(logits);
	return rc;
}

static int eval(struct model *m, const struct arguments *a, struct err *err)
{
	const struct data_options options = { .path = a->data, .seq = m->seq,
					      .vocab = m->shape.vocab, .verify = true };
	struct data *data = data_open(&options, err);
	int32_t *tokens = xcalloc(2 * m->seq, sizeof(*tokens)), *targets = tokens + m->seq;
	uint64_t samples = data ? data_samples(data) : 0;
	double sum = 0, part;
	int rc = data ? 0 : -1;

	if (a->samples > 0 && (uint64_t)a->samples < samples)
		samples = (uint64_t)a->samples;
	for (uint64_t i = 0; i < samples && rc == 0; i++) {
		rc = data_sample(data, i, tokens, targets, err);
		if (rc == 0 && i == 0 && a->logits)
			rc = write_logits(m, tokens, a->logits, err);
		if (rc == 0)
			rc = model_loss(m, tokens, targets, &part, err);
		sum += rc == 0 ? part : 0;
	}
	double loss = samples ? sum / (double)(samples * m->seq) : 0;
	if (rc == 0)
		printf("%" PRIu64 " tokens in %" PRIu64 " samples: loss %.6f, perplexity %.4f\n",
		       samples * m->seq, samples, loss, exp(loss));
	free(tokens);
	data_close(data);
	return rc;
}

int command_eval(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct infer f = { 0 };
	struct err err = { 0 };
	int rc = parse(&a, argc, argv, &err);

	if (rc == 0 && !a.data)
		rc = err_set(&err, ERR_USAGE, "eval needs data");
	if (rc == 0)
		rc = infer_open(&f, &a, &err);
	if (rc == 0 && f.model)
		rc = eval(f.model, &a, &err);
	infer_close(&f);
	return rc ? command_failed(&err) : EXIT_DONE;
}

/* --- generate ------------------------------------------------------------------------------- */

/* One token, drawn from softmax(logits / temperature); temperature 0: the most likely. */
static int32_t draw(const float *logits, size_t vocab, double temperature, double uniform)
{
	size_t best = 0;
	double sum = 0, so_far = 0;

	for (size_t i = 1; i < vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	if (temperature <= 0)
		return (int32_t)best;
	for (size_t i = 0; i < vocab; i++)
		sum += exp((double)(logits[i] - logits[best]) / temperature);
	for (size_t i = 0; i < vocab; i++) {
		so_far += exp((double)(logits[i] - logits[best]) / temperature);
		if (so_far >= uniform * sum)
			return (int32_t)i;
	}
	return (int32_t)best;
}

static double uniform_of(int64_t seed, uint64_t element)
{
	const struct rng rng = { .seed = (uint64_t)seed, .stream = RNG_GENERATE };
	uint32_t words[4];

	rng_words(&rng, element, words);
	return ((double)words[0] + 0.5) / 4294967296.0;
}

/* What to begin with. The caller frees. */
static int32_t *prompt_of(const struct arguments *a, size_t vocab, size_t *count, struct err *err)
{
	if (a->prompt_tokens)
		return token_text_numbers(a->prompt_tokens, vocab, count, err);
	if (vocab != TOKEN_TEXT_BYTES) {
		err_set(err, ERR_USAGE, "%s: its tokens are not bytes: give --prompt-tokens, numbers "
			"that its tokenizer made of a text", a->model);
		return NULL;
	}
	int32_t *tokens = xcalloc(strlen(a->prompt), sizeof(*tokens));
	for (*count = 0; a->prompt[*count]; ++*count)
		tokens[*count] = (unsigned char)a->prompt[*count];
	return tokens;
}

static int generate(struct model *m, const struct arguments *a, const struct token_text *text,
		    const int32_t *prompt, size_t length, struct err *err)
{
	float *logits = xmalloc(m->shape.vocab * sizeof(*logits));
	int32_t *window = xcalloc(m->seq, sizeof(*window));
	size_t kept = length < m->seq ? length : m->seq;
	int64_t tokens = a->tokens ? a->tokens : TOKENS_DEFAULT;
	int rc = 0;

	memcpy(window, prompt + length - kept, kept * sizeof(*window));
	for (size_t i = 0; i < length; i++)
		token_text_put(text, prompt[i], stdout);
	for (int64_t n = 0; n < tokens && rc == 0; n++) {
		rc = model_logits(m, window, kept - 1, 1, logits, err);
		if (rc)
			break;
		if (kept == m->seq)	/* the oldest goes */
			memmove(window, window + 1, --kept * sizeof(*window));
		window[kept] = draw(logits, m->shape.vocab, a->temperature,
				    uniform_of(a->seed, (uint64_t)n));
		token_text_put(text, window[kept++], stdout);
	}
	(void)putchar('\n');
	free(window);
	free(logits);
	return rc;
}

static int generate_with(struct infer *f, const struct arguments *a, struct err *err)
{
	size_t length = 0;

	if (!a->prompt_tokens && (!a->prompt || a->prompt[0] == '\0'))
		return err_set(err, ERR_USAGE, "generate needs --prompt TEXT, or --prompt-tokens");
	if (infer_open(f, a, err) || !f->model)
		return -1;
	size_t vocab = f->model->shape.vocab;
	int32_t *prompt = prompt_of(a, vocab, &length, err);
	struct token_text *text = prompt ? token_text_open(a->tokenizer, vocab, err) : NULL;
	int rc = text ? generate(f->model, a, text, prompt, length, err) : -1;
	token_text_close(text);
	free(prompt);
	return rc;
}

int command_generate(int argc, char **argv)
{
	struct arguments a = { .temperature = 1 };
	struct infer f = { 0 };
	struct err err = { 0 };
	int rc = parse(&a, argc, argv, &err);

	if (rc == 0)
		rc = generate_with(&f, &a, &err);
	infer_close(&f);
	return rc ? command_failed(&err) : EXIT_DONE;
}
