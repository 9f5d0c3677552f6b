/* SPDX-License-Identifier: MIT */
/* requests.c - a request is a file in the attempt's folder (common/run/request.h), left once the
 * ledger knows who asked for what; lbrun says in a note what came of it. */
#include "daemon/runs/requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/run/array_tasks.h"
#include "common/run/request.h"
#include "common/team/switches.h"
#include "daemon/runs/selection.h"

static int tell(struct lbd *lbd, int64_t run_id, enum trainer_request request, const char *by,
		const char *reason, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id,
		.time_ms = clock_wall_ms(),
		.kind = trainer_request_name(request),
		.actor = by,
		.text = reason[0] ? reason : "asked for",
	};

	return ledger_event_put(lbd->ledger, &e, err);
}

static int leave_to_task(const char *folder, int64_t task, enum trainer_request request,
			 const char *by, struct err *err)
{
	char *of_task = path_join("%s/task-%lld", folder, (long long)task);
	int rc = folder_holds(of_task, "exit.json")
			 ? 0
			 : trainer_request_write(of_task, request, by, err);

	free(of_task);
	return rc;
}

/* Of an array each task that runs has a trainer, which is to hear it. */
static int leave(const char *folder, enum trainer_request request, const char *by, struct err *err)
{
	int rc = failpoint(FP_REQUEST_LEFT, err);
	size_t count;
	int64_t *tasks = array_task_folders(folder, &count);

	if (rc == 0 && count == 0)
		rc = trainer_request_write(folder, request, by, err);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = leave_to_task(folder, tasks[i], request, by, err);
	free(tasks);
	return rc;
}

/* --- a command -------------------------------------------------------------------------------- */

static enum trainer_request kind_of(const struct request *r)
{
	return r->verb == VERB_SAVE ? TRAINER_REQUEST_SAVE : TRAINER_REQUEST_STACKS;
}

static json_t *write_request(struct request *r, const struct chosen *run, bool *acts,
			     struct err *err)
{
	struct ledger_attempt attempt = { 0 };
	enum run_state state = run->row->state;
	int64_t id = run->row->id;
	json_t *data = NULL;
	char *dir, *folder;

	if (state != RUN_RUNNING) {
		err_set(err, ERR_LOCKED, "%s is %s: there is no trainer to ask", run->name,
			run_state_phrase(state));
		return NULL;
	}
	dir = path_join("%s", run->row->dir); /* the row is the ledger's until the next call */
	if (ledger_attempt_newest(r->lbd->ledger, id, &attempt, err) == 0 &&
	    (run->dry_run || tell(r->lbd, id, kind_of(r), r->peer.user, run->reason, err) == 0)) {
		folder = path_join("%s/attempts/%lld", dir, (long long)attempt.number);
		data = json_pack("{s:s, s:I, s:s, s:s}", "run", run->name, "attempt",
				 (json_int_t)attempt.number, "folder", folder, "state",
				 run_state_name(state));
		*acts = !run->dry_run;
		free(folder);
	}
	free(dir);
	return data;
}

static int leave_request(struct request *r, const json_t *answer, const char *reason,
			 struct err *err)
{
	(void)reason;
	return leave(js_str(answer, "folder", ""), kind_of(r), r->peer.user, err);
}

json_t *requests_ask(struct request *r, struct err *err)
{
	static const struct selection_verb verb = { write_request, leave_request };

	return selection_each(r, &verb, err);
}

/* --- a switch file ---------------------------------------------------------------------------- */

struct saving {
	struct lbd *lbd;
	const struct switch_file *s;
	json_t *folders;
	struct err *err;
};

static int tell_if_meant(const struct ledger_run *run, void *arg)
{
	struct saving *saving = arg;
	const struct switch_file *s = saving->s;
	struct ledger_attempt attempt = { 0 };
	char *dir, *folder, text[SWITCH_FILE_BYTES + SWITCH_TEXT_BYTES + 16];
	int64_t id = run->id;
	int rc;

	if (run->state != RUN_RUNNING ||
	    !selector_matches(&s->selector, run->name, run->run_group, run->owner))
		return 0;
	dir = path_join("%s", run->dir);
	snprintf(text, sizeof(text), "switch %s%s%s", s->file, s->text[0] ? ": " : "", s->text);
	rc = ledger_attempt_newest(saving->lbd->ledger, id, &attempt, saving->err);
	folder = path_join("%s/attempts/%lld", dir, (long long)attempt.number);
	if (rc == 0)
		rc = tell(saving->lbd, id, TRAINER_REQUEST_SAVE, s->by, text, saving->err);
	if (rc == 0)
		json_array_append_new(saving->folders, json_string(folder));
	free(folder);
	free(dir);
	return rc;
}

static int commit(struct ledger *ledger, struct err *err)
{
	if (failpoint(FP_SWITCH_WRITTEN, err) < 0) {
		ledger_rollback(ledger);
		return -1;
	}
	if (ledger_commit(ledger, err) < 0)
		return -1;
	failpoint(FP_SWITCH_COMMITTED, NULL);
	return 0;
}

int requests_save_by_switch(struct lbd *lbd, const struct switch_file *s, struct err *err)
{
	struct saving saving = { .lbd = lbd, .s = s, .folders = json_array(), .err = err };
	const json_t *folder;
	size_t i;
	int rc = ledger_run_each(lbd->ledger, true, tell_if_meant, &saving, err);

	if (rc < 0)
		ledger_rollback(lbd->ledger);
	else
		rc = commit(lbd->ledger, err);
	json_array_foreach(saving.folders, i, folder) {
		struct err why = { 0 };

		if (rc == 0 &&
		    leave(json_string_value(folder), TRAINER_REQUEST_SAVE, s->by, &why) < 0)
			log_warn("%s: %s", s->file, why.text);
	}
	json_decref(saving.folders);
	return rc;
}
