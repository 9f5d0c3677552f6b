/* SPDX-License-Identifier: MIT */
/* made.h - what a run is made of, as its folder keeps it, and how two runs differ in that. */
#ifndef CTL_CODE_MADE_H
#define CTL_CODE_MADE_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"

struct made {
	const char *name; /* of the run, for messages; borrowed */
	/* spec.toml: "section.key" → value; without run.name, which always differs */
	json_t *settings;
	json_t *code; /* code_load; {} when the run has none */
};

/* -1 with err where its specification cannot be read. To be cleared in any case. */
int made_read(struct made *made, const char *name, const char *run_dir, struct err *err);
void made_clear(struct made *made);

/* {"settings":{KEY:[a,b]},"packages":{NAME:[a,b]}} of what the two have otherwise; null: not at
 * all. A new reference. */
json_t *made_differences(const struct made *a, const struct made *b);

/* How the code differs, as a patch, owned; "" when not at all; NULL with err, also when it is
 * longer than that. */
char *made_patch(const struct made *a, const struct made *b, size_t max_bytes, struct err *err);

#endif
