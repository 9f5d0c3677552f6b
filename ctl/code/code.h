/* SPDX-License-Identifier: MIT */
/* code.h - the code that a run is made of, as it is when the run is submitted. */
#ifndef CTL_CODE_CODE_H
#define CTL_CODE_CODE_H

#include <jansson.h>

#include "common/base/err.h"

enum {
	CODE_FILE_MAX_BYTES = 4 * 1024 * 1024, /* of code.json */
	CODE_PATCH_MAX_BYTES = 192 * 1024,     /* of changes that are in no commit */
	CODE_UNTRACKED_MAX_BYTES = 64 * 1024,  /* a file that git does not know yet */
	CODE_UNTRACKED_MAX_FILES = 500,
};

/* What is to be kept of the code in `folder`, and of what it runs on; a new reference, never NULL:
 *
 *   {"root","commit","branch","tree","changed":[names],"left_out":N,"patch","why",
 *    "files":lines of "BYTES SECONDS.NANOSECONDS NAME", "packages":["torch-2.3.0",…],"modules"}
 *
 * Members that are not known are missing; "why" says why there is no commit or no patch. Nothing in
 * the folder changes. */
json_t *code_of(const char *folder);

/* One line for people: "3fa9c1d27b (main), 2 files changed since"; owned. */
char *code_text(const json_t *code);

/* What later launches found changed, a line for people, owned; NULL: nothing. */
char *code_changed(const char *run_dir);

/* The code.json of a run's folder, its patch with it; a new reference, NULL with err. */
json_t *code_load(const char *run_dir, struct err *err);

#endif
