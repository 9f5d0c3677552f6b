/* SPDX-License-Identifier: MIT */
/* node_memory.h - how far a node is mistrusted, and which ones a relaunch keeps away from. Pure.
 *
 * Each attempt that a node may have ended adds to its score, those that one failure of it ended
 * once together; half of the score is gone after each half-life. It adds to the node's record, too,
 * which fades more slowly: a node that failed twice within weeks is avoided for weeks, as one that
 * nobody repairs fails again. A node that failed counts 1; one where a trainer died of a fault in
 * memory counts half, one where it hung a quarter, so that a single one, which is mostly the
 * trainer's own, excludes nobody. Where lbrun can name the node, by a line that told of its errors
 * or by the first rank that a signal killed, that one has all of the blame; else a job of many
 * nodes shares it among them, since Slurm does not say which one it was.
 *
 * What may as well be the run's own fault counts for others only once that is proven:
 * suspects.h. */
#ifndef DAEMON_ENGINE_DECIDE_NODE_MEMORY_H
#define DAEMON_ENGINE_DECIDE_NODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/run_state.h"

/* A line of its output that tells of a broken node (watch.node_error_regex), once in an attempt:
 * with the crash that mostly follows, the node is avoided. */
#define NODE_ERROR_BLAME 0.5

/* A job that ended on the node before lbrun had begun, and began elsewhere. */
#define NODE_UNBEGUN_BLAME 0.5

struct node_rules {
	int64_t half_life_ms;
	double threshold;            /* from this score on a node is avoided */
	int64_t repeat_half_life_ms; /* of records; 0 = there are none */
	int64_t max_excluded;        /* the worst so many at most; 0 = none */
	/* and no more than this share of the nodes that are known, but one; 0 = any */
	double max_share;
	int64_t patience_ms; /* a job waits so long while nodes that it avoids are idle */
};

struct node_note {
	char *name;
	double score; /* as of score_ms */
	int64_t score_ms;
	double record;   /* likewise */
	double own;      /* what the run itself has against it (suspects.h); does not fade */
	bool is_avoided; /* set by node_choose */
};

/* A record of so many times the threshold is that of one who does it again and again. */
#define NODE_REPEATED 2.0

/* What an attempt that ended so on `nodes` nodes adds to the score of each. blame_run: it ended by
 * lbrun's own word; a program that cannot be started is then not the node's fault. A crash counts
 * only by a signal that broken memory or a broken processor sends: kill is what people and the
 * kernel do. */
double node_blame(enum cause cause, bool blame_run, int signal, size_t nodes);

/* The same of a launch whose end lbrun puts down to one node of the job; the others have no part in
 * it. An error counts, too: what a broken GPU does to a Python trainer is mostly an exception. One
 * that was checked before a launch and is broken counts as a failed one. */
double node_blame_named(enum cause cause);

/* A clock that was set back does not make a score grow. */
double node_score_at(double score, int64_t score_ms, int64_t now_ms, int64_t half_life_ms);

/* How long a node stays above a threshold; 0 when it is not. */
int64_t node_avoided_ms(double score, double record, const struct node_rules *rules);

/* How many nodes are avoided at most, where so many are known. */
size_t node_limit(const struct node_rules *rules, size_t known);

/* Of so many known nodes. Sorts the notes, worst first, and returns how many of them are to be
 * avoided. */
size_t node_choose(struct node_note *notes, size_t count, size_t known,
		   const struct node_rules *rules, int64_t now_ms);

#endif
