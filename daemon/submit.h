/* SPDX-License-Identifier: MIT */
/* submit.h - from the text a person submitted to a run in the ledger. */
#ifndef DAEMON_SUBMIT_H
#define DAEMON_SUBMIT_H

#include "daemon/control.h"

/* Answers the request, at once or after lbworker has checked a training config. */
void submit_run(struct request *request);

/* Whether the secrets of run.env_file can be read for a job of this user. */
int submit_check_env(const struct run_spec *spec, unsigned uid, struct err *err);

/* The scheduler's name a spec asks for, given what this lbd has; NULL with err. */
const char *submit_scheduler(const struct lbd *lbd, const struct run_spec *spec, struct err *err);

#endif
