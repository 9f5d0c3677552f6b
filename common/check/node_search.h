/* SPDX-License-Identifier: MIT */
/* node_search.h - which of many nodes is the bad one, when something fails only among several:
 * groups that work at the same time, again and again.
 *
 * What fails is cut into three parts (two of four or five), which are tried at once; parts that
 * fail are cut again, and one that is left over is tried beside a node that is known to be good.
 * One bad node among n is found in about log3(n) rounds; several at the same time. Pure but for its
 * memory. */
#ifndef COMMON_CHECK_NODE_SEARCH_H
#define COMMON_CHECK_NODE_SEARCH_H

#include <stdbool.h>

/* Nodes first, first + stride, …: so many. */
struct node_group {
	int first, stride, count;
};

enum node_standing { NODE_UNKNOWN, NODE_GOOD, NODE_BAD };

struct node_search {
	int size, rounds;
	char *standing; /* [size]: enum node_standing */
	/* the round that is to be tried: groups that have no node in common */
	struct node_group *ask;
	int asks;

	/* private */
	struct node_group *suspect; /* at least one of each is bad; stride 1 */
	int suspects, pair;
};

/* All of them together have failed. To be freed by node_search_end. */
void node_search_begin(struct node_search *s, int size);
void node_search_end(struct node_search *s);

/* The next round is in s->ask; false: nothing more can be found out. */
bool node_search_next(struct node_search *s);
/* What came of it: [asks]. */
void node_search_heard(struct node_search *s, const bool *has_failed);

/* How many are bad for certain. 0 after the search: it fails only where all of them are together,
 * or too many are bad for any to be known as good. */
int node_search_bad(const struct node_search *s);

#endif
