/* SPDX-License-Identifier: MIT */
/* printed.h - what a trainer prints, read for its meaning: steps, and signs of a broken node.
 *
 * Bounded: a line longer than this is not looked at. '\r' ends a line, too: progress bars. */
#ifndef LBRUN_PRINTED_H
#define LBRUN_PRINTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "common/attempt_watch.h"
#include "common/err.h"
#include "worker/lbrun/output.h"

enum { PRINTED_LINE_BYTES = 4096, PRINTED_ERRORS_MAX = 64 };

struct regexp;

struct printed {
	struct regexp *progress;	/* NULL = none */
	struct regexp *errors[PRINTED_ERRORS_MAX];
	int error_count;
	struct {
		size_t len;
		bool is_too_long;
		char data[PRINTED_LINE_BYTES];
	} lines[OUTPUT_STREAMS];
	/* A line that tells a step, as {"type":"step",…}; borrowed. rank: -1 = not known. */
	void (*on_step)(void *arg, const json_t *line, int64_t rank);
	/* A line that tells of a broken node; without its prefix. `node`: "" = not known. */
	void (*on_error)(void *arg, const char *node, const char *line);
	/* A rank's shepherd says that a signal killed its rank (PRINTED_RANK_KILLED); NULL: not
	 * heeded. */
	void (*on_rank_killed)(void *arg, const char *node);
	void *arg;
};

/* What the shepherd of a rank prints then, after its prefix. */
#define PRINTED_RANK_KILLED_WORDS "this rank was killed by signal "	/* as output_say takes it */
#define PRINTED_RANK_KILLED "lbrun: " PRINTED_RANK_KILLED_WORDS

int printed_init(struct printed *p, const struct attempt_watch *watch, struct err *err);
void printed_fini(struct printed *p);
void printed_bytes(struct printed *p, int stream, const char *data, size_t len);

#endif
