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
		names[13]; /* of the folder or file; several files of one step are one checkpoint */
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

/* The step that a name tells: the number behind "step", else "iter", "ckpt", "epoch", …, else the
 * last number; -1 = none. */
int64_t step_in_name(const char *name);
enum { STEP_CANDIDATES_MAX = 8 };
/* Where in the name the numbers begin of which one is the step, as 224 and 5 in "epoch_5_224.pth":
 * the first one is what step_in_name takes. How many; 0 = there is no doubt. */
size_t step_candidates(const char *name, size_t places[STEP_CANDIDATES_MAX]);
/* Is it called like something that is still being written (".tmp", "tmp-", ".part", …), or hidden?
 */
bool name_is_temporary(const char *name);
/* Ends as files with weights do (".pt", ".npz", …)? */
bool name_is_data(const char *name);
/* Ends as pictures, logs and tables do? */
bool name_is_for_people(const char *name);
/* Has it a word of evaluations and profilers: "eval_step_30.json"? */
bool name_is_of_other_work(const char *name);
/* A folder for that alone: "samples", "eval_30", "images_step_30". */
bool name_is_for_other_work(const char *name);
/* Does a word for steps stand in front of a number ("epoch_3", "ckpt-20")? */
bool name_tells_step(const char *name);
/* Does a word for checkpoints stand in front of its number, as in "ckpt_20"? */
bool name_has_word(const char *name);

#endif
