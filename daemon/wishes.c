/* SPDX-License-Identifier: MIT */
/* A wish is a file in the attempt's folder (common/wish.h); lbrun says in a note what came of it. */
#include "daemon/wishes.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/names.h"
#include "common/paths.h"
#include "common/wish.h"
#include "daemon/control.h"

static int find_running(struct request *r, struct ledger_run *run, struct err *err)
{
	const char *name = js_str(r->args, "run", NULL);

	if (name == NULL)
		return err_set(err, ERR_USAGE, "which run?");
	if (name_check(name, err) < 0 || ledger_run_find(r->lbd->ledger, name, run, err) < 0)
		return -1;
	if (run->state != RUN_RUNNING)
		return err_set(err, ERR_LOCKED, "%s is %s: there is no trainer to ask", name,
			       run_state_name(run->state));
	return 0;
}

static int tell(struct request *r, int64_t run_id, enum wish wish, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = clock_wall_ms(), .kind = wish_name(wish),
		.actor = r->peer.user, .text = "asked for",
	};

	return ledger_event_put(r->lbd->ledger, &e, err) < 0 ||
	       ledger_commit(r->lbd->ledger, err) < 0 ? -1 : 0;
}

static json_t *leave(struct request *r, enum wish wish, struct err *err)
{
	struct ledger_attempt attempt = { 0 };
	struct ledger_run run = { 0 };
	json_t *data = NULL;
	char *dir, *folder;
	int64_t id;
	int rc;

	if (find_running(r, &run, err) < 0)
		return NULL;
	id = run.id;
	dir = path_join("%s", run.dir);		/* `run` is the ledger's until the next call */
	if (ledger_attempt_newest(r->lbd->ledger, id, &attempt, err) < 0) {
		free(dir);
		return NULL;
	}
	folder = path_join("%s/attempts/%lld", dir, (long long)attempt.number);
	rc = wish_write(folder, wish, r->peer.user, err);
	if (rc == 0 && tell(r, id, wish, err) == 0)
		data = json_pack("{s:s, s:I, s:s}", "run", js_str(r->args, "run", ""), "attempt",
				 (json_int_t)attempt.number, "folder", folder);
	free(folder);
	free(dir);
	return data;
}

json_t *wish_stacks(struct request *r, struct err *err)
{
	return leave(r, WISH_STACKS, err);
}

json_t *wish_save(struct request *r, struct err *err)
{
	return leave(r, WISH_SAVE, err);
}
