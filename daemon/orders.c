/* SPDX-License-Identifier: MIT */
/* An order is written to the ledger and committed before its answer; the engine then makes it true,
 * and goes on doing so after a restart of lbd. */
#include "daemon/orders.h"

#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/names.h"
#include "daemon/handlers.h"

void order_event(struct lbd *lbd, int64_t run_id, const char *kind, const char *actor,
		 const char *text)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = clock_wall_ms(), .kind = kind, .actor = actor,
		.text = text,
	};

	ledger_event_put(lbd->ledger, &e, NULL);
}

static int kill_one(struct request *r, const char *name, enum run_order order, const char *reason,
		    json_t *answers, struct err *err)
{
	struct lbd *lbd = r->lbd;
	struct ledger_run run = { 0 };
	enum run_state state;
	int64_t id;

	if (name_check(name, err) < 0 || ledger_run_find(lbd->ledger, name, &run, err) < 0)
		return -1;
	state = run.state;
	id = run.id;
	if (!run_state_is_final(state) && order > run.wanted) {
		if (ledger_run_set_wanted(lbd->ledger, id, order, r->peer.user, reason,
					  clock_wall_ms(), err) < 0)
			return -1;
		order_event(lbd, id, order == ORDER_KILL_NOW ? "kill_now" : "kill", r->peer.user,
			    reason);
		engine_order(lbd->engine, name, order, r->peer.user, reason);
		state = RUN_STOPPING;
	}
	json_array_append_new(answers, json_pack("{s:s, s:s}", "run", name, "state",
						 run_state_name(state)));
	return 0;
}

json_t *order_kill(struct request *r, struct err *err)
{
	enum run_order order = js_bool(r->args, "now", false) ? ORDER_KILL_NOW : ORDER_KILL;
	json_t *runs = json_object_get(r->args, "runs"), *answers = json_array(), *item;
	size_t i;
	int rc = json_array_size(runs) > 0 ? 0 : err_set(err, ERR_USAGE, "which runs?");

	json_array_foreach(runs, i, item) {
		const char *name = json_string_value(item);

		if (rc == 0)
			rc = kill_one(r, name ? name : "", order, js_str(r->args, "reason", ""),
				      answers, err);
	}
	/* those before a bad name were told already: their order stands */
	if (ledger_commit(r->lbd->ledger, rc == 0 ? err : NULL) < 0)
		rc = -1;
	if (rc == 0)
		return answers;
	json_decref(answers);
	return NULL;
}

/* --- hold and release -------------------------------------------------------------------------- */

static json_t *state_of(const char *name, enum run_state state)
{
	return json_pack("{s:s, s:s}", "run", name, "state", run_state_name(state));
}

static int order_run(struct request *r, int64_t id, enum run_order order, const char *kind,
		     const char *reason, struct err *err)
{
	struct ledger *ledger = r->lbd->ledger;

	if (ledger_run_set_wanted(ledger, id, order, r->peer.user, reason, clock_wall_ms(), err) < 0)
		return -1;
	order_event(r->lbd, id, kind, r->peer.user, reason);
	if (ledger_commit(ledger, err) < 0)
		return -1;
	engine_order(r->lbd->engine, js_str(r->args, "run", ""), order, r->peer.user, reason);
	return 0;
}

json_t *order_hold(struct request *r, struct err *err)
{
	const char *name = js_str(r->args, "run", "");
	struct ledger_run run = { 0 };
	enum run_state state;

	if (request_run(r, &run, err) < 0)
		return NULL;
	state = run.state;
	if (run_state_is_final(state) || run.wanted > ORDER_HOLD) {
		err_set(err, ERR_LOCKED, "%s is %s: there is nothing left to hold", name,
			run_state_name(state));
		return NULL;
	}
	if (run.wanted == ORDER_RUN) {
		if (order_run(r, run.id, ORDER_HOLD, "hold", js_str(r->args, "reason", ""), err) < 0)
			return NULL;
		if (state != RUN_HELD)
			state = RUN_STOPPING;
	}
	return state_of(name, state);
}

/* Jobs run with the owner's rights, so to let one run again is the owner's; but who put the run on
 * hold may take that back. */
static bool may_release(const struct request *r, const struct ledger_run *run)
{
	return r->peer.role >= ROLE_OWNER || strcmp(r->peer.user, run->wanted_by) == 0;
}

json_t *order_release(struct request *r, struct err *err)
{
	const char *name = js_str(r->args, "run", "");
	struct ledger_run run = { 0 };
	enum run_state state;

	if (request_run(r, &run, err) < 0)
		return NULL;
	state = run.state;
	if (run_state_is_final(state) || run.wanted > ORDER_HOLD) {
		err_set(err, ERR_LOCKED, "%s is %s; a finished run is started again with: "
			"lbctl restart %s", name, run_state_name(state), name);
		return NULL;
	}
	if (run.wanted == ORDER_HOLD) {
		if (!may_release(r, &run)) {
			err_set(err, ERR_REFUSED, "%s was put on hold by %s: only they and the owner "
				"may release it", name, run.wanted_by);
			return NULL;
		}
		if (order_run(r, run.id, ORDER_RUN, "release", js_str(r->args, "reason", ""), err) < 0)
			return NULL;
	}
	return state_of(name, state == RUN_HELD ? RUN_CREATED : state);
}
