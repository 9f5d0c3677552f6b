/* SPDX-License-Identifier: MIT */
/* why.c - what lbd itself waits for it knows; of a job in a queue the scheduler is asked. */
#include "daemon/runs/why.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "daemon/job/job.h"
#include "slurm/reasons.h"

enum { NOW_SECONDS = 90 }; /* what starts within this starts now */

/* The answer as it grows; freed with its answer. */
struct why {
	struct request *request;
	json_t *o;
};

static void set_text(json_t *o, char *text)
{
	json_object_set_new(o, "text", json_string(text));
	free(text);
}

void why_add_text(json_t *object, const char *waits_for)
{
	char text[SLURM_REASON_TEXT_BYTES];
	size_t len = strcspn(waits_for, ":,");
	bool is_word = len > 0 && len == strspn(waits_for, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							   "abcdefghijklmnopqrstuvwxyz");

	if (is_word)
		slurm_reason_text(waits_for, text);
	js_set_str(object, "waits_text", is_word ? text : NULL);
}

/* --- what the scheduler says ------------------------------------------------------------------ */

/* "now", or "at 2026-11-22 14:00:00" */
static char *when(int64_t start)
{
	char text[CLOCK_TEXT_MAX];

	if (start <= clock_wall_ms() / 1000 + NOW_SECONDS)
		return xstrdup("now");
	return xasprintf("at %s", clock_text(start * 1000, text));
}

/* A change of the job, as words and as what --set takes; "set" stays NULL where it is no change of
 * it. */
static char *change_text(const json_t *change, const json_t *o, char **set)
{
	int64_t minutes = js_int(change, "time_minutes", 0), waiting = js_int(change, "waiting", 0);
	static const struct {
		const char *field, *key, *unit;
	} amounts[] = {
		{ "gpus", "slurm.gpus_per_node", "GPUs" },
		{ "cpus", "slurm.cpus_per_task", "CPUs" },
		{ "mem_mb", "slurm.mem", "MB" },
	};
	const char *partition = js_str(change, "partition", NULL);

	if (minutes > 0) {
		*set = xasprintf("slurm.time=%lldm", (long long)minutes);
		return xasprintf(
			"with a time limit of %lld minutes, which ends before what is ahead of it",
			(long long)minutes);
	}
	if (partition) {
		*set = xasprintf("slurm.partition=%s", partition);
		return waiting ? xasprintf("in partition %s, where %lld jobs wait", partition,
					   (long long)waiting)
			       : xasprintf("in partition %s", partition);
	}
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		int64_t n = js_int(change, amounts[i].field, 0);

		if (n <= 0)
			continue;
		*set = xasprintf("%s=%lld%s", amounts[i].key, (long long)n,
				 strcmp(amounts[i].field, "mem_mb") == 0 ? "M" : "");
		return xasprintf("with %lld %s", (long long)n, amounts[i].unit);
	}
	return json_array_size(json_object_get(o, "avoided")) == 0
		       ? NULL
		       : xstrdup("on the nodes that lbd avoids: lbctl nodes, lbctl nodes forgive "
				 "NODE");
}

static void add_sooner(json_t *o, const json_t *body)
{
	json_t *list = json_array(), *change;
	size_t i;

	json_object_set_new(o, "sooner", list);
	json_array_foreach(json_object_get(body, "sooner"), i, change) {
		char *set = NULL, *at = when(js_int(change, "start", 0));
		char *what = change_text(change, o, &set), *text;
		json_t *row = what ? json_deep_copy(change) : NULL;

		if (row) {
			text = xasprintf("%s %s", at, what);
			js_set_str(row, "set", set);
			set_text(row, text);
			json_array_append_new(list, row);
		}
		free(at);
		free(set);
		free(what);
	}
}

