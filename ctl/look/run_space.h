/* SPDX-License-Identifier: MIT */
/* run_space.h - what a run takes on disk, and what of it could go. */
#ifndef CTL_LOOK_RUN_SPACE_H
#define CTL_LOOK_RUN_SPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/checkpoints.h"

enum space_kind { SPACE_CHECKPOINTS, SPACE_LOGS, SPACE_SPOOLS, SPACE_OTHER, SPACE_KINDS };

struct run_space {
	int64_t bytes[SPACE_KINDS]; /* on disk, as du(1) counts */
	char *checkpoints;          /* their folder; owned */
	bool is_elsewhere;          /* that is not below the run's */
	int64_t old_checkpoints;    /* of that, valid ones beside the newest two */
	bool is_cut;                /* something could not be read: it is more than this */
};

/* Looks at everything below the folder of a run, and at its checkpoints wherever lbrun was told
 * they are. Follows no links. Clear *out. */
void run_space_measure(const char *run_dir, struct run_space *out);
/* Where the checkpoints of a run are: as lbrun was told; of one that never began, where they would
 * be by default. Owned by the caller. */
char *run_checkpoint_folder(const json_t *attempt, const char *run_dir);
/* Calls `each`, until it fails, for the folder, or, where an array's tasks have folders of their
 * own in it, for each of those; `handed`: the file that says what launches from it came to. */
int run_checkpoint_folders(const char *folder,
			   int (*each)(const char *folder, const char *handed, void *arg),
			   void *arg);
/* What lbrun of the newest attempt was told (common/run/attempt.h); a new reference, NULL when
 * nothing was. */
json_t *run_space_attempt(const char *run_dir);
/* How it calls its checkpoints, from what its lbrun was told. Owned; NULL with err. */
struct checkpoint_rules *run_checkpoint_rules(const json_t *attempt, struct err *err);
void run_space_clear(struct run_space *space);
int64_t run_space_total(const struct run_space *space);
/* "checkpoints", "logs", … */
const char *space_name(enum space_kind kind);

#endif
