/* SPDX-License-Identifier: MIT */
/* checkpoint_parts.h - for the files of this room called checkpoint_*.c alone. */
#ifndef COMMON_CHECKPOINT_CHECKPOINT_PARTS_H
#define COMMON_CHECKPOINT_CHECKPOINT_PARTS_H

#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/layouts.h"

struct checkpoint_rules {
	const struct layout *row; /* NULL: auto */
	bool is_own;
	struct regexp *pattern; /* NULL: by layout */
	int pattern_depth;      /* slashes in it */
	char *complete_when;    /* NULL = not given */
};

/* The step as the pattern finds it in a name below the folder; -1 = no checkpoint. */
int64_t checkpoint_pattern_step(const struct checkpoint_rules *rules, const char *relative);

void checkpoint_add_part(struct checkpoint *c, const char *name);

/* --- checkpoint_entry.c: by names alone, and nothing of the run's own pattern ----------------- */
/* a folder that is being read */
struct checkpoint_place {
	const char *path;
	const char *relative; /* below the top; "" = the top itself */
	int depth;
	bool is_for_checkpoints; /* its name says so, or a folder's above it; or it is the top */
	bool is_below;           /* one that is called after them, and holds none itself */
	bool is_beside;          /* there are some here, or in a folder above */
	bool is_under;           /* there are some in a folder above */
	size_t first;            /* of the list's items that lie here */
};
/* *step: -1 = nothing tells it. *is_alone: files of the same step beside it are not of it. */
bool checkpoint_is_file(const struct checkpoint_rules *rules, const struct checkpoint_place *at,
			const char *name, int64_t *step, bool *is_alone);
bool checkpoint_is_folder(const struct checkpoint_rules *rules, const struct checkpoint_place *at,
			  const char *name, const char *path, int64_t *step);
bool checkpoint_is_best(const char *name);
/* A copy of one that was the best so far, or of the one before (Keras's BackupAndRestore): of no
 * use to others of its step. */
bool checkpoint_is_copy(const char *name);

/* --- checkpoint_layout.c ---------------------------------------------------------------------- */
/* Its files, their sizes and times; looked for once, measured each time. */
void checkpoint_list_parts(struct checkpoint *c);
/* The row that the rules name, else the first one that fits; never NULL. */
const struct layout *checkpoint_choose_row(const struct checkpoint_rules *rules,
					   const struct checkpoint *c);

/* --- checkpoint_marks.c: -1 with err where it is not finished, and c->is_unfinished ----------- */
/* `word` in the mark stands for the step. */
int checkpoint_check_mark(struct checkpoint *c, const char *mark, const char *word,
			  struct err *err);
/* What the pointer names is finished, and so is all before it. Without a pointer the files must
 * do. */
int checkpoint_check_pointer(struct checkpoint *c, struct err *err);
int checkpoint_check_unfinished(struct checkpoint *c, struct err *err);

/* --- checkpoint_files.c: -1 with err ---------------------------------------------------------- */
/* Of a run that says itself what makes them complete, files may be empty. */
int checkpoint_check_parts(struct checkpoint *c, bool may_be_empty, struct look *look,
			   struct err *err);
/* Alike but for numbers? */
bool checkpoint_is_called_like(const char *name, const char *other);
/* Are they called alike? Of several files one will do. */
bool checkpoint_is_sister(const struct checkpoint *c, const struct checkpoint *older);
/* What has no mark of its own must have what the one before has: a save that was interrupted
 * between two files leaves nothing else to see. */
int checkpoint_compare(const struct checkpoint *c, const struct checkpoint *older, bool is_newest,
		       struct err *err);
/* What has a mark of its own may have been committed by another one: Orbax's, where nothing is
 * renamed. */
int checkpoint_compare_commit(struct checkpoint *c, const struct checkpoint *older,
			      struct err *err);

#endif
