/* SPDX-License-Identifier: MIT */
/* disk.h - the shared file system: attempt folders with claim, order, spool and exit record, and
 * each run's checkpoints, with what is remembered of those that were handed to trainers. What one
 * host writes the others see after a moment. It may be full for a while. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/handed.h"
#include "common/run/attempt.h"
#include "common/run/spool.h"
#include "tests/sim/run_numbers.h"

struct sim;

enum spool_kind {
	SPOOL_ATTEMPT_START,
	SPOOL_NODE_BROKEN, /* step: the node */
	SPOOL_LAUNCH_START,
	SPOOL_STEP,
	SPOOL_CHECKPOINT,
	SPOOL_LAUNCH_END,
	SPOOL_ATTEMPT_END,
};

struct spool_record {
	int64_t at_ms, seen_ms; /* said, and written: lbd sees it from then on */
	int64_t launch, step;   /* step of SPOOL_ATTEMPT_START: the node */
	const int *others;      /* of that: FAR_RANKS more nodes; borrowed, NULL = none */
	enum spool_kind kind;
	enum cause cause;
	int node; /* of SPOOL_LAUNCH_END: to blame; -1 = none */
	int exit_code;
	bool has_progress, counts;
};

struct folder { /* runs/NAME/attempts/N */
	int run;
	int64_t number;
	int64_t without_progress; /* launches of the run, in a row, before it */
	char token[TOKEN_HEX + 1];
	int64_t delay_ms;   /* until lbd sees what was written here */
	int64_t claimed_ms; /* 0: not */
	enum run_order order;
	bool goes_on; /* the order is for this attempt alone */
	bool wants_save;
	/* so many nodes left a note that nobody answers this launch, and when the last did */
	int64_t unheard_launch, unheard_nodes, unheard_ms;
	int64_t exited_ms; /* 0: not */
	struct attempt_exit exit;
	struct spool_record *records;
	size_t count, cap;
};

enum { SAVED_MAX = 16 }; /* of a run; beyond, the oldest goes */

struct saved { /* a checkpoint */
	int64_t step;
	uint64_t stamp; /* unlike all others */
	bool is_whole;
	bool is_bad; /* whole, and yet no trainer gets anywhere from it */
};

struct run_files {
	struct folder **attempts; /* owned; [number - 1], NULL where there is none */
	size_t count;
	int64_t newest_claim;          /* number of the highest attempt with a claim */
	struct saved saved[SAVED_MAX]; /* by step, the newest first */
	int saved_count;
	struct handed handed;    /* resumes.json */
	int64_t checkpoint_step; /* the highest that was ever saved; -1: none */
};

struct disk {
	struct run_files runs[ALL_RUNS];
	uint64_t stamps; /* given out so far */
	int64_t full_until_ms;
};

enum { SPOOL_RECORD_BYTES = SPOOL_MAX_LINE_BYTES }; /* so that few fill one bite of lbd's */

void disk_init(struct disk *disk);
void disk_fini(struct disk *disk);
static inline bool disk_is_full(const struct disk *disk, int64_t now_ms)
{
	return now_ms < disk->full_until_ms;
}

/* Whole, or half written. */
void disk_save(struct sim *sim, int run, int64_t step, bool is_whole, bool is_bad);
/* As lbrun's search: 1 with the one to start from, 0 = none, -1 = none that may be used.
 * *newest_step: of all whole ones. */
int disk_search(const struct run_files *files, const struct handed *handed,
		const struct saved **found, int64_t *newest_step);
/* All have this path; stamps tell them apart. */
extern char saved_path[];
/* What is in the file, to be cleared by the caller; and a new file. */
void disk_load_handed(const struct run_files *files, struct handed *out);
void disk_save_handed(struct run_files *files, const struct handed *handed);

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
