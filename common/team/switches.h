/* SPDX-License-Identifier: MIT */
/* switches.h - orders as files: their presence is the order.
 *
 *   $LB_HOME/switches/SELECTOR.LEVEL     who left it: its owner; why: its text, if any
 *
 *   LEVEL      save   ask running trainers for a checkpoint; they go on
 *              hold   checkpoint and end; nothing is started while the file is there
 *              stop   checkpoint and end, for good
 *              kill   end, for good
 *   SELECTOR   as on lbctl's command line (selector.h): NAME, 'swee*', GROUP@group, USER@user, ALL
 *
 * lbd reads the folder, and so does every lbrun by itself. Everybody of the team may create files
 * in it, so nothing in it is trusted. A switch counts only if it is an ordinary file with one name
 * (no symbolic link, no second hard link, no FIFO, device or folder) and belongs to the owner, to
 * root, or to a member of the team; the folder only if it belongs to the owner and nobody else than
 * the team can write to it, and if so is sticky. Looking never blocks and never follows a link.
 *
 * A member may leave any number of files. So the folder is read in pieces, as long and as often as
 * one can afford, and the orders that name a run, its group, its user or ALL are looked up by their
 * names: they count at once, whatever else lies there. */
#ifndef COMMON_TEAM_SWITCHES_H
#define COMMON_TEAM_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/run/run_state.h"
#include "common/team/selector.h"

enum switch_level { SWITCH_SAVE, SWITCH_HOLD, SWITCH_STOP, SWITCH_KILL, SWITCH_LEVEL_COUNT };

enum {
	SWITCH_FILE_BYTES = 80, /* selector, dot, level */
	SWITCH_TEXT_BYTES = 200,
	SWITCHES_MAX = 65536,      /* of the owner that count */
	SWITCHES_OF_MEMBER = 1000, /* of each member of the team; not those that name their run */
};

struct switch_rules {
	uid_t owner;      /* of lbd and its jobs */
	const char *team; /* Unix group; NULL: nobody but the owner */
};

struct switch_file {
	enum switch_level level;
	struct selector selector;
	char file[SWITCH_FILE_BYTES]; /* its name */
	/* user name of its owner, or the number; "ada's file" where the team can write: others
	 * could have moved it there from elsewhere */
	char by[65];
	char text[SWITCH_TEXT_BYTES]; /* one clean line; "" */
	ino_t inode;                  /* with changed_ns: this file and no later one of its name */
	int64_t changed_ns;
};

struct switches {
	struct switch_file *items; /* those that count */
	size_t count;
	size_t first_pattern; /* before it one name each, sorted; then all others */
};

/* borrowed; a run that switches may mean */
struct switch_run {
	const char *name, *group, *owner; /* group: NULL or "" = none */
};

/* "kill" …; SWITCH_LEVEL_COUNT when there is no such level. */
const char *switch_level_name(enum switch_level level);
enum switch_level switch_level_from_name(const char *name);
/* What it wants of a run; ORDER_RUN for save. */
enum run_order switch_order(enum switch_level level);

/* The folder, if switches in it count. A descriptor, or -1 with err: ERR_NOT_FOUND, ERR_REFUSED
 * (with how to mend it) or ERR_IO. */
int switches_open(const char *folder, const struct switch_rules *rules, struct err *err);

/* The strongest order, save apart, of those that mean this run by its own name, its group, its user
 * or ALL: at most a dozen names, and no look at any other file. Of globs it knows nothing. */
bool switches_lookup(int dir, const struct switch_rules *rules, const struct switch_run *run,
		     struct switch_file *out);

/* What does not count: the cleaned name of the file (NULL: one of so many that it does not matter
 * which), its owner, and what is wrong with it. */
typedef void switch_refused(const char *file, uid_t uid, const char *by, const char *why,
			    void *arg);

/* A reading of all that counts, in pieces; with `only` of what may mean that run. The descriptor
 * remains the caller's; what the words in `rules` and `only` point to is borrowed until the end.
 * NULL with err. */
struct switch_reading;
struct switch_reading *switches_begin(int dir, const struct switch_rules *rules,
				      const struct switch_run *only, struct err *err);
/* Goes on for so long, more or less; `refused` may be NULL. 1: there is more, 0: that was all, -1
 * with err: it failed, and what was found is not all. */
int switches_step(struct switch_reading *reading, int64_t budget_ms, switch_refused *refused,
		  void *arg, struct err *err);
/* What counts of that which was read until now; borrowed until the next step. */
const struct switches *switches_so_far(const struct switch_reading *reading);
/* How long not to read again, that reading takes one part in `part` of a processor. */
int64_t switches_pause_ms(const struct switch_reading *reading, int part);
/* Takes what was found (NULL: frees it), and ends the reading. NULL is fine. */
void switches_end(struct switch_reading *reading, struct switches *out);

void switches_sort(struct switches *switches);
void switches_clear(struct switches *switches);

/* The strongest switch for this run, save apart; NULL = none. */
const struct switch_file *switches_find(const struct switches *switches, const char *name,
					const char *group, const char *owner);
/* The next save switch for this run after `after` (NULL: the first). */
const struct switch_file *switches_find_save(const struct switches *switches,
					     const struct switch_file *after, const char *name,
					     const char *group, const char *owner);

/* "kill by bob with the switch a.kill: wrong data": for people. */
void switch_describe(const struct switch_file *s, char *out, size_t size);

/* The folder, to leave a switch in it; only if it belongs to `owner` and is no link, unless that is
 * NULL. A descriptor, or -1 with err: ERR_REFUSED, ERR_IO. */
int switches_folder_open(const char *folder, const uid_t *owner, struct err *err);

/* Leaves a switch in the open folder, which messages call `shown`; what is there under this name
 * stays (ERR_LOCKED). */
int switch_write(int folder, const char *shown, const char *selector, enum switch_level level,
		 const char *text, struct err *err);

#endif
