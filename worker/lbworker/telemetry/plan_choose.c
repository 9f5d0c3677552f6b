/* SPDX-License-Identifier: MIT */
/* plan_choose.c - what a training keeps for its backward pass: of all that fits, what costs the
 * least time. */
#include "worker/lbworker/telemetry/plan_choose.h"

#include <stdlib.h>

#include "worker/lbworker/telemetry/again.h"

/* What driver and libraries keep of a GPU's memory for themselves. */
static const uint64_t THEIRS = (uint64_t)3 << 30;

/* Only what is cheap and what is dear matters: an H200's rates, and the shares of them that
 * products, attention and streams reach. */
static const double FLOPS = 989.4e12, BYTES_PER_S = 4.8e12;
static const double PRODUCTS_REACH = 0.75, ATTENTION_REACHES = 0.4, STREAMS_REACH = 0.9;

static double seconds_of(const struct part_cost *c)
{
	return c->flop / (PRODUCTS_REACH * FLOPS) +
	       c->attention_flop / (ATTENTION_REACHES * FLOPS) +
	       c->moved / (STREAMS_REACH * BYTES_PER_S);
}

/* --- one way after the other ------------------------------------------------------------------ */

struct priced {
	unsigned bit;
	double seconds; /* in one layer */
	double price;   /* seconds for a byte */
};

static int by_price(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;

	return x->price < y->price ? -1 : x->price > y->price;
}

static int price_parts(const struct config *c, struct priced part[AGAIN_PARTS])
{
	const struct model_options o = config_model_options(c);
	double tokens = (double)(c->local_batch_size * c->seq_len);
	int count = 0;

	for (int i = 0; i < AGAIN_PARTS; i++) {
		const struct part_cost cost = again_cost(&c->shape, &o, i);
		double seconds = seconds_of(&cost);
		if (cost.kept > 0)
			part[count++] = (struct priced){ 1U << i, tokens * seconds,
							 seconds / cost.kept };
	}
	qsort(part, (size_t)count, sizeof(part[0]), by_price);
	return count;
}

static bool fits(const struct config *c, uint64_t bytes)
{
	struct plan p;

	return plan_make(&p, c, NULL) == 0 && plan_bytes(&p) <= bytes;
}

/* The cheapest part first, of one layer more each time, then the next part: c->again, more and
 * more_layers of the first that fits, or of nothing kept at all; the seconds that it takes in a
 * micro-batch, or a huge number when even that does not fit. */
static double keep_less(struct config *c, uint64_t bytes)
{
	const double never = 1e30;
	struct priced part[AGAIN_PARTS] = { { 0 } };
	int count = price_parts(c, part);
	double seconds = 0;

	c->again = c->more = 0;
	c->more_layers = 0;
	if (fits(c, bytes))
		return 0;
	for (int i = 0; i < count; i++) {
		unsigned before = c->again;
		c->again = before | part[i].bit;
		if (!fits(c, bytes)) {
			seconds += part[i].seconds * (double)c->shape.layers;
			continue;
		}
		c->again = before;
		c->more = part[i].bit;
		/* one layer alone saves nothing: it takes the buffer that all share */
		for (c->more_layers = 2; !fits(c, bytes); c->more_layers++)
			if (c->more_layers == c->shape.layers)
				break;
		return seconds + part[i].seconds * (double)c->more_layers;
	}
	return never;
}

/* Each chunk of logits reads and writes the head's whole gradient once more. */
static double head_seconds(const struct config *c)
{
	const double elements = (double)c->shape.vocab * (double)c->shape.dim;
	double at_once = c->head_elements ? (double)c->head_elements : (double)((size_t)128 << 20);
	double logits = (double)(c->local_batch_size * c->seq_len) * (double)c->shape.vocab;

	return logits / at_once * 2 * sizeof(float) * elements / (STREAMS_REACH * BYTES_PER_S);
}

struct choice {
	size_t head_elements, more_layers;
	unsigned again, more;
	double seconds;
};

static struct choice chosen(struct config *c, size_t head_elements, uint64_t bytes)
{
	double seconds = 0;

	c->head_elements = head_elements;
	if (c->recompute == RECOMPUTE_AUTO)
		seconds = keep_less(c, bytes);
	else if (!fits(c, bytes))
		seconds = 1e30;
	return (struct choice){ head_elements, c->more_layers, c->again, c->more,
				seconds + head_seconds(c) };
}

void plan_choose(struct config *c, uint64_t bytes, bool is_gpu)
{
	/* from 1 Gi elements on a chunk's gradient is read and written in the shadow of its
	 * products */
	static const size_t heads[] = { (size_t)1 << 30, (size_t)1 << 29, (size_t)1 << 28, 0 };
	bool chunks = is_gpu && (enum compute)c->compute == COMPUTE_BF16;
	struct choice best = { .seconds = -1 };

	if (is_gpu)
		bytes = bytes > THEIRS ? bytes - THEIRS : 0;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (!chunks && heads[i] > 0)
			continue;
		const struct choice one = chosen(c, heads[i], bytes);
		/* of two that do not fit the smaller one, which comes later */
		if (best.seconds < 0 || one.seconds < best.seconds || one.seconds >= 1e29)
			if (best.seconds < 0 || best.seconds >= 1e29 || one.seconds < 1e29)
				best = one;
	}
	c->head_elements = best.head_elements;
	c->again = best.again;
	c->more = best.more;
	c->more_layers = best.more_layers;
}
