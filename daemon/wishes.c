/* SPDX-License-Identifier: MIT */
/* A wish is a file in the attempt's folder (common/wish.h); lbrun says in a note what came of it. */
#include "daemon/wishes.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/paths.h"
#include "common/wish.h"
#include "daemon/selection.h"

static int tell(struct request *r, int64_t run_id, enum wish wish, const char *reason,
		struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = clock_wall_ms(), .kind = wish_name(wish),
		.actor = r->peer.user, .text = reason[0] ? reason : "asked for",
	};

	return ledger_event_put(r->lbd->ledger, &e, err);
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
					 tell(r, id, wish, run->reason, err) < 0))
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
