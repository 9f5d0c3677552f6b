/* SPDX-License-Identifier: MIT */
/* eval.c - lbworker eval: the loss of a model on data. */
#include "worker/lbworker/commands/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/data/input_files.h"
#include "worker/lbworker/data/token_text.h"
#include "worker/lbworker/commands/choose.h"
#include "worker/lbworker/commands/infer.h"
#include "worker/lbworker/commands/sample.h"
#include "worker/lbworker/base/safetensors.h"

enum { MAX_TEXT_BYTES = 1 << 30 };

/* The first sample's tokens and logits, for a comparison with other programs. */
static int write_logits(struct model *m, const int32_t *tokens, const char *path, struct err *err)
{
	size_t vocab = m->shape.vocab;
	float *logits = xmalloc(m->seq * vocab * sizeof(*logits));
	const struct st_tensor list[] = {
		{ .name = "tokens",
		  .type = ST_I32,
		  .dimensions = 1,
		  .shape = { m->seq },
		  .data = tokens },
		{ .name = "logits",
		  .type = ST_F32,
		  .dimensions = 2,
		  .shape = { m->seq, vocab },
		  .data = logits },
	};
	int rc = model_logits(m, tokens, 0, m->seq, logits, err);

	if (rc == 0)
		rc = st_write(path, list, 2, NULL, err);
	free(logits);
	return rc;
}

static int eval(struct model *m, const struct data *data, const struct infer_arguments *a,
		struct err *err)
{
	int32_t *tokens = xcalloc(2 * m->seq, sizeof(*tokens)), *targets = tokens + m->seq;
	uint64_t samples = data_samples(data);
	double sum = 0, part;
	int rc = 0;

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
	double loss = sum / (double)(samples * m->seq);
	if (rc == 0)
		printf("%" PRIu64 " tokens in %" PRIu64 " samples: loss %.6f, perplexity %.4f\n",
		       samples * m->seq, samples, loss, exp(loss));
	free(tokens);
	return rc;
}

/* --- a text --------------------------------------------------------------------------------- */

/* Of targets first to count of a window: what the model gives them. The window is as long as the
 * model's. */
static int score(struct model *m, const int32_t *window, size_t first, size_t count, double *sum,
		 struct err *err)
{
	size_t vocab = m->shape.vocab;
	float *logits = xmalloc((count - first) * vocab * sizeof(*logits));
	int rc = model_logits(m, window, first, count - first, logits, err);

	for (size_t row = first; rc == 0 && row < count; row++)
		*sum -= sample_likelihood(logits + (row - first) * vocab, vocab, window[row + 1]);
	free(logits);
	return rc;
}

/* Windows side by side; the last one begins earlier, so that it is as long, and its new targets
 * count. */
static int eval_tokens(struct model *m, const int32_t *token, size_t count, double *sum,
		       struct err *err)
{
	int32_t *window = xcalloc(m->seq + 1, sizeof(*window));
	int rc = 0;

	*sum = 0;
	for (size_t at = 0; rc == 0 && at + 1 < count;) {
		size_t left = count - 1 - at, targets = left < m->seq ? left : m->seq;
		size_t from = targets == m->seq || count - 1 < m->seq ? at : count - 1 - m->seq;
		size_t first = at - from;
		memcpy(window, token + from, (first + targets + 1) * sizeof(*window));
		rc = score(m, window, first, first + targets, sum, err);
		at += targets;
	}
	free(window);
	return rc;
}

/* The token before the text: without --begin as if another document had ended there; -1: none. */
static int find_begin(const struct token_text *text, const char *name, int64_t *token,
		      struct err *err)
{
	*token = name ? token_text_find(text, name) : token_text_end(text);
	if (!name || *token >= 0)
		return 0;
	return err_set(err, ERR_USAGE, "--begin %.40s: there is no such token", name);
}

static int32_t *read_tokens(const struct token_text *text, const struct infer_arguments *a,
			    size_t *bytes, size_t *count, struct err *err)
{
	const char *path = a->text;
	int64_t begin;

	if (find_begin(text, a->begin, &begin, err))
		return NULL;
	char *words = file_read(path, MAX_TEXT_BYTES, bytes, err);
	bool is_plain = words && input_check_plain(path, words, *bytes, "eval --text", err) == 0;
	int32_t *tokens = is_plain ? token_text_tokens(text, words, *bytes, count, err) : NULL;

	free(words);
	if (tokens && begin >= 0) {
		tokens = xrealloc(tokens, (*count + 1) * sizeof(*tokens));
		memmove(tokens + 1, tokens, *count * sizeof(*tokens));
		tokens[0] = (int32_t)begin;
		++*count;
	}
	if (!tokens || *count > 1)
		return tokens;
	err_set(err, ERR_USAGE, "%s: is too short", path);
	free(tokens);
	return NULL;
}

static int eval_text(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	size_t bytes, count;
	double sum;

	if (infer_read(f, a, err))
		return -1;
	struct token_text *text = token_text_open(f->tokenizer, f->shape.vocab, err);
	int32_t *tokens = text ? read_tokens(text, a, &bytes, &count, err) : NULL;
	int rc = tokens && infer_open(f, a, err) == 0
			 ? eval_tokens(f->model, tokens, count, &sum, err)
			 : -1;
	if (rc == 0)
		printf("%zu tokens, %zu bytes: loss %.6f, perplexity %.4f, %.4f bits a byte\n",
		       count - 1, bytes, sum / (double)(count - 1), exp(sum / (double)(count - 1)),
		       sum / log(2) / (double)bytes);
	free(tokens);
	token_text_close(text);
	return rc;
}

/* Each is asked about one thing, and an option that this has no use for is a mistake. */
static int check_words(const struct infer_arguments *a, struct err *err)
{
	const struct {
		const char *name;
		bool is_given, has_use;
		const char *with;
	} options[] = {
		{ "--logits", a->logits, a->data, "DATA" },
		{ "--samples", a->samples > 0, a->data || a->choices, "DATA or --choices" },
		{ "--begin", a->begin, a->choices || a->text, "--choices or --text" },
		{ "--scores", a->scores, a->choices, "--choices" },
	};

	if ((a->data != NULL) + (a->text != NULL) + (a->choices != NULL) != 1)
		return err_set(err, ERR_USAGE,
			       "eval needs one of DATA behind the model, a file of tokens or a "
			       "folder of them, --text FILE and --choices FILE");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_given && !options[i].has_use)
			return err_set(err, ERR_USAGE, "%s goes with %s", options[i].name,
				       options[i].with);
	return 0;
}

static int eval_with(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	if (check_words(a, err))
		return -1;
	if (a->text)
		return eval_text(f, a, err);
	if (a->choices)
		return choose(f, a, err);
	if (infer_read(f, a, err))
		return -1;
	const struct data_options options = {
		.path = a->data, .seq = f->options.seq, .vocab = f->shape.vocab, .verify = true
	};
	struct data *data = data_open(&options, err);
	int rc = data ? infer_open(f, a, err) : -1;
	if (rc == 0)
		rc = eval(f->model, data, a, err);
	data_close(data);
	return rc;
}

int command_eval(int argc, char **argv)
{
	struct infer_arguments a = { 0 };
	struct infer f = { 0 };
	struct err err = { 0 };
	int rc = infer_parse(&a, argc, argv, &err);

	if (rc == 0)
		rc = eval_with(&f, &a, &err);
	infer_close(&f);
	return rc ? command_failed(&err) : EXIT_DONE;
}
