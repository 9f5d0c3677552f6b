/* SPDX-License-Identifier: MIT */
/* output_parser.h - what a trainer prints, read for its meaning: steps, and signs of a broken node.
 *
 * Bounded: a line longer than this is not looked at. '\r' ends a line, too: progress bars. What
 * stands behind a bar, which has no newline, is a line of its own. */
#ifndef LBRUN_TRAINER_OUTPUT_PARSER_H
#define LBRUN_TRAINER_OUTPUT_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "common/run/attempt_watch.h"
#include "common/base/err.h"
#include "worker/lbrun/trainer/output.h"
#include "worker/lbrun/trainer/prefixes.h"

enum { OUTPUT_PARSER_LINE_BYTES = 4096, OUTPUT_PARSER_ERRORS_MAX = 64 };

struct regexp;
struct steps;

struct output_parser {
	struct regexp *progress; /* a person's; NULL = none */
	struct steps *steps;     /* what we recognise ourselves; NULL = not wanted */
	struct prefixes *prefixes;
	struct regexp *errors[OUTPUT_PARSER_ERRORS_MAX];
	int error_count;
	struct regexp *bar;
	struct {
		struct prefix prefix; /* of the line that is drawn again and again */
		size_t len;
		bool is_too_long;
		char data[OUTPUT_PARSER_LINE_BYTES];
	} lines[OUTPUT_STREAMS];
	/* Nobody asks for steps now: the trainer tells them itself. NULL: always asked for. */
	bool (*is_told)(void *arg);
	/* A line that tells a step, as {"type":"step",…}; borrowed. rank: -1 = not known. */
	void (*on_step)(void *arg, json_t *line, int64_t rank);
	/* A line that tells of a broken node; without its prefix. `node`: "" = not known. */
	void (*on_error)(void *arg, const char *node, const char *line);
	/* A rank's shepherd says how its rank ended, by a signal or (0) with an exit status; `oom`:
	 * the kernel killed something of it for memory. */
	void (*on_rank_end)(void *arg, const char *node, int64_t rank, int signo, int status,
			    bool oom);
	/* The first rank's shepherd of a node says why there is no cache of compiled code there. */
	void (*on_no_cache)(void *arg, const char *node, const char *why);
	/* Each line, without prefix and escape sequences; NULL: not wanted. */
	void (*on_line)(void *arg, int stream, const char *node, int64_t rank, const char *text,
			size_t len);
	void *arg;
};

/* What the shepherd of a rank prints then, after its prefix; as output_say takes it. */
#define OUTPUT_PARSER_RANK_KILLED "this rank was killed by signal %d"
#define OUTPUT_PARSER_RANK_FAILED "this rank ended with exit status %d"
#define OUTPUT_PARSER_RANK_OOM ": the kernel ran out of memory for it"
#define OUTPUT_PARSER_NO_CACHE ": without a cache"

/* `has_shepherds`, `most_ranks`: as prefixes_create takes them. */
int output_parser_init(struct output_parser *p, const struct attempt_watch *watch,
		       bool has_shepherds, int64_t most_ranks, struct err *err);
void output_parser_fini(struct output_parser *p);
/* A new launch of the trainer. */
void output_parser_reset(struct output_parser *p);
void output_parser_bytes(struct output_parser *p, int stream, const char *data, size_t len);

/* No more comes of this launch: lines that did not end are lines, and a step that waited for its
 * loss is told. */
void output_parser_end(struct output_parser *p);

#endif
