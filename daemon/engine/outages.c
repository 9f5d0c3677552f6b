/* SPDX-License-Identifier: MIT */
/* outages.c - asks the schedulers which nodes are going away, and tells the attempts that run on
 * them (struct leaving). What becomes of those, decide/moving.h says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/run/hosts.h"
#include "daemon/engine/state.h"

enum {
	OUTAGES_FAIL = 3, /* so many answers without news, and the old news are void */
	SAME_BEGIN_MS = 1000,
};

/* node → array of its rows of the answer */
struct outages {
	json_t *draining, *reserved;
};

static void add_nodes(json_t *rows, json_t *row)
{
	json_t *names = hosts_expand(js_str(row, "nodes", "")), *name;
	size_t i;

	json_array_foreach(names, i, name) {
		json_t *list = json_object_get(rows, json_string_value(name));

		if (list == NULL)
			json_object_set_new(rows, json_string_value(name), list = json_array());
		json_array_append(list, row);
	}
	json_decref(names);
}

static struct outages sort_outages(const json_t *body)
{
	struct outages o = { .draining = json_object(), .reserved = json_object() };
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(body, "outages"), i, row) {
		add_nodes(js_int(row, "begins", 0) > 0 ? o.reserved : o.draining, row);
	}
	return o;
}

/* The row says why, for people. */
static void set_text(struct leaving *l, const json_t *row)
{
	char *text = js_bytes_take(json_object_get(row, "text"));

	snprintf(l->text, sizeof(l->text), "%s", text ? text : "a node is going away");
	free(text);
}

/* Of what drains the first node counts for people, else what begins first. 0 is "never" to
 * others. */
static void add_begin(struct leaving *l, const json_t *row, int64_t begins_ms)
{
	begins_ms = begins_ms > 0 ? begins_ms : 1;
	if (l->begins_ms > 0 && l->begins_ms <= begins_ms)
		return;
	l->begins_ms = begins_ms;
	if (l->draining == 0)
		set_text(l, row);
}

/* What its job asked for: read when a reservation is met, for that takes reading its files. */
struct bounds {
	bool is_read;
	char *reservations; /* comma-separated; owned; NULL: none */
	int64_t limit_ms;   /* 0: not known */
};

static void read_bounds(const struct engine *e, const struct run *run, struct bounds *b)
{
	if (b->is_read)
		return;
	b->is_read = true;
	if (e->world->bounds)
		e->world->bounds(e->world->self, run, &b->reservations, &b->limit_ms);
}

static bool is_invited(const struct bounds *b, const json_t *row)
{
	char *name = js_bytes_take(json_object_get(row, "name"));
	size_t len = name ? strlen(name) : 0;
	bool is_named = false;

	for (const char *at = b->reservations; at && len > 0 && !is_named;) {
		size_t n = strcspn(at, ",");

		is_named = n == len && strncmp(at, name, n) == 0;
		at += n;
		at = *at ? at + 1 : NULL;
	}
	free(name);
	return is_named;
}

/* What has begun before the job was let in: it was sent there, however that was said. What begins
 * once the job's time is over does not touch it. */
static bool may_stay(const struct engine *e, const struct run *run, const struct bounds *b,
		     const json_t *row)
{
	const struct attempt *a = &run->attempt;
	int64_t begins_ms = 1000 * js_int(row, "begins", 0);
	int64_t start_ms = a->last_seen.start_time > 0 ? 1000 * a->last_seen.start_time
						       : a->started_ms;
	int64_t end_ms = a->last_seen.limit_time > 0       ? 1000 * a->last_seen.limit_time
			 : start_ms > 0 && b->limit_ms > 0 ? start_ms + b->limit_ms
							   : 0;
	bool has_end = engine_wall(e) < end_ms;

	return begins_ms <= start_ms || (has_end && begins_ms >= end_ms) || is_invited(b, row);
}

static struct leaving leaving_of(struct engine *e, const struct run *run, const struct outages *o)
{
	json_t *names = hosts_expand(run->attempt.nodes), *name;
	struct leaving l = { .drains_ms = engine_now(e) };
	int64_t offset_ms = engine_now(e) - engine_wall(e);
	struct bounds bounds = { 0 };
	size_t i, k;

	json_array_foreach(names, i, name) {
		const json_t *drains = json_object_get(o->draining, json_string_value(name));
		const json_t *reserved = json_object_get(o->reserved, json_string_value(name));
		const json_t *row;

		if (drains && l.draining++ == 0)
			set_text(&l, json_array_get(drains, 0));
		json_array_foreach(reserved, k, row) {
			read_bounds(e, run, &bounds);
			if (!may_stay(e, run, &bounds, row))
				add_begin(&l, row, offset_ms + 1000 * js_int(row, "begins", 0));
		}
	}
	free(bounds.reservations);
	json_decref(names);
	return l;
}

/* Of an array other tasks may be on other nodes: it stays. */
static bool may_have_to_leave(const struct run *run, const struct poller *p)
{
	return run->scheduler == p->scheduler && run->state == RUN_RUNNING && run->has_attempt &&
	       run->attempt.state == ATTEMPT_RUNNING && !run_is_array(run);
}

static void take_outages(struct engine *e, const struct poller *p, const struct outages *o)
{
	for (struct run *run = e->runs; run; run = run->next) {
		struct leaving *known = &run->attempt.leaving, l;

		if (!may_have_to_leave(run, p))
			continue;
		l = leaving_of(e, run, o);
		if (known->draining > 0 && l.draining <= known->draining)
			l.drains_ms = known->drains_ms;
		if (strcmp(known->text, l.text) != 0 || l.draining != known->draining ||
		    llabs(known->begins_ms - l.begins_ms) > SAME_BEGIN_MS)
			run->dirty = true;
		*known = l;
	}
}

/* What is known holds while the scheduler says nothing at all; not where it answers other
 * questions. */
static bool are_outages_void(struct poller *p, const struct scheduler_reply *reply)
{
	if (reply->result == SCHEDULER_OK) {
		if (p->outages_failures > 0)
			log_info("%s tells again which nodes are going away",
				 p->scheduler->ops->name);
		p->outages_failures = 0;
		return true;
	}
	if (p->outages_failures++ == 0)
		log_warn("%s does not tell which nodes are going away: %s", p->scheduler->ops->name,
			 reply->text);
	return p->outages_failures >= OUTAGES_FAIL && p->down_since_ms == 0;
}

static void on_outages(void *arg, const struct scheduler_reply *reply)
{
	struct poller *p = arg;
	struct engine *e = p->engine;
	struct outages o;

	p->is_asking_outages = false;
	if (!are_outages_void(p, reply))
		return;
	o = sort_outages(reply->result == SCHEDULER_OK ? reply->body : NULL);
	take_outages(e, p, &o);
	json_decref(o.draining);
	json_decref(o.reserved);
	if (e->news)
		e->news(e->news_arg);
}

/* Only while somebody might have to leave. */
int64_t engine_outages_due(struct engine *e, struct poller *p)
{
	const struct run *run = e->runs;
	int64_t now_ms = engine_now(e);

	if (p->scheduler == NULL || p->scheduler->ops->outages == NULL || p->is_asking_outages)
		return INT64_MAX;
	while (run && !may_have_to_leave(run, p))
		run = run->next;
	if (run == NULL)
		return INT64_MAX;
	if (now_ms < p->outages_ms)
		return p->outages_ms;
	p->outages_ms = now_ms + e->times.idle_ms;
	p->is_asking_outages = true;
	engine_count_call(e);
	p->scheduler->ops->outages(p->scheduler, on_outages, p);
	return INT64_MAX;
}