/* What Slurm adds to its reason says more than the word: "ReqNodeNotAvail, UnavailableNodes:n2". */
static void add_reason(json_t *o, const json_t *body)
{
	const char *told = js_str(body, "reason", ""), *detail = js_str(body, "detail", NULL);
	char sentence[SLURM_REASON_TEXT_BYTES];
	char *reason = xstrndup(told, strcspn(told, ":,"));

	slurm_reason_text(reason, sentence);
	js_set_str(o, "reason", reason[0] ? reason : NULL);
	if (detail && strcmp(detail, reason) != 0)
		set_text(o, xasprintf("%s (%s)", sentence, detail));
	else
		set_text(o, xstrdup(sentence));
	free(reason);
}

static void copy(json_t *o, const char *key, const json_t *body, const char *from)
{
	json_t *value = json_object_get(body, from);

	if (value)
		json_object_set(o, key, value);
}

static void tell(json_t *o, const json_t *body)
{
	static const char *const same[] = { "partition",    "account", "qos",         "priority",
					    "time_minutes", "limits",  "reservations" };

	if (js_bool(body, "pending", true))
		add_reason(o, body);
	else
		set_text(o, xstrdup("its job does not wait any more"));
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		copy(o, same[i], body, same[i]);
	copy(o, "jobs_ahead", body, "ahead");
	copy(o, "start_estimate", body, "start");
	add_sooner(o, body);
}

static void on_told(void *arg, const struct scheduler_reply *reply)
{
	struct why *w = arg;

	if (reply->result == SCHEDULER_OK && reply->body)
		tell(w->o, reply->body);
	else
		js_set_str(w->o, "scheduler_text", reply->text);
	request_answer(w->request, w->o);
	free(w);
}

/* --- what lbd knows --------------------------------------------------------------------------- */

/* Before the scheduler is asked: its word of the last poll. */
static void add_seen(json_t *o, const char *waits_for)
{
	char text[SLURM_REASON_TEXT_BYTES];
	char *word = xstrndup(waits_for, strcspn(waits_for, ":,"));

	slurm_reason_text(waits_for, text);
	js_set_str(o, "reason", word[0] ? word : NULL);
	if (strchr(waits_for, ':'))
		set_text(o, xasprintf("%s (%s)", text, waits_for));
	else
		set_text(o, xstrdup(text));
	free(word);
}

static void add_avoided(json_t *o, const struct run *run)
{
	json_object_set_new(o, "avoided", hosts_expand(run->excluded ? run->excluded : ""));
}

static char *held_text(const struct run *run)
{
	const char *why = run->wanted_reason ? run->wanted_reason : "";

	return xasprintf("%s holds it%s%s; %s",
			 run->wanted_by && run->wanted_by[0] ? run->wanted_by : "somebody",
			 why[0] ? ": " : "", why,
			 run->by_switch ? "it goes on when the switch is taken away"
					: "lbctl release lets it go on");
}

static char *slurm_text(struct lbd *lbd, const char *otherwise)
{
	struct engine_health health;

	engine_health(lbd->engine, &health);
	return health.slurm_down_since_ms
		       ? xasprintf("Slurm does not answer: %s", health.slurm_text)
		       : xstrdup(otherwise);
}

/* Nodes of it are going away. */
static char *leaving_text(const struct run *run)
{
	const struct attempt *a = &run->attempt;
	const char *saved = a->save.state == CALL_OK ? "; a checkpoint was asked for" : "";

	if (a->goes_on)
		return xasprintf("it ends, to go on elsewhere: %s", a->leaving.text);
	if (!run->policy.leaves)
		return xasprintf("it runs; %s%s; it stays (restart.leave)", a->leaving.text, saved);
	if (a->leaving.begins_ms > 0)
		return xasprintf("it runs; %s%s; it ends before that, to go on elsewhere",
				 a->leaving.text, saved);
	if (a->room.state == CALL_REFUSED)
		return xasprintf("it runs; %s%s; it does not go on elsewhere yet: %s",
				 a->leaving.text, saved, a->room_text);
	return xasprintf(
		"it runs; %s%s; it goes on elsewhere behind one, when other nodes are free",
		a->leaving.text, saved);
}

static char *running_text(const struct run *run)
{
	const struct attempt *a = &run->attempt;

	if (a->leaving.text[0])
		return leaving_text(run);
	if (a->room.state == CALL_NONE || a->room.state == CALL_OPEN || a->room.state == CALL_OK)
		return xstrdup("it does not wait: it runs");
	return xasprintf("it runs on fewer nodes than it asks for, and does not grow back yet: %s",
			 a->room_text);
}

