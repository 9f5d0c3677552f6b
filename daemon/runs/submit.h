/* SPDX-License-Identifier: MIT */
/* runs/ - what people do with runs and ask about them, one file for each kind of request.
 *
 * submit.h - from the text that was submitted to a run in the ledger. */
#ifndef DAEMON_RUNS_SUBMIT_H
#define DAEMON_RUNS_SUBMIT_H

#include "daemon/control/control.h"

struct submit {
	struct lbd *lbd;
	json_t *args;     /* as docs/PROTOCOL.md has them; borrowed until done is called */
	const char *user; /* who submits; borrowed likewise */
	unsigned uid;
	bool wants_job; /* the answer is to have the number of the job, if that is known soon */
	/* Writes what shall be committed together with the run, or not at all; may be NULL. */
	int (*also)(void *arg, int64_t run_id, struct err *err);
	/* Called once, with the answer (taken), or with NULL and why not. */
	void (*done)(void *arg, json_t *answer, const struct err *why);
	void *arg;
};

/* Calls done at once, or after lbworker has checked a training config. */
void submit_run(const struct submit *submit);

/* Is there a folder of ours with this name, and no run? It is being submitted, or an lbd died over
 * that: of one that was committed there would be a record, whatever ledger somebody put back
 * since. */
bool submit_left_folder(struct lbd *lbd, const char *name);

#endif
