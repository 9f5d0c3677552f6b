/* SPDX-License-Identifier: MIT */
/* rebuild.c - a run's folder becomes rows again: its record says what was wanted, its spools are
 * read by the engine as on the day they were written. */
#include "daemon/recover/rebuild.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/run/attempt_folders.h"
#include "common/run/order.h"
#include "daemon/engine/state.h"
#include "daemon/recover/record.h"

/* --- an attempt ------------------------------------------------------------------------------- */

static void read_spool(struct recovery *r, struct run *run, const struct ledger_attempt *a)
{
	struct attempt *now = &run->attempt;

	attempt_clear(now);
	*now = (struct attempt){ .id = a->id, .number = a->number, .state = ATTEMPT_INTENT };
	snprintf(now->job.token, sizeof(now->job.token), "%s", a->token);
	run->has_attempt = true;
	do {
		engine_ingest_begin(r->engine);
		engine_ingest(r->engine, run);
	} while (now->has_more && !r->engine->broken);
}

/* What the files say where there is no record; `row` as the spool left it. */
static void derive_attempt(const char *folder, bool is_live, struct attempt_claim *claim,
			   struct attempt_exit *ended, struct ledger_attempt *row)
{
	bool has_ended = attempt_exit_read(folder, ended, NULL) == 0;

	if (attempt_claim_read(folder, claim, NULL) == 0) {
		row->released_ms = row->started_ms = claim->time_ms;
		row->job_id = strtoll(claim->job_id, NULL, 10);
	}
	if (is_live) {
		/* without a job's number it is looked for by its token */
		row->state = has_ended ? ATTEMPT_RUNNING : ATTEMPT_INTENT;
		row->job_id = has_ended ? row->job_id : 0;
		return;
	}
	row->state = ATTEMPT_ENDED;
	row->cause = has_ended ? ended->cause : CAUSE_LOST;
	row->exit_code = has_ended ? ended->exit_code : -1;
	row->signal = has_ended ? ended->signal : 0;
	row->text = has_ended ? ended->text : "its folder holds no exit record";
	row->ended_ms = has_ended ? ended->time_ms : mtime_ms(folder);
}

/* The record is right about what became of the job, the spool about where it ran. */
static void take_recorded(const struct ledger_attempt *told, struct ledger_attempt *row)
{
	struct ledger_attempt all = *told;

	all.id = row->id;
	if (all.nodes[0] == '\0')
		all.nodes = row->nodes;
	*row = all;
}

static int add_attempt(struct recovery *r, struct run *run, const json_t *record, int64_t number,
		       bool is_live, struct err *err)
{
	char *folder = path_join("%s/attempts/%lld", run->dir, (long long)number);
	char *file = path_join("%s/attempt.json", folder), token[TOKEN_HEX + 1] = "";
	struct ledger_attempt told, row = { .number = number };
	bool is_told = record_attempt(record, number, &told);
	struct attempt_params params = { 0 };
	struct attempt_exit ended;
	struct attempt_claim claim;
	int64_t made_ms = mtime_ms(file);
	int rc = 0;

	if (is_told)
		snprintf(token, sizeof(token), "%s", told.token);
	else if (attempt_params_read(folder, &params, NULL) == 0)
		snprintf(token, sizeof(token), "%s", params.token);
	attempt_params_clear(&params);
	if (token[0])
		rc = ledger_attempt_insert(r->ledger, run->id, number, token, made_ms, &row.id,
					   err);
	if (token[0] && rc == 0) {
		row.token = token;
		read_spool(r, run, &row);
		rc = ledger_attempt_by_token(r->ledger, token, &row, err);
	}
	if (token[0] && rc == 0) {
		if (is_told)
			take_recorded(&told, &row);
		else
			derive_attempt(folder, is_live, &claim, &ended, &row);
		rc = ledger_attempt_restore(r->ledger, &row, err);
	}
	if (token[0] && rc == 0 && row.state == ATTEMPT_ENDED)
		rc = ledger_launch_end_open(r->ledger, row.id, row.cause, row.ended_ms, err);
	r->attempts += token[0] != '\0';
	free(file);
	free(folder);
	return rc;
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Without a record: what the newest attempt's files amount to. What is not plain is left to the
 * engine, which meets a run that runs. */
static void derive_run(const char *dir, int64_t newest, struct attempt_exit *ended,
		       struct attempt_order *order, struct ledger_run *row)
{
	char *folder = path_join("%s/attempts/%lld", dir, (long long)newest);

	if (newest > 0) {
		struct attempt_claim claim;

		row->state = attempt_claim_read(folder, &claim, NULL) == 0 ? RUN_RUNNING
									   : RUN_SUBMITTING;
		if (attempt_order_read(folder, order, NULL) == 0 && order->order >= ORDER_STOP &&
		    !order->goes_on) {
			row->wanted = order->order;
			row->wanted_by = order->by;
			row->wanted_reason = order->text;
		}
	}
	if (newest > 0 && attempt_exit_read(folder, ended, NULL) == 0) {
		bool is_held = ended->switched == ORDER_HOLD;

		if (ended->cause == CAUSE_COMPLETED)
			row->state = RUN_COMPLETED;
		else if (ended->cause == CAUSE_KILLED && !is_held)
			row->state = RUN_KILLED;
		else if (ended->is_final)
			row->state = RUN_FAILED;
		row->cause = ended->cause;
		row->text = ended->text;
		if (run_state_is_final(row->state))
			row->ended_ms = ended->time_ms;
	}
	free(folder);
}

/* Owned. */
static char *own_name(void)
{
	struct account own;
	char *name = xstrdup(account_of(geteuid(), &own) ? own.name : "unknown");

	account_clear(&own);
	return name;
}

int rebuild_event(struct recovery *r, int64_t run_id, const char *kind, const char *actor,
		  const char *text, int64_t time_ms, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = time_ms, .kind = kind, .actor = actor, .text = text
	};

	return ledger_event_put(r->ledger, &e, err);
}

