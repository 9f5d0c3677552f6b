/* SPDX-License-Identifier: MIT */
/* disk.h - the shared file system: attempt folders with claim, order, spool and exit record, and
 * the newest checkpoint of each run. What one host writes the others see after a moment. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/attempt.h"
#include "common/run/spool.h"

struct lbrun;

enum spool_kind {
	SPOOL_ATTEMPT_START,
	SPOOL_LAUNCH_START,
	SPOOL_STEP,
	SPOOL_CHECKPOINT,
	SPOOL_LAUNCH_END,
	SPOOL_ATTEMPT_END,
};

struct spool_record {
	int64_t at_ms, launch, step; /* step of SPOOL_ATTEMPT_START: the node */
	enum spool_kind kind;
	enum cause cause;
	int exit_code;
	bool has_progress;
};

/* runs/NAME/attempts/N */
struct folder {
	int run;
	int64_t number;
	int64_t without_progress; /* launches of the run, in a row, before it */
	char token[TOKEN_HEX + 1];
	int64_t delay_ms;   /* until lbd sees what was written here */
	int64_t claimed_ms; /* 0: not */
	enum run_order order;
	int64_t exited_ms; /* 0: not */
	struct attempt_exit exit;
	struct spool_record *records;
	size_t count, cap;
};

struct run_files {
	struct folder **attempts; /* owned; [number - 1], NULL where there is none */
	size_t count;
	int64_t newest_claim;    /* number of the highest attempt with a claim */
	int64_t checkpoint_step; /* of the newest; -1: none */
};

struct disk {
	struct run_files runs[20];
};

enum { SPOOL_RECORD_BYTES = 256 * 1024 }; /* so that a few fill one bite of lbd's */

void disk_init(struct disk *disk);
void disk_fini(struct disk *disk);
/* Borrowed; NULL when there is none. */
struct folder *disk_folder(const struct disk *disk, int run, int64_t number);
struct folder *disk_make_folder(struct disk *disk, int run, int64_t number, const char *token,
				int64_t delay_ms);
/* Returns the seq of the new record. */
int64_t folder_append(struct folder *folder, const struct spool_record *record);
/* As spool_read, with what can be seen at now_ms. */
int64_t folder_read(const struct folder *folder, int64_t now_ms, int64_t *offset, int64_t max_bytes,
		    int (*on_line)(const struct spool_line *line, void *arg), void *arg,
		    struct err *err);

#endif
