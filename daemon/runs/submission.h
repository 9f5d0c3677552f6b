/* SPDX-License-Identifier: MIT */
/* submission.h - a run that is about to be one, for the files that make it. */
#ifndef DAEMON_RUNS_SUBMISSION_H
#define DAEMON_RUNS_SUBMISSION_H

#include <stdbool.h>

#include "common/base/names.h"
#include "common/config/run_spec.h"
#include "common/config/toml.h"
#include "daemon/base/lbd.h"
#include "daemon/engine/run.h"
#include "daemon/runs/submit.h"

struct submission {
	struct submit by;
	struct lbd *lbd;
	struct toml toml;
	struct run_spec spec;
	char name[NAME_MAX_BYTES + 1];
	char *dir;
	bool has_folder; /* we made it, and take it back where the run is refused */
	const char *scheduler;
	bool hold;        /* --hold: it waits for lbctl release */
	bool wait;        /* --wait: lbctl is to come back when it is over */
	char *note;       /* what was asked for in vain; NULL: nothing */
	int64_t begun_ms; /* monotonic */
	bool is_syncing, is_answered;
	struct err refusal; /* why not; none yet */
};

/* --- submission_spec.c: -1 with err ----------------------------------------------------------- */
/* The spec, complete and checked, and the scheduler's name. */
int submission_read(struct submission *s, struct err *err);
/* NULL: this lbd has none of that name. */
struct scheduler *submission_scheduler(const struct submission *s);
/* Whether the secrets of run.env_file can be read for a job of this user: they are read again for
 * each job. */
int spec_check_env(const struct run_spec *spec, unsigned uid, struct err *err);
/* Is there a run of each of these names? */
int spec_check_followed(const struct lbd *lbd, const char *key, const struct key_strings *names,
			struct err *err);

/* --- submission_folder.c: -1 with err --------------------------------------------------------- */
int submission_choose_name(struct submission *s, struct err *err);
/* --snapshot (submission_copy.c): the copy of the code becomes RUN/code, and the spec means
 * that. */
int submission_take_copy(struct submission *s, struct err *err);
/* Makes it, with what lbworker checks of a training; every option of the job is understood then.
 * The caller removes it. */
int submission_make_folder(struct submission *s, struct err *err);
/* Writes all else, while the scheduler is asked. */
int submission_fill_folder(const struct submission *s, struct err *err);
/* What must be there as surely as the row that will be committed. */
int submission_sync_folder(const struct submission *s, struct err *err);
/* Could its job, of these fields, run there? As far as that is known without asking anybody. */
int spec_check_job(const struct run *run, const json_t *fields, struct err *err);
/* The run that it will be; borrows from the submission. */
struct run submission_as_run(const struct submission *s);

#endif
