/* SPDX-License-Identifier: MIT */
/* sweep_fill.h - what a combination of a sweep changes in a submission.
 *
 * {KEY} in the command, its arguments, the run spec, options of sbatch, --set and the name becomes
 * the value, and each run has LB_SWEEP_KEY in its environment. A key with a dot that nothing names
 * so is a setting. */
#ifndef CTL_ACT_SWEEP_FILL_H
#define CTL_ACT_SWEEP_FILL_H

#include <jansson.h>

#include "common/base/err.h"

/* Every key of the combination changes something in the submission `args` or in `name` (NULL:
 * none), and no two of `all` combinations are the same; else -1 with err. */
int sweep_check(const json_t *args, const char *name, const json_t *all, struct err *err);

/* The submission of one combination, a new reference: with its words filled in, its settings, its
 * environment, and what was swept in run.sweep. */
json_t *sweep_fill(const json_t *args, const json_t *combination);

/* `text` with its {KEY}s filled in; owned. Within a name a value's bytes that names cannot have
 * become '-'. */
char *sweep_fill_text(const char *text, const json_t *combination);
char *sweep_fill_name(const char *text, const json_t *combination);

#endif
