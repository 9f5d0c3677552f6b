/* SPDX-License-Identifier: MIT */
/* message.h - the lines that trainers send to lbrun over LB_SOCKET, checked in one place.
 *
 * docs/PROTOCOL.md is the contract; one JSON object a line, UTF-8, at most 64 KiB. */
#ifndef COMMON_RUN_MESSAGE_H
#define COMMON_RUN_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { MESSAGE_MAX_BYTES = 64 * 1024, PHASE_WHAT_MAX = 32 };

enum message_type {
	MESSAGE_HELLO, /* {"type":"hello","rank":0,"world":1,"pid":123} */
	MESSAGE_PHASE, /* {"type":"phase","name":"setup|train|checkpoint|eval","what":"imports"} */
	MESSAGE_STEP,  /* {"type":"step","step":N,"loss":x, …any numeric field…} */
	MESSAGE_CHECKPOINT, /* {"type":"checkpoint","step":N,"path":P} */
	MESSAGE_BYE,        /* {"type":"bye","status":"done|stopped|diverged"} */
	MESSAGE_COUNT
};

/* Parses and checks one line (without the newline). On success *type is set and the object is
 * returned (the caller decrefs). NULL with err (ERR_USAGE) says what is wrong with it. Unknown
 * extra fields are kept; an unknown type is an error. */
json_t *message_parse(const char *line, size_t len, enum message_type *type, struct err *err);

/* --- step lines, without a tree of JSON: spools hold millions --- */

/* What is not told: JS_NONE (common/base/json.h), NaN. */
struct step_line {
	int64_t step, rank, target_step;
	double loss, tokens_per_s, mfu;
};

/* A line that holds {"type":"step"} and otherwise numbers alone, without blanks and escapes, as
 * lbrun writes it. False: it is something else, or cannot be told here; ask jansson. */
bool step_line_read(const char *text, size_t len, struct step_line *out);

/* The same of any step line that jansson has read. */
void step_line_of(const json_t *line, struct step_line *out);

#endif
