/* SPDX-License-Identifier: MIT */
/* sample.c - softmax with a temperature, cut to the most likely ones (Fan et al. 2018, Holtzman
 * et al. 2020). */
#include "worker/lbworker/commands/sample.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"

struct choice {
	float logit;
	int32_t token;
};

static int by_logit(const void *x, const void *y)
{
	const struct choice *a = x, *b = y;

	if (a->logit != b->logit)
		return a->logit < b->logit ? 1 : -1;
	return (a->token > b->token) - (a->token < b->token);
}

static int32_t most_likely(const float *logits, size_t vocab)
{
	size_t best = 0;

	for (size_t i = 1; i < vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	return (int32_t)best;
}

static double weight_of(const struct sampler *s, float logit, float highest)
{
	return exp((double)(logit - highest) / s->temperature);
}

/* How many of the sorted ones are drawn from; *sum: their weights together. */
static size_t cut(const struct sampler *s, const struct choice *choice, size_t vocab, double *sum)
{
	size_t most = s->top_k > 0 && s->top_k < vocab ? s->top_k : vocab, count = 0;
	double all = 0;

	for (size_t i = 0; i < most; i++)
		all += weight_of(s, choice[i].logit, choice[0].logit);
	if (s->top_p <= 0 || s->top_p >= 1) {
		*sum = all;
		return most;
	}
	for (*sum = 0; count < most && *sum < s->top_p * all; count++)
		*sum += weight_of(s, choice[count].logit, choice[0].logit);
	return count;
}

static int32_t draw_sorted(const struct sampler *s, const float *logits, size_t vocab,
			   double uniform)
{
	struct choice *choice = xcalloc(vocab, sizeof(*choice));
	double sum, so_far = 0;

	for (size_t i = 0; i < vocab; i++)
		choice[i] = (struct choice){ logits[i], (int32_t)i };
	qsort(choice, vocab, sizeof(*choice), by_logit);
	size_t count = cut(s, choice, vocab, &sum), i = 0;
	for (; i + 1 < count; i++) {
		so_far += weight_of(s, choice[i].logit, choice[0].logit);
		if (so_far >= uniform * sum)
			break;
	}
	int32_t token = choice[i].token;
	free(choice);
	return token;
}

int sample_check(const float *logits, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (!isfinite(logits[i]))
			return err_set(err, ERR_INTERNAL,
				       "the model gives logits that are no finite numbers: it has "
				       "diverged, or its weights are damaged");
	return 0;
}

int32_t sample_token(const struct sampler *s, const float *logits, size_t vocab, double uniform)
{
	int32_t best = most_likely(logits, vocab);
	double sum = 0, so_far = 0;

	if (s->temperature <= 0)
		return best;
	if (s->top_k > 0 || (s->top_p > 0 && s->top_p < 1))
		return draw_sorted(s, logits, vocab, uniform);
	for (size_t i = 0; i < vocab; i++)
		sum += weight_of(s, logits[i], logits[best]);
	for (size_t i = 0; i < vocab; i++) {
		so_far += weight_of(s, logits[i], logits[best]);
		if (so_far >= uniform * sum)
			return (int32_t)i;
	}
	return best;
}

double sample_likelihood(const float *logits, size_t vocab, int32_t token)
{
	size_t top = (size_t)most_likely(logits, vocab);
	double highest = (double)logits[top], all = 1; /* the highest itself */

	for (size_t i = 0; i < vocab; i++)
		if (i != top)
			all += exp((double)logits[i] - highest);
	return (double)logits[token] - highest - log(all);
}
