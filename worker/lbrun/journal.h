/* SPDX-License-Identifier: MIT */
/* journal.h - the spool as lbrun keeps it: what cannot be written now is not lost, and lbd is told.
 *
 * Lines of the trainer are refused while the file cannot be written (the trainer gets no ack).
 * lbrun's own records wait in memory, in order, and go first when writing works again. */
#ifndef LBRUN_JOURNAL_H
#define LBRUN_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/err.h"
#include "common/spool.h"
#include "worker/lbrun/poke.h"

enum {
	JOURNAL_WAITING_MAX = 256,	/* own records kept while the disk is full */
	JOURNAL_SYNC_MS = 1000,
	JOURNAL_RETRY_MS = 1000,
};

struct journal {
	struct spool_writer spool;
	struct poke poke;
	struct {
		json_t *line;
		int64_t launch;
	} waiting[JOURNAL_WAITING_MAX];
	int waiting_count;
	int64_t sync_ms, retry_ms;	/* when due, monotonic; INT64_MAX = not */
	bool is_failing;		/* told once, not once a line */
	char *path;
	/* Set by the owner: one line for people, about the spool itself. */
	void (*say)(void *arg, const char *text);
	void *arg;
};

/* Never fails: a spool that cannot be opened is tried again every second. */
void journal_open(struct journal *j, const char *path, const char *lbd_socket, const char *run);
void journal_close(struct journal *j);

/* A trainer's line. The seq it got, or -1 with err. */
int64_t journal_trainer(struct journal *j, int64_t launch, const json_t *line, struct err *err);
/* A record of ours; takes the reference. */
void journal_own(struct journal *j, int64_t launch, json_t *line);
void journal_note(struct journal *j, int64_t launch, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Durable now, as far as the file system allows. False when something could not be written. */
bool journal_sync(struct journal *j);

void journal_turn(struct journal *j, int64_t now_ms);
int64_t journal_next_ms(const struct journal *j);

#endif
