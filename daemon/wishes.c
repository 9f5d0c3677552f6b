/* SPDX-License-Identifier: MIT */
/* A wish is a file in the attempt's folder (common/wish.h); lbrun says in a note what came of it. */
#include "daemon/wishes.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/failpoint.h"
#include "common/json.h"
#include "common/paths.h"
#include "common/switches.h"
#include "common/wish.h"
#include "daemon/selection.h"

static int tell(struct lbd *lbd, int64_t run_id, enum wish wish, const char *by,
		const char *reason, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = clock_wall_ms(), .kind = wish_name(wish),
		.actor = by, .text = reason[0] ? reason : "asked for",
	};

	if (failpoint(FP_WISH_LEFT, err) < 0)
		return -1;
	return ledger_event_put(lbd->ledger, &e, err);
}

static json_t *leave(struct request *r, const struct chosen *run, enum wish wish, struct err *err)
{
	struct ledger_attempt attempt = { 0 };
	enum run_state state = run->row->state;
	int64_t id = run->row->id;
	json_t *data = NULL;
	char *dir, *folder;
	int rc;

	if (state != RUN_RUNNING) {
		err_set(err, ERR_LOCKED, "%s is %s: there is no trainer to ask", run->name,
			run_state_name(state));
		return NULL;
	}
	dir = path_join("%s", run->row->dir);	/* the row is the ledger's until the next call */
	rc = ledger_attempt_newest(r->lbd->ledger, id, &attempt, err);
	folder = path_join("%s/attempts/%lld", dir, (long long)attempt.number);
	if (rc == 0 && !run->dry_run && (wish_write(folder, wish, r->peer.user, err) < 0 ||
					 tell(r->lbd, id, wish, r->peer.user, run->reason, err) < 0))
		rc = -1;
	if (rc == 0)
		data = json_pack("{s:s, s:I, s:s, s:s}", "run", run->name, "attempt",
				 (json_int_t)attempt.number, "folder", folder, "state",
				 run_state_name(state));
	free(folder);
	free(dir);
	return data;
}

static json_t *leave_save(struct request *r, const struct chosen *run, struct err *err)
{
	return leave(r, run, WISH_SAVE, err);
}

static json_t *leave_stacks(struct request *r, const struct chosen *run, struct err *err)
{
	return leave(r, run, WISH_STACKS, err);
}

json_t *wish_stacks(struct request *r, struct err *err)
{
	return selection_each(r, leave_stacks, err);
}

json_t *wish_save(struct request *r, struct err *err)
{
	return selection_each(r, leave_save, err);
}

/* --- a switch file ---------------------------------------------------------------------------- */

struct saving {
	struct lbd *lbd;
	const struct switch_file *s;
	struct err *err;
	int rc;
};

static int save_if_meant(const struct ledger_run *run, void *arg)
{
	struct saving *saving = arg;
	const struct switch_file *s = saving->s;
	struct ledger_attempt attempt = { 0 };
	char *dir, *folder, text[SWITCH_FILE_BYTES + SWITCH_TEXT_BYTES + 16];
	int64_t id = run->id;

	if (run->state != RUN_RUNNING ||
	    !selector_matches(&s->selector, run->name, run->run_group, run->owner))
		return 0;
	dir = path_join("%s", run->dir);
	snprintf(text, sizeof(text), "switch %s%s%s", s->file, s->text[0] ? ": " : "", s->text);
	if (ledger_attempt_newest(saving->lbd->ledger, id, &attempt, saving->err) == 0) {
		folder = path_join("%s/attempts/%lld", dir, (long long)attempt.number);
		saving->rc |= wish_write(folder, WISH_SAVE, s->by, saving->err);
		saving->rc |= tell(saving->lbd, id, WISH_SAVE, s->by, text, saving->err);
		free(folder);
	}
	free(dir);
	return 0;
}

int wish_save_by_switch(struct lbd *lbd, const struct switch_file *s, struct err *err)
{
	struct saving saving = { .lbd = lbd, .s = s, .err = err };

	if (ledger_run_each(lbd->ledger, true, save_if_meant, &saving, err) < 0 ||
	    failpoint(FP_SWITCH_WRITTEN, err) < 0 || ledger_commit(lbd->ledger, err) < 0)
		return -1;
	failpoint(FP_SWITCH_COMMITTED, NULL);
	return saving.rc;
}
