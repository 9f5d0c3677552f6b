/* SPDX-License-Identifier: MIT */
/* choose.c - the likelihood of each answer behind its question, as lm-evaluation-harness works it
 * out: question and answer become tokens together, those that the question alone does not have are
 * the answer's, and a sequence that is too long loses its beginning. */
#include "worker/lbworker/commands/choose.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/commands/questions.h"
#include "worker/lbworker/commands/sample.h"
#include "worker/lbworker/data/token_text.h"

struct chooser {
	struct infer *infer;
	const struct token_text *text;
	int64_t begin; /* in front of each text; -1: nothing */
	int64_t left;  /* questions still to be asked; -1: all */
	FILE *scores;  /* or NULL */
	int32_t *seen; /* what the model has keys and values of */
	size_t seen_count;
	uint64_t questions, right, right_norm;
	struct err *err;
};

/* Owned; NULL with err. */
static int32_t *tokens_of(const struct chooser *c, const char *words, size_t len, size_t *count)
{
	int32_t *tokens = token_text_tokens(c->text, words, len, count, c->err);

	if (!tokens || c->begin < 0)
		return tokens;
	tokens = xrealloc(tokens, (*count + 1) * sizeof(*tokens));
	memmove(tokens + 1, tokens, *count * sizeof(*tokens));
	tokens[0] = (int32_t)c->begin;
	++*count;
	return tokens;
}

/* Log-likelihood of the last `answers` of tokens[0..count). What the sequence has in common with
 * the one before it is not computed again. */
static int likelihood(struct chooser *c, const int32_t *tokens, size_t count, size_t answers,
		      double *sum)
{
	struct model *m = c->infer->model;
	size_t inputs = count - 1, vocab = m->shape.vocab, common = 0;

	if (inputs > m->seq) {
		tokens += inputs - m->seq;
		inputs = m->seq;
	}
	if (answers > inputs)
		answers = inputs;
	while (common < inputs - answers && common < c->seen_count &&
	       tokens[common] == c->seen[common])
		common++;
	memcpy(c->seen, tokens, inputs * sizeof(*tokens));
	c->seen_count = inputs;
	float *logits = xmalloc(answers * vocab * sizeof(*logits));
	int rc = model_extend(m, tokens, common, inputs - common, answers, logits, c->err);
	if (rc == 0)
		rc = sample_check(logits, answers * vocab, c->err);
	*sum = 0;
	for (size_t i = 0; i < answers && rc == 0; i++)
		*sum += sample_likelihood(logits + i * vocab, vocab,
					  tokens[inputs - answers + i + 1]);
	free(logits);
	return rc;
}

/* Of one answer. Blanks at the end of the question belong to it. */
static int score(struct chooser *c, const struct question *q, const char *answer, double *sum)
{
	char *whole = xasprintf("%s %s", q->context, answer);
	size_t asked = strlen(q->context), count, before;
	int rc = -1;

	while (asked > 0 && strchr(" \t\n\r\v\f", q->context[asked - 1]))
		asked--;
	int32_t *all = tokens_of(c, whole, strlen(whole), &count);
	int32_t *question = all ? tokens_of(c, whole, asked, &before) : NULL;
	if (question && (before == 0 || count <= before))
		err_set(c->err, ERR_USAGE, "\"%.40s\": question and answer take a token each",
			whole);
	else if (question)
		rc = likelihood(c, all, count, count - before, sum);
	free(question);
	free(all);
	free(whole);
	return rc;
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xC0) != 0x80;
	return count;
}

static int write_scores(struct chooser *c, const struct question *q, const double *sum)
{
	json_t *list = json_array();
	int rc = 0;

	for (size_t i = 0; i < q->choices; i++)
		json_array_append_new(list, json_real(sum[i]));
	json_t *o = json_pack("{s:I, s:o}", "gold", (json_int_t)q->gold, "scores", list);
	char *line = js_line(o);
	if (fprintf(c->scores, "%s\n", line) < 0)
		rc = err_errno(c->err, "--scores");
	free(line);
	json_decref(o);
	return rc;
}

static int ask(struct chooser *c, const struct question *q)
{
	double sum[QUESTION_CHOICES_MAX], best = -INFINITY, best_norm = -INFINITY;
	size_t first = 0, first_norm = 0;

	for (size_t i = 0; i < q->choices; i++) {
		if (score(c, q, q->choice[i], &sum[i]))
			return -1;
		double norm = sum[i] / (double)characters(q->choice[i]);
		if (sum[i] > best)
			best = sum[i], first = i;
		if (norm > best_norm)
			best_norm = norm, first_norm = i;
	}
	c->questions++;
	c->right += first == q->gold;
	c->right_norm += first_norm == q->gold;
	return c->scores ? write_scores(c, q, sum) : 0;
}

static int each(const struct document *line, void *arg)
{
	struct chooser *c = arg;
	struct question q;

	if (c->left == 0)
		return 1;
	c->left -= c->left > 0;
	int rc = question_read(&q, line, c->err);
	if (rc == 0)
		rc = ask(c, &q);
	if (rc)
		err_wrap(c->err, "%s:%" PRIu64, line->path, line->number + 1);
	question_fini(&q);
	return rc;
}

/* Of the mean of `count` answers that are right or wrong. */
static double standard_error(double share, uint64_t count)
{
	return count > 1 ? sqrt(share * (1 - share) / (double)(count - 1)) : 0;
}

static int ask_all(struct chooser *c, const char *path)
{
	const struct documents_rules rules = { .field = "query" };
	int rc = documents_read(path, &rules, 0, each, c, c->err);

	if (rc < 0)
		return -1;
	if (c->questions == 0)
		return err_set(c->err, ERR_USAGE, "%s: holds no question", path);
	double acc = (double)c->right / (double)c->questions;
	double norm = (double)c->right_norm / (double)c->questions;
	printf("%" PRIu64 " questions: acc %.4f +- %.4f, acc_norm %.4f +- %.4f\n", c->questions,
	       acc, standard_error(acc, c->questions), norm, standard_error(norm, c->questions));
	return 0;
}

static int choose_with(struct chooser *c, const struct infer_arguments *a)
{
	if (a->begin && c->begin < 0)
		return err_set(c->err, ERR_USAGE, "--begin %.40s: there is no such token",
			       a->begin);
	if (infer_open(c->infer, a, c->err))
		return -1;
	if (a->scores && !(c->scores = fopen(a->scores, "we")))
		return err_errno(c->err, "%s", a->scores);
	c->seen = xcalloc(c->infer->model->seq, sizeof(*c->seen));
	int rc = ask_all(c, a->choices);
	if (c->scores && fclose(c->scores) != 0 && rc == 0)
		rc = err_errno(c->err, "%s", a->scores);
	free(c->seen);
	return rc;
}

int choose(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	struct chooser c = { .infer = f, .begin = -1, .left = a->samples, .err = err };

	if (infer_read(f, a, err))
		return -1;
	struct token_text *text = token_text_open(f->tokenizer, f->shape.vocab, err);
	if (!text)
		return -1;
	c.text = text;
	c.left = a->samples > 0 ? a->samples : -1;
	c.begin = a->begin ? token_text_find(text, a->begin) : -1;
	int rc = choose_with(&c, a);
	token_text_close(text);
	return rc;
}
