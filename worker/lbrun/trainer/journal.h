/* SPDX-License-Identifier: MIT */
/* journal.h - the spool as lbrun keeps it: what cannot be written now is not lost, and lbd is told.
 *
 * While the file cannot be written, lines of the trainer and lbrun's own records wait in memory and
 * go first, in their order and with their time, when writing works again. What was kept is not
 * acknowledged; beyond the bounds below newer lines of the trainer are refused, and a note tells
 * how many. */
#ifndef LBRUN_TRAINER_JOURNAL_H
#define LBRUN_TRAINER_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/base/err.h"
#include "common/run/spool.h"
#include "worker/lbrun/trainer/poke.h"

enum {
	JOURNAL_WAITING_MAX = 256,  /* own records kept while the disk is full; the oldest go */
	JOURNAL_KEPT_LINES = 10000, /* of the trainer, … */
	JOURNAL_KEPT_BYTES = 1024 * 1024, /* … and their text together */
	JOURNAL_SYNC_MS = 1000,
	JOURNAL_RETRY_MS = 1000,
};

struct journal {
	struct spool_writer spool;
	struct poke poke;
	struct journal_line {
		json_t *line;
		int64_t launch, time_ms;
		bool from_trainer;
		size_t bytes;
	} * waiting; /* oldest first; owned */
	size_t waiting_count, waiting_room;
	size_t own_count,
		kept_bytes;        /* of lbrun's own, and the text of the trainer's, among them */
	int64_t refused;           /* lines of the trainer, since it fails */
	int64_t sync_ms, retry_ms; /* when due, monotonic; INT64_MAX = not */
	bool is_failing;           /* told once, not once a line */
	int64_t failed_ms;         /* when it did last, monotonic; INT64_MIN = never */
	char *path;
	/* Set by the owner: one line for people, about the spool itself. */
	void (*say)(void *arg, const char *text);
	void *arg;
};

/* Never fails: a spool that cannot be opened is tried again every second. */
void journal_open(struct journal *j, const char *path, const char *lbd_socket, const char *run);
void journal_close(struct journal *j);

/* A trainer's line. The seq it got; with err 0, it is kept and will be written, or -1, it is
 * not. */
int64_t journal_trainer(struct journal *j, int64_t launch, json_t *line, struct err *err);
/* A record of ours; takes the reference. */
void journal_own(struct journal *j, int64_t launch, json_t *line);
void journal_note(struct journal *j, int64_t launch, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Durable now, as far as the file system allows. False when something could not be written. */
bool journal_sync(struct journal *j);

void journal_turn(struct journal *j, int64_t now_ms);
int64_t journal_next_ms(const struct journal *j);

#endif
