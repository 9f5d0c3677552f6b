/* SPDX-License-Identifier: MIT */
/* orders.c - an order is written to the ledger and committed before anything else hears of it; the
 * engine then makes it true, and goes on doing so after a restart of lbd. */
#include "daemon/runs/orders.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "daemon/runs/selection.h"
#include "daemon/runs/switchboard.h"

int order_event(struct lbd *lbd, int64_t run_id, const char *kind, const char *actor,
		const char *text, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id,
		.time_ms = clock_wall_ms(),
		.kind = kind,
		.actor = actor,
		.text = text,
	};

	return ledger_event_put(lbd->ledger, &e, err);
}

int order_write(struct lbd *lbd, int64_t run_id, enum run_order order, const char *event,
		const char *actor, const char *reason, struct err *err)
{
	if (ledger_run_set_wanted(lbd->ledger, run_id, order, actor, reason, clock_wall_ms(), err) <
	    0)
		return -1;
	return order_event(lbd, run_id, event, actor, reason, err);
}

/* --- what each order is about ----------------------------------------------------------------- */

/* Kill and stop: what is weaker than the order that stands, or comes too late, changes nothing. */
static bool ends(const struct request *r, const struct chosen *run, enum run_order order,
		 struct err *err)
{
	(void)r;
	(void)err;
	return !run_state_is_final(run->row->state) && order > run->row->wanted;
}

static bool holds(const struct request *r, const struct chosen *run, enum run_order order,
		  struct err *err)
{
	enum run_state state = run->row->state;

	(void)r;
	if (run_state_is_final(state) || run->row->wanted > order) {
		err_set(err, ERR_LOCKED, "%s is %s: there is nothing left to hold", run->name,
			run_state_name(state));
		return false;
	}
	return run->row->wanted == ORDER_RUN;
}

/* Jobs run with the owner's rights, so to let one run again is the owner's; but who put the run on
 * hold may take that back. */
static bool may_release(const struct request *r, const struct ledger_run *run)
{
	return r->peer.role >= ROLE_SUBMITTER || strcmp(r->peer.user, run->wanted_by) == 0;
}

static bool releases(const struct request *r, const struct chosen *run, enum run_order order,
		     struct err *err)
{
	enum run_state state = run->row->state;
	const struct run *live = engine_live(r->lbd->engine, run->name);
	bool is_on_hold = run->row->wanted == ORDER_HOLD, is_held = live && engine_is_held(live);
	bool may_be_held = live && run->is_named && engine_is_released(live);

	(void)order;
	if (run_state_is_final(state) || run->row->wanted > ORDER_HOLD) {
		err_set(err, ERR_LOCKED,
			"%s is %s; a finished run is started again with: "
			"lbctl restart %s",
			run->name, run_state_name(state), run->name);
		return false;
	}
	if (!is_on_hold && !is_held && !(may_be_held && r->peer.role >= ROLE_SUBMITTER))
		return false;
	if (!is_on_hold && r->peer.role < ROLE_SUBMITTER) {
		err_set(err, ERR_REFUSED, "%s is held in Slurm: only its owner may release it",
			run->name);
		return false;
	}
	if (!may_release(r, run->row)) {
		err_set(err, ERR_REFUSED,
			"%s was put on hold by %s: only they and the owner "
			"may release it",
			run->name, run->row->wanted_by);
		return false;
	}
	/* a hold by a switch ends with the switch */
	return switchboard_allows(r->lbd->switchboard, run->name, run->row->run_group,
				  run->row->owner, SWITCH_HOLD, err) == 0;
}

struct order_kind {
	enum run_order order;
	const char *event;
	/* Does it change what is wanted of this run? False with err: it is refused. */
	bool (*applies)(const struct request *r, const struct chosen *run, enum run_order order,
			struct err *err);
};

static const struct order_kind *kind_of(const struct request *r)
{
	static const struct order_kind kill = { ORDER_KILL, "kill", ends };
	static const struct order_kind kill_now = { ORDER_KILL_NOW, "kill_now", ends };
	static const struct order_kind stop = { ORDER_STOP, "stop", ends };
	static const struct order_kind hold = { ORDER_HOLD, "hold", holds };
	static const struct order_kind release = { ORDER_RUN, "release", releases };

	switch (r->verb) {
	case VERB_KILL:
		return js_bool(r->args, "now", false) ? &kill_now : &kill;
	case VERB_STOP:
		return &stop;
	case VERB_HOLD:
		return &hold;
	default:
		return &release;
	}
}

/* --- one run ---------------------------------------------------------------------------------- */

static enum run_state next_state(enum run_state state, enum run_order order)
{
	if (order == ORDER_RUN)
		return state == RUN_HELD ? RUN_CREATED : state;
	return order == ORDER_HOLD && state == RUN_HELD ? RUN_HELD : RUN_STOPPING;
}

static json_t *write_order(struct request *r, const struct chosen *run, bool *acts, struct err *err)
{
	const struct order_kind *kind = kind_of(r);
	enum run_state state = run->row->state;
	int64_t id = run->row->id;
	bool is_news = run->row->wanted != kind->order; /* else it is for the scheduler alone */
	bool applies = kind->applies(r, run, kind->order, err);

	if (err->code != ERR_NONE || (!applies && !run->is_named))
		return NULL;
	if (applies && !run->dry_run) {
		if (is_news && order_write(r->lbd, id, kind->order, kind->event, r->peer.user,
					   run->reason, err) < 0)
			return NULL;
		state = next_state(state, kind->order);
		*acts = true;
	}
	return json_pack("{s:s, s:s}", "run", run->name, "state", run_state_name(state));
}

static int tell_engine(struct request *r, const json_t *answer, const char *reason, struct err *err)
{
	(void)err;
	engine_order(r->lbd->engine, js_str(answer, "run", ""), kind_of(r)->order, r->peer.user,
		     reason);
	return 0;
}

json_t *order_give(struct request *r, struct err *err)
{
	static const struct selection_verb verb = { write_order, tell_engine };

	return selection_each(r, &verb, err);
}
