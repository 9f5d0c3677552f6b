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
 * the team can write to it, and if so is sticky. Looking never blocks and never follows a link. */
#ifndef COMMON_SWITCHES_H
#define COMMON_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/run_state.h"
#include "common/selector.h"

enum switch_level { SWITCH_SAVE, SWITCH_HOLD, SWITCH_STOP, SWITCH_KILL, SWITCH_LEVEL_COUNT };

enum {
	SWITCH_FILE_BYTES = 80,		/* selector, dot, level */
	SWITCH_TEXT_BYTES = 200,
	SWITCHES_MAX = 65536,		/* files that are looked at */
};

struct switch_rules {
	uid_t owner;			/* of lbd and its jobs */
	const char *team;		/* Unix group; NULL: nobody but the owner */
};

struct switch_file {
	enum switch_level level;
	struct selector selector;
	char file[SWITCH_FILE_BYTES];	/* its name */
	char by[65];			/* user name of its owner, the number where there is none */
	char text[SWITCH_TEXT_BYTES];	/* one clean line; "" */
	ino_t inode;			/* with changed_ns: this file and no later one of its name */
	int64_t changed_ns;
};

struct switches {
	struct switch_file *items;	/* those that count */
	size_t count;
	size_t first_pattern;		/* before it one name each, sorted; then all others */
};

/* "kill" …; SWITCH_LEVEL_COUNT when there is no such level. */
const char *switch_level_name(enum switch_level level);
enum switch_level switch_level_from_name(const char *name);
/* What it wants of a run; ORDER_RUN for save. */
enum run_order switch_order(enum switch_level level);

/* Everything in the folder that counts. What does not is told to `refused` (may be NULL), with the
 * cleaned name of the file and what is wrong with it. -1 with err, and *out empty, when the folder
 * cannot be used: ERR_NOT_FOUND, ERR_REFUSED (with how to mend it) or ERR_IO. Clear *out. */
int switches_read(const char *folder, const struct switch_rules *rules, struct switches *out,
		  void (*refused)(const char *file, const char *by, const char *why, void *arg),
		  void *arg, struct err *err);
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
