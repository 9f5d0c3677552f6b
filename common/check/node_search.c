/* SPDX-License-Identifier: MIT */
/* node_search.c - intervals of suspects, cut into parts until one node is left of each. */
#include "common/check/node_search.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { PARTS = 3 };

void node_search_begin(struct node_search *s, int size)
{
	*s = (struct node_search){ .size = size };
	s->standing = xcalloc((size_t)size + 1, 1);
	s->suspect = xcalloc((size_t)size + 1, sizeof(*s->suspect));
	s->ask = xcalloc((size_t)size + 1, sizeof(*s->ask));
	s->suspect[s->suspects++] = (struct node_group){ 0, 1, size };
}

void node_search_end(struct node_search *s)
{
	free(s->standing);
	free(s->suspect);
	free(s->ask);
	*s = (struct node_search){ 0 };
}

static bool has_good(const struct node_search *s)
{
	return memchr(s->standing, NODE_GOOD, (size_t)s->size) != NULL;
}

static void ask(struct node_search *s, int first, int stride, int count)
{
	s->ask[s->asks++] = (struct node_group){ first, stride, count };
}

/* Good, and in no group of this round; -1: there is none. */
static int free_good(const struct node_search *s, const bool *is_taken)
{
	for (int i = 0; i < s->size; i++)
		if (s->standing[i] == NODE_GOOD && !is_taken[i])
			return i;
	return -1;
}

/* Beside a good one; false: none is free in this round. */
static bool ask_one(struct node_search *s, int node, bool *is_taken)
{
	int good = free_good(s, is_taken);

	if (good < 0)
		return false;
	is_taken[good] = true;
	ask(s, node < good ? node : good, abs(node - good), 2);
	return true;
}

/* Two at least in each: one alone has nobody to fail with. */
static void cut(struct node_search *s, const struct node_group *g)
{
	int parts = g->count / 2 < PARTS ? g->count / 2 : PARTS;

	for (int p = 0; p < parts; p++) {
		int from = g->count * p / parts, to = g->count * (p + 1) / parts;
		ask(s, g->first + from, 1, to - from);
	}
}

/* Three, and nobody else: pairs, one after the other, until one works. */
static bool ask_pair(struct node_search *s)
{
	static const struct node_group pairs[] = { { 0, 1, 2 }, { 1, 1, 2 }, { 0, 2, 2 } };

	if (s->size != 3 || s->pair == sizeof(pairs) / sizeof(pairs[0]))
		return false;
	s->ask[s->asks++] = pairs[s->pair++];
	return true;
}

/* Few enough are suspects one by one, once somebody can be tried beside them. */
static void part_few(struct node_search *s)
{
	struct node_group *all = xcalloc((size_t)s->size + 1, sizeof(*all));
	int count = 0;

	for (int i = 0; i < s->suspects; i++) {
		struct node_group g = s->suspect[i];
		for (int k = 0; g.count <= PARTS && k < g.count; k++)
			all[count++] = (struct node_group){ g.first + k, 1, 1 };
		if (g.count > PARTS)
			all[count++] = g;
	}
	free(s->suspect);
	s->suspect = all;
	s->suspects = count;
}

bool node_search_next(struct node_search *s)
{
	bool *is_taken = xcalloc((size_t)s->size + 1, sizeof(*is_taken));
	int left = 0;

	s->asks = 0;
	if (has_good(s))
		part_few(s);
	for (int i = 0; i < s->suspects; i++) {
		struct node_group g = s->suspect[i];
		bool is_asked = g.count > PARTS ||
				(g.count == 1 && ask_one(s, g.first, is_taken)) ||
				(g.count == PARTS && ask_pair(s));
		if (g.count > PARTS)
			cut(s, &g);
		if (!is_asked)
			s->suspect[left++] = g;
	}
	s->suspects = left;
	free(is_taken);
	s->rounds += s->asks > 0;
	return s->asks > 0;
}

/* --- what came of it -------------------------------------------------------------------------- */

static void mark(struct node_search *s, const struct node_group *g, enum node_standing standing)
{
	for (int k = 0; k < g->count; k++) {
		char *node = &s->standing[g->first + k * g->stride];
		if (*node == NODE_UNKNOWN)
			*node = (char)standing;
	}
}

static bool is_beside_good(const struct node_search *s, const struct node_group *g)
{
	return s->standing[g->first] == NODE_GOOD ||
	       s->standing[g->first + g->stride * (g->count - 1)] == NODE_GOOD;
}

static void hear_pair_of_three(struct node_search *s, bool has_failed)
{
	s->suspects = 0;
	if (has_failed) {
		s->suspect[s->suspects++] = (struct node_group){ 0, 1, s->size };
		return;
	}
	mark(s, &s->ask[0], NODE_GOOD);
	for (int i = 0; i < s->size; i++)
		if (s->standing[i] == NODE_UNKNOWN)
			s->suspect[s->suspects++] = (struct node_group){ i, 1, 1 };
}

void node_search_heard(struct node_search *s, const bool *has_failed)
{
	if (s->size == PARTS && !has_good(s)) {
		hear_pair_of_three(s, has_failed[0]);
		return;
	}
	for (int i = 0; i < s->asks; i++) {
		const struct node_group *g = &s->ask[i];
		if (!has_failed[i])
			mark(s, g, NODE_GOOD);
		else if (is_beside_good(s, g))
			mark(s, g, NODE_BAD);
		else
			s->suspect[s->suspects++] = *g;
	}
}

int node_search_bad(const struct node_search *s)
{
	int bad = 0;

	for (int i = 0; i < s->size; i++)
		bad += s->standing[i] == NODE_BAD;
	return bad;
}
