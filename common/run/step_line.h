/* SPDX-License-Identifier: MIT */
/* step_line.h - a step line of a trainer, read without a tree of JSON: spools hold millions. */
#ifndef COMMON_RUN_STEP_LINE_H
#define COMMON_RUN_STEP_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
