/* SPDX-License-Identifier: MIT */
/* generate.c - lbworker generate: a model goes on from a text. */
#include "worker/lbworker/commands/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/commands/infer.h"
#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/data/token_text.h"

enum { TOKENS_DEFAULT = 256 };

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
static int32_t *prompt_of(const struct infer_arguments *a, size_t vocab, size_t *count,
			  struct err *err)
{
	if (a->prompt_tokens)
		return token_text_numbers(a->prompt_tokens, vocab, count, err);
	if (vocab != TOKEN_TEXT_BYTES) {
		err_set(err, ERR_USAGE,
			"%s: its tokens are not bytes: give --prompt-tokens, numbers that its "
			"tokenizer made of a text",
			a->model);
		return NULL;
	}
	int32_t *tokens = xcalloc(strlen(a->prompt), sizeof(*tokens));
	for (*count = 0; a->prompt[*count]; ++*count)
		tokens[*count] = (unsigned char)a->prompt[*count];
	return tokens;
}

static int generate(struct model *m, const struct infer_arguments *a, const struct token_text *text,
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
		if (kept == m->seq) /* the oldest goes */
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

static int generate_with(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	size_t length = 0;

	if (!a->prompt_tokens && (!a->prompt || a->prompt[0] == '\0'))
		return err_set(err, ERR_USAGE, "generate needs --prompt TEXT, or --prompt-tokens");
	if (infer_read(f, a, err) || infer_open(f, a, err))
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
	struct infer_arguments a = { .temperature = 1 };
	struct infer f = { 0 };
	struct err err = { 0 };
	int rc = infer_parse(&a, argc, argv, &err);

	if (rc == 0)
		rc = generate_with(&f, &a, &err);
	infer_close(&f);
	return rc ? command_failed(&err) : EXIT_DONE;
}
