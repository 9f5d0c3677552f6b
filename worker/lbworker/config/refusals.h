/* SPDX-License-Identifier: MIT */
/* refusals.h - all mistakes of a file, not only the first: a person mends them in one go. */
#ifndef LBWORKER_REFUSALS_H
#define LBWORKER_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

struct refusals {
	struct err *first; /* what the caller is told */
	FILE *each;        /* a line for each; may be NULL */
	size_t count;
	bool misread_model; /* a key of [model] could not be read */
};

/* rc of a check, and the err that it was given: counted, written down and emptied when rc is not 0.
 * Returns rc. */
static inline int refusals_add(struct refusals *r, int rc, struct err *err)
{
	if (rc == 0)
		return 0;
	r->count++;
	if (r->each)
		fprintf(r->each, "%s\n", err->text);
	(void)err_set(r->first, err->code, "%s", err->text);
	*err = (struct err){ 0 };
	return rc;
}

#endif
