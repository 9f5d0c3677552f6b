/* SPDX-License-Identifier: MIT */
/* compat.h - a torchtitan file (up to 0.2, and the spellings of 2024), and the sizes of a model as
 * torchtitan and Hugging Face call them, in the words of config.c.
 *
 * A key of another spelling is renamed. A key that asks for what we do anyway (one device, fp32, no
 * float8) is taken and dropped. Anything else is refused; or, lenient, it is dropped and told. */
#ifndef LBWORKER_COMPAT_H
#define LBWORKER_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/config/keys.h"
#include "worker/lbworker/config/refusals.h"

struct compat {
	const struct key *keys; /* ours: these always win */
	size_t count;
	const char *const *foreign; /* sections that are not ours to judge; NULL-terminated */
	bool lenient;
	FILE *ignored; /* `file:line: key: why` for each key dropped; may be NULL */
};

/* Changes the document in place; what is refused, `file:line: key: why`, is taken out, too. Returns
 * whether it has keys that only torchtitan's files have. */
bool compat_apply(const struct compat *compat, struct toml *toml, struct refusals *refusals);

#endif
