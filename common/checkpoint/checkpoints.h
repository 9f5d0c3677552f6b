/* SPDX-License-Identifier: MIT */
/* checkpoint/ - checkpoints of any trainer: found, judged, kept few.
 *
 * checkpoints.h - the checkpoints that lie in a folder, of whatever trainer: which there are, and
 * which of them are whole.
 *
 * How they are called comes from the table in layouts.h, or from the run's own pattern. Nothing is
 * believed that is not looked at: files that are missing, empty or cut short, lists of files that
 * do not hold, less than the checkpoint before it has. What lies there was written by others: a
 * look follows no link to a folder inside one, waits for no FIFO, and reads whole files only when
 * it is deep. */
#ifndef COMMON_CHECKPOINT_CHECKPOINTS_H
#define COMMON_CHECKPOINT_CHECKPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/zip_check.h" /* struct look */

/* --- how a run calls its checkpoints ---------------------------------------------------------- */

struct checkpoint_rules;

/* layout: "auto" (or NULL), "own", or a row of layouts.h. pattern (NULL: by the layout):
 * "step-{step}" with * and ? as in a shell, or a regular expression with the named group step; it
 * names entries below the folder, deeper ones where it has a '/'. complete_when (NULL: they are
 * looked at): a file inside it (beside it, for a file) that is there once it is complete, or
 * "manifest". NULL with err (ERR_USAGE). */
struct checkpoint_rules *checkpoint_rules_create(const char *layout, const char *pattern,
						 const char *complete_when, struct err *err);
void checkpoint_rules_destroy(struct checkpoint_rules *rules);

/* The trainer finds them itself: no list is ever made. */
bool checkpoint_rules_is_own(const struct checkpoint_rules *rules);

/* --- what is there ---------------------------------------------------------------------------- */

/* a file of one */
struct checkpoint_part {
	char *name; /* below the checkpoint's folder; of a file: below the folder that holds it */
	int64_t bytes, changed_ns;
};

struct checkpoint {
	char *path;   /* of the folder, or of its first file */
	int64_t step; /* -1 = neither its name nor its content tells */
	/* once it was checked: */
	const char *layout; /* name of its row; "pattern" for the run's own */
	int64_t bytes;      /* of all its files */
	int64_t time_ms;    /* when the newest of them was written */
	uint64_t stamp;     /* another one once anything was written again */
	bool is_valid;
	bool is_unfinished; /* not valid, and never was: its mark or pointer is missing */
	bool is_unreadable; /* not valid, but only since the system could not read it */
	bool is_suspect;    /* set by those who know what a launch from it came to (handed.h) */
	bool is_unread;     /* the deadline came before every byte was read */
	char *why;          /* not valid: the file and what is wrong with it; else NULL */

	size_t top_len; /* of the folder that was looked in, in `path` … */
	int place;      /* … and its number among several */
	bool is_file;
	bool is_alone;  /* a file that no other belongs to, whatever their steps */
	bool is_best;   /* is called that */
	bool is_copy;   /* or the one before: any other of its step is preferred */
	bool is_linked; /* a link in the folder that was looked in leads to it: "last", "best" */
	bool is_checked, is_listed;
	struct checkpoint_part *parts;
	size_t part_count;
	const struct layout *row;
};

struct checkpoint_list {
	struct checkpoint *items; /* newest first: by step; those without a step last, by time */
	size_t count;
};

enum { CHECKPOINTS_MAX = 20000 }; /* of more the newer half of so many is listed */

/* Which there are, by their names: cheap, path and step only. A missing folder is empty. 0, or -1
 * with err where it cannot be read (the list is then empty). */
int checkpoints_find(const struct checkpoint_rules *rules, const char *folder,
		     struct checkpoint_list *out, struct err *err);
/* The same of several folders that hold one run's, as one list: of the same step and name, the one
 * in the folder that is named first comes first. NULL ends the folders. */
int checkpoints_find_in(const struct checkpoint_rules *rules, const char *const *folders,
			struct checkpoint_list *out, struct err *err);
void checkpoint_list_clear(struct checkpoint_list *list);

/* Looks at one of them, and fills in the rest. Cheap reads names, sizes and the ends of files;
 * deep, every byte where there is a checksum to hold it against. */
void checkpoint_check(const struct checkpoint_rules *rules, struct checkpoint_list *list,
		      size_t index, struct look *look);

/* checkpoints_find, and checkpoint_check of each, for lists that people read. */
int checkpoints_list(const struct checkpoint_rules *rules, const char *folder, struct look *look,
		     struct checkpoint_list *out, struct err *err);

/* The newest valid one: its index, -1 = none is; each that was passed over is told to on_bad (may
 * be NULL). `is_out` (may be NULL) says which are not to be taken though they are valid. */
int64_t checkpoints_newest(const struct checkpoint_rules *rules, struct checkpoint_list *list,
			   struct look *look, bool (*is_out)(void *arg, const struct checkpoint *c),
			   void (*on_bad)(void *arg, const struct checkpoint *c), void *arg);

/* One by its path, wherever it lies; checked. 0, or -1 with err when nothing is there. The list has
 * it as its only item. */
int checkpoint_at(const struct checkpoint_rules *rules, const char *path, struct look *look,
		  struct checkpoint_list *out, struct err *err);
/* The same one looked at again; -1 when it is gone. */
int checkpoint_again(const struct checkpoint_rules *rules, const struct checkpoint *c,
		     struct look *look, struct checkpoint_list *out);
/* The folder that its parts' names are below; owned by the caller. */
char *checkpoint_base(const struct checkpoint *c);
/* The file beside a file checkpoint (its base) that shows that it is complete, which need not be
 * there; NULL = it has none. Owned by the caller. Of a checked one. */
char *checkpoint_mark_beside(const struct checkpoint_rules *rules, const struct checkpoint *c);
/* The name of a file beside it that names the newest, and what that says where it is this one
 * (owned by the caller); NULL = its layout has none. Of a checked one. */
const char *checkpoint_pointer(const struct checkpoint *c, char **text);
/* By its name: the path of the file beside it that names the newest, where that is this one; NULL =
 * none does. And what that file would say of another. Both owned by the caller. */
char *checkpoint_named_by(const struct checkpoint_rules *rules, const struct checkpoint *c);
char *checkpoint_pointer_text(const char *pointer, const struct checkpoint *c);

#endif
