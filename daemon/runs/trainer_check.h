/* SPDX-License-Identifier: MIT */
/* trainer_check.h - asks lbworker whether it would take a training config: `lbworker train FILE
 * --check`. */
#ifndef DAEMON_RUNS_TRAINER_CHECK_H
#define DAEMON_RUNS_TRAINER_CHECK_H

#include <jansson.h>

#include "common/base/err.h"
#include "daemon/base/lbd.h"

/* borrowed for the call only */
struct check {
	struct lbd *lbd;
	const char *config; /* the file that is checked */
	const char *shown;  /* its name in messages */
	const char *workdir;
	const json_t *sets; /* ["section.key=value"…] on top of it; may be NULL */
};

/* `done` is called once, later, on the loop: problem is NULL when lbworker is content. */
void check_config(const struct check *check, void (*done)(void *arg, const struct err *problem),
		  void *arg);

/* lbd ends: who still waits is told so. Before the schedulers are closed, as probes_close. */
void checks_close(struct lbd *lbd);

#endif
