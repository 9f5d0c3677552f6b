/* SPDX-License-Identifier: MIT */
/* generate.c - lbworker generate: a model goes on from a text. */
#include "worker/lbworker/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/commands/infer.h"
#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/commands/sample.h"
#include "worker/lbworker/data/token_text.h"

enum { TOKENS_DEFAULT = 256 };

static double uniform_of(int64_t seed, uint64_t element)
{
	const struct rng rng = { .seed = (uint64_t)seed, .stream = RNG_GENERATE };
	uint32_t words[4];

	rng_words(&rng, element, words);
	return ((double)words[0] + 0.5) / 4294967296.0;
}

/* What to begin with. The caller frees. */
static int32_t *prompt_of(const struct infer_arguments *a, const struct token_text *text,
			  size_t vocab, size_t *count, struct err *err)
{
	int64_t begin = a->begin ? token_text_find(text, a->begin) : -1;

	if (a->prompt_tokens)
		return token_text_numbers(a->prompt_tokens, vocab, count, err);
	if (a->begin && begin < 0) {
		err_set(err, ERR_USAGE, "--begin %.40s: there is no such token", a->begin);
		return NULL;
	}
	int32_t *tokens = token_text_tokens(text, a->prompt, strlen(a->prompt), count, err);
	if (tokens && begin >= 0) {
		tokens = xrealloc(tokens, (*count + 1) * sizeof(*tokens));
		memmove(tokens + 1, tokens, *count * sizeof(*tokens));
		tokens[0] = (int32_t)begin;
		++*count;
	}
	return tokens;
}

/* Each token is to be seen when it is there. */
static void show(const struct token_text *text, int32_t token, bool begins)
{
	token_text_put(text, token, begins, stdout);
	fflush(stdout);
}

/* The tokens so far, as many as the model can see. */
struct window {
	int32_t *token;
	size_t count;
	size_t computed; /* of these, what the model has keys and values of */
};

static void append(struct window *w, int32_t token, size_t seq)
{
	if (w->count == seq) { /* the oldest goes, and all others change their places */
		memmove(w->token, w->token + 1, --w->count * sizeof(*w->token));
		w->computed = 0;
	}
	w->token[w->count++] = token;
}

static int next_logits(struct model *m, const struct infer_arguments *a, struct window *w,
		       float *logits, struct err *err)
{
	size_t first = a->no_cache ? w->count - 1 : w->computed;
	int rc = a->no_cache ? model_logits(m, w->token, first, 1, logits, err)
			     : model_extend(m, w->token, first, w->count - first, 1, logits, err);

	w->computed = w->count;
	return rc ? rc : sample_check(logits, m->shape.vocab, err);
}

static int generate(struct model *m, const struct infer_arguments *a, const struct token_text *text,
		    const int32_t *prompt, size_t length, struct err *err)
{
	const struct sampler sampler = { a->temperature, (size_t)a->top_k, a->top_p };
	float *logits = xmalloc(m->shape.vocab * sizeof(*logits));
	struct window w = { .token = xcalloc(m->seq, sizeof(*w.token)),
			    .count = length < m->seq ? length : m->seq };
	int64_t tokens = a->tokens ? a->tokens : TOKENS_DEFAULT, end = token_text_end(text);
	int rc = 0;

	memcpy(w.token, prompt + length - w.count, w.count * sizeof(*w.token));
	for (size_t i = 0; i < length; i++)
		show(text, prompt[i], i == 0);
	for (int64_t n = 0; n < tokens && rc == 0; n++) {
		rc = next_logits(m, a, &w, logits, err);
		if (rc)
			break;
		int32_t next = sample_token(&sampler, logits, m->shape.vocab,
					    uniform_of(a->seed, (uint64_t)n));
		if (next == end)
			break;
		append(&w, next, m->seq);
		show(text, next, false);
	}
	(void)putchar('\n');
	free(w.token);
	free(logits);
	return rc;
}

static int generate_with(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	size_t length = 0;

	if (!a->prompt_tokens && (!a->prompt || a->prompt[0] == '\0'))
		return err_set(err, ERR_USAGE, "generate needs --prompt TEXT, or --prompt-tokens");
	if (a->prompt_tokens && (a->prompt || a->begin))
		return err_set(err, ERR_USAGE, "--prompt-tokens goes without %s",
			       a->prompt ? "--prompt" : "--begin");
	if (infer_read(f, a, err))
		return -1;
	struct token_text *text = token_text_open(f->tokenizer, f->shape.vocab, err);
	int32_t *prompt = text ? prompt_of(a, text, f->shape.vocab, &length, err) : NULL;
	int rc = prompt && infer_open(f, a, err) == 0
			 ? generate(f->model, a, text, prompt, length, err)
			 : -1;
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
