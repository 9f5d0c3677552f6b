/* SPDX-License-Identifier: MIT */
/* compat.h - a torchtitan file (up to 0.2, and the spellings of 2024) in the words of config.c.
 *
 * A key of another spelling is renamed. A key that asks for what we do anyway (one device, fp32,
 * no float8) is taken and dropped. Anything else stays, so that it is refused as unknown; or,
 * lenient, it is dropped and told. */
#ifndef LBWORKER_COMPAT_H
#define LBWORKER_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/err.h"
#include "common/keys.h"

struct compat {
	const struct key *keys;		/* ours: these always win */
	size_t count;
	const char *const *foreign;	/* sections that are not ours to judge; NULL-terminated */
	bool lenient;
	FILE *ignored;			/* `file:line: key: why` for each key dropped; may be NULL */
};

/* Changes the document in place. -1 with err `file:line: key: why`. */
int compat_apply(const struct compat *compat, struct toml *toml, struct err *err);

#endif