/* Reading the spools counted failures anew: where somebody wrote the count down, that is right. */
static int finish_run(struct recovery *r, const struct run *run, const struct ledger_run *row,
		      const json_t *record, struct err *err)
{
	int64_t failures = record ? row->failures : run->failures;

	if (ledger_run_set_failures(r->ledger, run->id, failures, row->backoff_until_ms, err) < 0)
		return -1;
	if (run_state_is_final(row->state))
		return rebuild_event(r, run->id, run_state_name(row->state), "lbd", row->text,
				     row->ended_ms, err);
	r->live++;
	return 0;
}

static int add_rows(struct recovery *r, struct ledger_run *row, const json_t *record,
		    const int64_t *attempts, size_t count, struct err *err)
{
	bool is_final = run_state_is_final(row->state);
	struct run *run;

	r->clock_ms = row->created_ms;
	if (ledger_run_insert(r->ledger, row, &row->id, err) < 0 ||
	    rebuild_event(r, row->id, "created", row->owner, "", row->created_ms, err) < 0 ||
	    engine_load_run(r->engine, row, true, err) < 0)
		return -1;
	run = engine_find_id(r->engine, row->id);
	for (size_t i = 0; i < count; i++)
		if (add_attempt(r, run, record, attempts[i], !is_final && i + 1 == count, err) < 0)
			return -1;
	if (r->engine->broken)
		return err_set(err, ERR_INTERNAL, "what its files say does not fit the ledger");
	return finish_run(r, run, row, record, err);
}

int rebuild_run(struct recovery *r, const struct found *found, struct err *err)
{
	char *dir = path_join("%s/%s", r->lbd->config.runs_folder, found->name), *self = own_name();
	json_t *record = record_load(dir);
	struct run_spec spec = { 0 };
	struct attempt_exit ended;
	struct attempt_order order;
	size_t count;
	int64_t *attempts = attempt_folders(dir, &count);
	bool has_spec = r->real.spec(r->real.self, dir, &spec, NULL) == 0;
	bool is_local = has_spec ? spec.scheduler == SPEC_SCHEDULER_LOCAL : !r->is_slurm;
	struct ledger_run row = {
		.name = found->name,
		.owner = self,
		.owner_uid = geteuid(),
		.state = RUN_CREATED,
		.text = "",
		.dir = dir,
		.wanted_by = "",
		.wanted_reason = "",
		.wanted_switch = "",
		.resume_from = "",
		.created_ms = found->created_ms,
		.scheduler = is_local || !r->is_slurm ? "local" : "slurm",
		.run_group = has_spec && spec.group ? spec.group : "",
		.step = -1,
		.target_step = -1,
		.loss = NAN,
		.tokens_per_s = NAN,
		.mfu = NAN,
	};
	int rc;

	if (record)
		record_run(record, &row);
	if (row.state == RUN_STATE_COUNT) {
		json_decref(record);
		record = NULL;
		row.state = RUN_CREATED;
	}
	if (!record)
		derive_run(dir, count ? attempts[count - 1] : 0, &ended, &order, &row);
	rc = add_rows(r, &row, record, attempts, count, err);
	if (rc == 0)
		rc = ledger_commit(r->ledger, err);
	if (rc < 0)
		err_wrap(err, "run %s", found->name);
	r->runs++;
	run_spec_clear(&spec);
	free(attempts);
	json_decref(record);
	free(self);
	free(dir);
	return rc;
}
