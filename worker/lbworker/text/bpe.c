/* SPDX-License-Identifier: MIT */
/* bpe.c - a hash table of pairs; short words by looking at all neighbours for each merge, long
 * ones with a heap. */
#include "worker/lbworker/text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { FIRST_BITS = 12, SHORT = 40 };
static const uint64_t FREE = UINT64_MAX; /* no pair: tokens are below 2^32 - 1 */
static const uint32_t NO_RANK = UINT32_MAX;

struct slot {
	uint64_t pair;
	uint32_t rank, token;
};

struct bpe {
	struct slot *slot; /* [1 << bits], at most half of them full */
	unsigned bits;
	size_t count;
};

/* A place in a long word: its token and neighbours. */
struct node {
	uint32_t token;
	int32_t before, after; /* -1: none */
};

struct candidate {
	uint32_t rank;
	uint32_t at;                 /* of the left one */
	uint32_t left, right, token; /* as they were when it was found */
};

struct bpe_scratch {
	struct node *node;
	size_t nodes;
	struct candidate *heap;
	size_t candidates, room;
};

/* --- the table ------------------------------------------------------------------------------ */

static uint64_t pair_of(uint32_t left, uint32_t right)
{
	return (uint64_t)left << 32 | right;
}

static size_t first_slot(const struct bpe *b, uint64_t pair)
{
	return (size_t)((pair ^ pair >> 29) * 0x9E3779B97F4A7C15ULL >> (64 - b->bits));
}

static struct slot *slot_of(const struct bpe *b, uint64_t pair)
{
	const size_t mask = ((size_t)1 << b->bits) - 1;
	size_t i = first_slot(b, pair);

	while (b->slot[i].pair != pair && b->slot[i].pair != FREE)
		i = (i + 1) & mask;
	return &b->slot[i];
}

static void make_slots(struct bpe *b, unsigned bits)
{
	const size_t count = (size_t)1 << bits;

	b->bits = bits;
	b->slot = xmalloc(count * sizeof(*b->slot));
	for (size_t i = 0; i < count; i++)
		b->slot[i] = (struct slot){ FREE, NO_RANK, 0 };
}

struct bpe *bpe_create(void)
{
	struct bpe *b = xcalloc(1, sizeof(*b));

	make_slots(b, FIRST_BITS);
	return b;
}

void bpe_destroy(struct bpe *b)
{
	if (!b)
		return;
	free(b->slot);
	free(b);
}

static void grow(struct bpe *b)
{
	struct slot *old = b->slot;
	const size_t count = (size_t)1 << b->bits;

	make_slots(b, b->bits + 1);
	for (size_t i = 0; i < count; i++)
		if (old[i].pair != FREE)
			*slot_of(b, old[i].pair) = old[i];
	free(old);
}

void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t token)
{
	if (2 * (b->count + 1) > (size_t)1 << b->bits)
		grow(b);
	struct slot *slot = slot_of(b, pair_of(left, right));
	b->count += slot->pair == FREE;
	*slot = (struct slot){ pair_of(left, right), rank, token };
}

/* --- short words ---------------------------------------------------------------------------- */

static size_t merge_short(const struct bpe *b, uint32_t *symbol, size_t count)
{
	uint32_t rank[SHORT], token[SHORT]; /* of each with the one behind it */

	for (size_t i = 0; i + 1 < count; i++) {
		const struct slot *s = slot_of(b, pair_of(symbol[i], symbol[i + 1]));
		rank[i] = s->rank;
		token[i] = s->token;
	}
	while (count > 1) {
		size_t best = 0;
		for (size_t i = 1; i + 1 < count; i++)
			if (rank[i] < rank[best])
				best = i;
		if (rank[best] == NO_RANK)
			break;
		symbol[best] = token[best];
		count--;
		size_t left = count - best - 1; /* symbols behind the merged ones */
		memmove(symbol + best + 1, symbol + best + 2, left * sizeof(*symbol));
		memmove(rank + best, rank + best + 1, left * sizeof(*rank));
		memmove(token + best, token + best + 1, left * sizeof(*token));
		for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < count; i++) {
			const struct slot *s = slot_of(b, pair_of(symbol[i], symbol[i + 1]));
			rank[i] = s->rank;
			token[i] = s->token;
		}
	}
	return count;
}

/* --- long words ----------------------------------------------------------------------------- */

struct bpe_scratch *bpe_scratch_create(void)
{
	return xcalloc(1, sizeof(struct bpe_scratch));
}

void bpe_scratch_destroy(struct bpe_scratch *s)
{
	if (!s)
		return;
	free(s->node);
	free(s->heap);
	free(s);
}

static bool comes_first(const struct candidate *a, const struct candidate *b)
{
	return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void push(struct bpe_scratch *s, struct candidate c)
{
	if (s->candidates == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->heap = xrealloc(s->heap, s->room * sizeof(*s->heap));
	}
	size_t i = s->candidates++;
	while (i > 0 && comes_first(&c, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = c;
}

static struct candidate pop(struct bpe_scratch *s)
{
	struct candidate top = s->heap[0], last = s->heap[--s->candidates];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < s->candidates; i = child) {
		if (child + 1 < s->candidates && comes_first(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!comes_first(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return top;
}

/* The pair that begins at `at`, if it is one. */
static void consider(const struct bpe *b, struct bpe_scratch *s, int32_t at)
{
	if (at < 0 || s->node[at].after < 0)
		return;
	uint32_t left = s->node[at].token, right = s->node[s->node[at].after].token;
	const struct slot *slot = slot_of(b, pair_of(left, right));
	if (slot->rank != NO_RANK)
		push(s, (struct candidate){ slot->rank, (uint32_t)at, left, right, slot->token });
}

static size_t merge_long(const struct bpe *b, struct bpe_scratch *s, uint32_t *symbol, size_t count)
{
	size_t left = 0;

	if (count > s->nodes) {
		s->nodes = count;
		s->node = xrealloc(s->node, count * sizeof(*s->node));
	}
	for (size_t i = 0; i < count; i++)
		s->node[i] = (struct node){ symbol[i], (int32_t)i - 1,
					    i + 1 < count ? (int32_t)i + 1 : -1 };
	for (size_t i = 0; i + 1 < count; i++)
		consider(b, s, (int32_t)i);
	while (s->candidates > 0) {
		struct candidate c = pop(s);
		struct node *n = &s->node[c.at];
		/* one of them may be gone, or have become another */
		if (n->token != c.left || n->after < 0 || s->node[n->after].token != c.right)
			continue;
		struct node *gone = &s->node[n->after];
		n->token = c.token;
		n->after = gone->after;
		gone->token = NO_RANK;
		if (n->after >= 0)
			s->node[n->after].before = (int32_t)c.at;
		consider(b, s, n->before);
		consider(b, s, (int32_t)c.at);
	}
	for (int32_t at = 0; at >= 0; at = s->node[at].after)
		symbol[left++] = s->node[at].token;
	return left;
}

size_t bpe_merge(const struct bpe *b, struct bpe_scratch *s, uint32_t *symbol, size_t count)
{
	if (count < 2)
		return count;
	return count <= SHORT ? merge_short(b, symbol, count) : merge_long(b, s, symbol, count);
}