/* Everything but a job that waits in a queue. */
static char *own_text(struct lbd *lbd, const struct run *run, const char *waits_for)
{
	char until[CLOCK_TEXT_MAX];

	switch (run->state) {
	case RUN_CREATED:
		return waits_for[0] ? xstrdup(waits_for)
				    : slurm_text(lbd, "lbd is about to submit it");
	case RUN_SUBMITTING:
		return slurm_text(lbd, run->attempt.call_text[0] ? run->attempt.call_text
								 : "lbd is submitting its job");
	case RUN_HELD:
		return held_text(run);
	case RUN_BACKOFF:
		return xasprintf("its last attempt failed; lbd submits the next one at %s",
				 clock_text(run->backoff_until_ms, until));
	case RUN_STOPPING:
		return xstrdup(run->wanted == ORDER_HOLD ? "it is being put on hold"
							 : "it is being ended");
	default:
		return running_text(run);
	}
}

/* The scheduler that knows of the job; NULL: it need not be asked. */
static const struct scheduler *asked(struct lbd *lbd, const struct run *run, const char *waits_for)
{
	struct engine_health health;
	bool is_slurm = run->scheduler && run->scheduler == lbd->slurm;

	engine_health(lbd->engine, &health);
	if (run->state != RUN_QUEUED || !run->has_attempt || run->scheduler == NULL ||
	    run->scheduler->ops->why == NULL || (is_slurm && health.slurm_down_since_ms) ||
	    strcmp(waits_for, SLURM_REASON_CONFIGURING) == 0) /* it has what others wait for */
		return NULL;
	return run->scheduler;
}

static json_t *begin(const struct ledger_run *row)
{
	json_t *o = json_object();

	js_set_str(o, "run", row->name);
	js_set_str(o, "state", run_state_name(row->state));
	js_set_str(o, "scheduler", row->scheduler);
	json_object_set_new(o, "reason", json_null());
	json_object_set_new(o, "jobs_ahead", json_null());
	json_object_set_new(o, "start_estimate", json_null());
	json_object_set_new(o, "limits", json_array());
	json_object_set_new(o, "avoided", json_array());
	json_object_set_new(o, "sooner", json_array());
	return o;
}

static void answer_live(struct request *request, const struct run *run, json_t *o)
{
	struct lbd *lbd = request->lbd;
	const char *waits_for = engine_waits_for(lbd->engine, run->name);
	struct err err = { 0 };
	struct why *w;

	add_avoided(o, run);
	if (run->has_attempt && run->attempt.job.job_id)
		js_set_int(o, "job_id", run->attempt.job.job_id);
	if (run->state == RUN_QUEUED || (run->state == RUN_RUNNING && waits_for[0]))
		add_seen(o, waits_for);
	else
		set_text(o, own_text(lbd, run, waits_for));
	if (asked(lbd, run, waits_for)) {
		w = xcalloc(1, sizeof(*w));
		*w = (struct why){ request, o };
		if (job_why(&lbd->config, run, on_told, w, &err) == 0)
			return;
		js_set_str(o, "scheduler_text", err.text);
		free(w);
	} else if (run->state == RUN_QUEUED) {
		char *text = slurm_text(lbd, "");

		js_set_str(o, "scheduler_text", text[0] ? text : NULL);
		free(text);
	}
	request_answer(request, o);
}

void why_run(struct request *request)
{
	struct ledger_run row = { 0 };
	const struct run *run;
	struct err err = { 0 };
	json_t *o;

	if (request_run(request, &row, &err) < 0) {
		request_refuse(request, &err);
		return;
	}
	o = begin(&row);
	run = engine_live(request->lbd->engine, row.name);
	if (run) {
		answer_live(request, run, o);
		return;
	}
	set_text(o, xasprintf("it does not wait: it is over (%s)%s%s", run_state_name(row.state),
			      row.text[0] ? ": " : "", row.text));
	request_answer(request, o);
}
