/* SPDX-License-Identifier: MIT */
/* layouts.h - how trainers call their checkpoints, and what shows that one is finished. A layout is
 * a row; docs/CHECKPOINTS.md explains them to people, and a test holds it against this table.
 *
 * In names, '#' is a number (the first one is the step), '*' anything. */
#ifndef COMMON_CHECKPOINT_LAYOUTS_H
#define COMMON_CHECKPOINT_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum layout_kind { LAYOUT_FOLDER, LAYOUT_FILE };

struct layout {
	const char *name;
	const char *by; /* who writes it, for people */
	enum layout_kind kind;
	const char *
		names[14]; /* of the folder or file; several files of one step are one checkpoint */
	/* in the folder; one of them shows that it is of this layout; none: the name alone does */
	const char *marks[8];
	const char
		*last; /* is written last: inside a folder, beside a file (with the step for #) */
	/* files behind `last`: it must have those that the one before has, too */
	bool may_have_more;
	const char *pointer;    /* a file beside it that names the newest finished one */
	const char *unfinished; /* the end of the name of a file that lies beside it meanwhile */
	int (*verify)(const char *path, bool is_deep,
		      struct err *err); /* has the last word; NULL: the files do */
	bool has_step_inside;           /* the file knows better than its name */
};

extern const struct layout layouts[];
extern const size_t layout_count;

/* NULL: there is none of that name. */
const struct layout *layout_find(const char *name);
/* "auto, own, lbworker, …", for messages; owned by the caller. */
char *layout_names(void);

/* Does the pattern of a row match? *step (may be NULL): its first '#', -1 = it has none. */
bool layout_name_matches(const char *pattern, const char *name, int64_t *step);
/* One of the row's names. */
bool layout_matches(const struct layout *row, const char *name, int64_t *step);

#endif
