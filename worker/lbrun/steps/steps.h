/* SPDX-License-Identifier: MIT */
/* steps/ - steps in what a trainer prints, without being told how it prints them. Pure: lines in,
 * steps out; step_rows.h has the tables.
 *
 * steps.h - the steps of one launch. Where two kinds of line tell steps the one
 * with losses counts, and among equals the one that told the last. What looks like an evaluation or
 * other work tells steps only where nothing else has for long. */
#ifndef LBRUN_STEPS_STEPS_H
#define LBRUN_STEPS_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

struct steps;

struct steps *steps_create(void);
void steps_destroy(struct steps *steps); /* NULL is fine */
/* A new launch: what the one before printed means nothing any more. */
void steps_reset(struct steps *steps);

/* The step that this line tells, as {"type":"step","step":N,…}, a new reference; NULL when it tells
 * none, or nothing new. `line` ends in NUL, and has no escape sequences and no newline. A step
 * whose values stand on the lines below is told by the line that has its loss, or by the first that
 * is none of them. */
json_t *steps_read(struct steps *steps, const char *line, size_t len);

/* Was the line a part of such a step, which is still to be told? */
bool steps_wait(const struct steps *steps);
/* No line follows: that step, or NULL. */
json_t *steps_end(struct steps *steps);

#endif
