/* SPDX-License-Identifier: MIT */
/* submit.c - text → spec → folder → (lbworker's check) → row.
 *
 * Everything that can be wrong is found before the row is committed; what was made until then is
 * taken back. */
#include "daemon/runs/submit.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "daemon/runs/trainer_check.h"
#include "daemon/job/preview.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/submission.h"
#include "daemon/runs/switchboard.h"

static void submission_free(struct submission *s)
{
	toml_clear(&s->toml);
	run_spec_clear(&s->spec);
	free(s->dir);
	free(s->note);
	free(s);
}

/* Where another lbd took over, a folder of this name may be what it has made of the same time of
 * cron. */
static void refuse(struct submission *s, const struct err *err)
{
	if (s->has_folder && ledger_may_be_written(s->lbd->ledger))
		folder_remove(s->dir, NULL);
	s->by.done(s->by.arg, NULL, err);
	submission_free(s);
}

static void answer(struct submission *s, json_t *data)
{
	s->by.done(s->by.arg, data, NULL);
	submission_free(s);
}

static int insert_row(struct submission *s, struct err *err)
{
	struct ledger *ledger = s->lbd->ledger;
	struct ledger_run row = {
		.name = s->name,
		.owner = s->by.user,
		.owner_uid = s->by.uid,
		.state = RUN_CREATED,
		.text = "",
		.scheduler = s->scheduler,
		.dir = s->dir,
		.run_group = s->spec.group,
		.wanted = s->hold ? ORDER_HOLD : ORDER_RUN,
		.wanted_by = s->hold ? s->by.user : "",
		.wanted_reason = s->hold ? "submitted with --hold" : "",
		.created_ms = clock_wall_ms(),
		.step = -1,
		.target_step = -1,
		.loss = NAN,
		.tokens_per_s = NAN,
		.mfu = NAN,
	};
	struct ledger_event event = {
		.time_ms = row.created_ms,
		.kind = "created",
		.actor = row.owner,
		.text = s->note ? s->note : "",
	};

	if (ledger_run_insert(ledger, &row, &event.run_id, err) < 0)
		return -1;
	if (s->by.also && s->by.also(s->by.arg, event.run_id, err) < 0)
		return -1;
	return ledger_event_put(ledger, &event, err);
}

/* Everything was made and checked as for a real submission; nothing of it stays. */
static void finish_dry(struct submission *s)
{
	struct err err = { 0 };
	struct run run = submission_as_run(s);
	json_t *job;

	job = preview_job(&s->lbd->config, &run, s->scheduler, &err);
	if (job == NULL) {
		refuse(s, &err);
		return;
	}
	if (s->note)
		js_set_str(job, "note", s->note);
	if (s->wait)
		json_object_set_new(job, "wait", json_true());
	folder_remove(s->dir, NULL);
	answer(s, job);
}

/* After a failed sync only the next lbd can tell whether the row is there: if it is, the run goes
 * on, and needs its folder. */
static void refuse_uncommitted(struct submission *s, struct err *err)
{
	bool is_unsure = ledger_is_broken(s->lbd->ledger);

	if (is_unsure)
		err_wrap(err,
			 "%s may have been submitted all the same, lbctl status %s tells once lbd "
			 "is back",
			 s->name, s->name);
	s->has_folder = s->has_folder && !is_unsure;
	refuse(s, err);
}

/* The job is told to whoever asked as soon as Slurm has taken it; the ledger learns of it then,
 * too. */
static void on_job(void *arg, uint32_t job_id)
{
	struct submission *s = arg;
	json_t *data = json_pack("{s:s, s:s*, s:o*}", "run", s->name, "note", s->note, "wait",
				 s->wait ? json_true() : NULL);

	if (job_id)
		js_set_int(data, "job_id", job_id);
	answer(s, data);
}

/* Row and first attempt are committed together; from then on the run cannot be lost. */
static void finish(struct submission *s)
{
	struct ledger *ledger = s->lbd->ledger;
	struct err err = { 0 };

	if (js_bool(s->by.args, "dry_run", false)) {
		finish_dry(s);
		return;
	}
	/* a hold is obeyed by the new run itself */
	if (switchboard_allows(s->lbd->switchboard, s->name, s->spec.group, s->by.user, SWITCH_STOP,
			       &err) < 0) {
		refuse(s, &err);
		return;
	}
	if (insert_row(s, &err) < 0 || failpoint(FP_RUN_WRITTEN, &err) < 0 ||
	    engine_adopt(s->lbd->engine, s->name, &err) < 0) {
		ledger_rollback(ledger);
		refuse(s, &err);
	} else if (engine_settle(s->lbd->engine, &err) < 0) {
		refuse_uncommitted(s, &err);
	} else {
		failpoint(FP_RUN_COMMITTED, NULL);
		if (s->by.wants_job)
			probe_job(s->lbd, s->name, s->begun_ms + PROBE_PATIENCE_MS, on_job, s);
		else
			on_job(s, 0);
	}
}

static void conclude(struct submission *s)
{
	struct err refusal = s->refusal;

	if (refusal.code != ERR_NONE)
		refuse(s, &refusal);
	else
		finish(s);
}

static void on_probed(void *arg, const struct err *problem)
{
	struct submission *s = arg;

	if (problem)
		s->refusal = *problem;
	s->is_answered = true;
	if (!s->is_syncing)
		conclude(s);
}

/* The disk and the scheduler work at the same time. */
static void ask_scheduler(struct submission *s)
{
	struct run run = submission_as_run(s);
	struct err err = { 0 };

	s->is_syncing = true;
	probe_ask(s->lbd, &run, on_probed, s);
	if ((submission_fill_folder(s, &err) < 0 || submission_sync_folder(s, &err) < 0) &&
	    s->refusal.code == ERR_NONE)
		s->refusal = err;
	s->is_syncing = false;
	if (s->is_answered)
		conclude(s);
}

static void on_checked(void *arg, const struct err *problem)
{
	struct submission *s = arg;

	if (problem)
		refuse(s, problem);
	else
		ask_scheduler(s);
}

static void check_training_config(struct submission *s)
{
	char *config = path_join("%s/submitted.toml", s->dir);
	struct check check = {
		.lbd = s->lbd,
		.config = config,
		.shown = js_str(s->by.args, "file", "spec"),
		.workdir = s->spec.workdir,
		.sets = json_object_get(s->by.args, "set"),
	};

	check_config(&check, on_checked, s);
	free(config);
}

void submit_run(const struct submit *submit)
{
	struct submission *s = xcalloc(1, sizeof(*s));
	struct err err = { 0 };

	s->by = *submit;
	s->lbd = submit->lbd;
	s->begun_ms = clock_mono_ms();
	if (submission_read(s, &err) < 0 || submission_choose_name(s, &err) < 0 ||
	    submission_make_folder(s, &err) < 0)
		refuse(s, &err);
	else if (!run_spec_is_command(&s->spec))
		check_training_config(s);
	else
		ask_scheduler(s);
}
