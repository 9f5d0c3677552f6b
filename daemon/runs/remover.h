/* SPDX-License-Identifier: MIT */
/* remover.h - runs that have ended are removed for good: their rows, and their folder.
 *
 * Rows end and the removal is noted in one transaction; then the folder gets a hidden name, so that
 * its old one is free, and goes in a thread. Whatever dies in between, the next lbd finds the note
 * and goes on: nobody ever sees half a run. A folder that cannot be renamed keeps its name until it
 * has gone. What lies outside of the run's folder is left alone. */
#ifndef DAEMON_RUNS_REMOVER_H
#define DAEMON_RUNS_REMOVER_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "daemon/base/lbd.h"

struct request;
struct remover;

/* Goes on with what an earlier lbd began. */
struct remover *remover_open(struct lbd *lbd);
void remover_close(struct remover *remover);

/* Is a folder that was here on its way out, and could not get another name? */
bool remover_is_at(struct lbd *lbd, const char *dir);

/* The verb "rm": {"run"}, with dry_run without doing anything. A run that is not over, or that
 * another one waits for, is refused (ERR_LOCKED). */
json_t *remover_answer(struct request *request, struct err *err);

#endif
