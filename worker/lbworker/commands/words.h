/* SPDX-License-Identifier: MIT */
/* words.h - options of a command as a table. */
#ifndef LBWORKER_WORDS_H
#define LBWORKER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct word_option {
	const char *name;  /* NULL ends the table */
	const char **text; /* where the value goes: one of these; a flag has none */
	int64_t *integer;
	double *real;
	bool *flag;
	double min, max; /* of a number */
};

/* argv[1..argc) by the table; what is no option goes to rest, which has room for argc words.
 * ERR_USAGE with what is allowed. */
int words_parse(const struct word_option *options, int argc, char **argv, char **rest,
		size_t *count, struct err *err);

#endif
