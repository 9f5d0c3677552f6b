/* SPDX-License-Identifier: MIT */
/* inquiry.c - what is in a job's way, what would start sooner, and whether one would start at once.
 *
 * What would start sooner: a shorter time, if nodes are free now until something that is ahead
 * begins there (a planned job, a reservation); another partition, for which Slurm is asked to plan
 * the job once more. */
#include "slurm/pipe/inquiry.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/compare.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/hosts.h"
#include "slurm/batch/batch.h"
#include "slurm/pipe/limit_figures.h"
#include "slurm/reasons.h"

enum {
	MAX_PLANS = 16,     /* that Slurm is asked for */
	PLANS_MS = 4000,    /* and no new one after so long */
	WORTH_SECONDS = 60, /* what is no sooner than that is not proposed */
	MAX_HOLES = 6,
	MAX_NAMES_BYTES = 1 << 20,      /* of partitions */
	NEVER_S = 10 * 365 * 24 * 3600, /* behind jobs without a limit Slurm plans for a far year */
};

struct state {
	const struct inquiry *q;
	const json_t *fields;   /* of the job */
	int64_t now, reference; /* what counts as sooner is well before `reference` */
	int64_t begun_ms;
	int plans;
	uint32_t ahead;
	int64_t holes[MAX_HOLES]; /* minutes from now until something begins that is ahead of us */
	int hole_count;
	json_t *limits, *sooner; /* owned by the answer */
};

/* Have two lists of names, of partitions mostly, one in common? */
static bool share_name(const char *a, const char *b)
{
	for (const char *at = a ? a : ""; *at;) {
		size_t len = strcspn(at, ",");

		for (const char *other = b ? b : ""; *other;) {
			size_t there = strcspn(other, ",");

			if (there == len && memcmp(at, other, len) == 0)
				return true;
			other += there + (other[there] == ',');
		}
		at += len + (at[len] == ',');
	}
	return false;
}

static bool is_ahead(const struct queued *other, const struct queued *job)
{
	if (other->array_id == job->array_id || !other->is_in_line ||
	    !share_name(other->partition, job->partition))
		return false;
	return other->priority != job->priority ? other->priority > job->priority
						: other->job_id < job->job_id;
}

static void add_hole(struct state *s, int64_t begins)
{
	int64_t minutes = (begins - s->now) / 60 - 1, most = s->q->time_minutes;

	if (minutes > 0 && (most < 0 || minutes < most) && s->hole_count < MAX_HOLES)
		s->holes[s->hole_count++] = minutes;
}

static void look_ahead(struct state *s)
{
	for (size_t i = 0; i < s->q->job_count; i++) {
		const struct queued *other = &s->q->jobs[i];

		if (!is_ahead(other, &s->q->job))
			continue;
		s->ahead++;
		add_hole(s, other->start);
	}
}

/* When the job would start if it were so; 0: never, or Slurm has been asked enough. */
static int64_t plan(struct state *s, const char *partition, bool is_forgiven)
{
	int64_t start;

	if (s->plans++ >= MAX_PLANS || clock_mono_ms() - s->begun_ms > PLANS_MS)
		return 0;
	start = s->q->plan(s->q, partition, is_forgiven);
	return start < s->now + NEVER_S ? start : 0;
}

static bool is_sooner(const struct state *s, int64_t start)
{
	return start > 0 && start + WORTH_SECONDS <= s->reference;
}

static json_t *propose(struct state *s, int64_t start)
{
	json_t *o = json_object();

	js_set_int(o, "start", start < s->now ? s->now : start);
	json_array_append_new(s->sooner, o);
	return o;
}

static void add_nodes(json_t *names, const char *nodes)
{
	json_t *more = nodes ? hosts_expand(nodes) : NULL;

	json_array_extend(names, more);
	json_decref(more);
}

/* The nodes on which something is due to begin before `minutes` are over. */
static json_t *nodes_due(const struct state *s, int64_t minutes)
{
	int64_t end = s->now + 60 * minutes;
	json_t *names = json_array();

	for (size_t i = 0; i < s->q->job_count; i++) {
		const struct queued *job = &s->q->jobs[i];

		if (job->start > s->now && job->start < end && is_ahead(job, &s->q->job))
			add_nodes(names, job->sched_nodes);
	}
	for (size_t i = 0; i < s->q->reservation_count; i++) {
		const struct reserved *r = &s->q->reservations[i];

		if (r->start < end && r->end > s->now)
			add_nodes(names, r->nodes);
	}
	return names;
}

struct fit {
	const struct state *s;
	json_t *due; /* owned */
	unsigned free;
};

static void see_fit(const struct cluster_partition *p, void *arg)
{
	struct fit *f = arg;
	unsigned free_nodes = p->is_up ? cluster_free_nodes(f->s->q->cluster, f->s->fields, p,
							    f->due)
				       : 0;

	f->free = free_nodes > f->free ? free_nodes : f->free;
}

static bool fits_now(const struct state *s, int64_t minutes)
{
	struct fit fit = { .s = s, .due = nodes_due(s, minutes) };

	cluster_each(s->q->cluster, s->q->job.partition, see_fit, &fit);
	json_decref(fit.due);
	return fit.free >= s->q->nodes;
}

/* The longest time that ends before what is ahead begins, on nodes that are free now. Slurm's own
 * plans do not tell: they take nodes that are planned for others as used. */
static void try_times(struct state *s)
{
	qsort(s->holes, (size_t)s->hole_count, sizeof(s->holes[0]), compare_int64_down);
	for (int i = 0; i < s->hole_count && is_sooner(s, s->now); i++) {
		if (!fits_now(s, s->holes[i]))
			continue;
		js_set_int(propose(s, s->now), "time_minutes", s->holes[i]);
		return;
	}
}

/* Jobs in line in any of them, each once. */
static unsigned waiting_in(const struct state *s, const char *partitions)
{
	unsigned count = 0;

	for (size_t i = 0; i < s->q->job_count; i++)
		count += s->q->jobs[i].is_in_line && s->q->jobs[i].job_id != s->q->job.job_id &&
			 share_name(s->q->jobs[i].partition, partitions);
	return count;
}

static bool is_let(const char *allowed, const char *denied, const char *name)
{
	return !name ||
	       (allowed && allowed[0] ? share_name(allowed, name) : !share_name(denied, name));
}

/* Slurm plans a job for partitions that its account or QOS may not use, and takes it there, too: it
 * would wait for ever. */
static bool lets_in(const struct cluster_partition *p, const struct inquiry *q)
{
	return is_let(p->allow_accounts, p->deny_accounts, q->account) &&
	       is_let(p->allow_qos, p->deny_qos, q->qos);
}

static void try_partitions(struct state *s)
{
	for (size_t i = 0; i < s->q->cluster->partition_count; i++) {
		const struct cluster_partition *p = &s->q->cluster->partitions[i];
		json_t *limits;
		int64_t start;

		if (!p->is_up || share_name(p->name, s->q->job.partition) || !lets_in(p, s->q))
			continue;
		limits = cluster_exceeded(s->q->cluster, s->fields, p);
		start = json_array_size(limits) == 0 ? plan(s, p->name, false) : 0;
		json_decref(limits);
		if (is_sooner(s, start)) {
			json_t *o = propose(s, start);

			js_set_str(o, "partition", p->name);
			js_set_int(o, "waiting", waiting_in(s, p->name));
		}
	}
}

/* Nodes that lbd keeps the job away from may be what it waits for. */
static void try_excluded(struct state *s)
{
	int64_t start = plan(s, NULL, true);

	if (is_sooner(s, start))
		js_set_bool(propose(s, start), "forgive", true);
}

struct hold {
	json_t *names; /* of nodes, as keys; owned */
	bool is_whole; /* there are no more than these */
	bool is_seen, is_near;
};

static void see_held(const struct cluster_partition *p, void *arg)
{
	struct hold *h = arg;
	json_t *own = hosts_expand(p->nodes ? p->nodes : ""), *name;
	size_t i;

	h->is_seen = true;
	h->is_near |= !h->is_whole || json_array_size(own) >= HOSTS_MAX;
	json_array_foreach(own, i, name) {
		h->is_near |= json_object_get(h->names, json_string_value(name)) != NULL;
	}
	json_decref(own);
}

/* Does it hold nodes that the job might have, those of a cloud that are powered down, too, which
 * only their partitions tell? One of licenses alone holds none. */
static bool is_near(const struct state *s, const struct reserved *r)
{
	json_t *all = hosts_expand(r->nodes ? r->nodes : ""), *name;
	struct hold hold = { .names = json_object(), .is_whole = json_array_size(all) < HOSTS_MAX };
	size_t i;

	json_array_foreach(all, i, name) {
		json_object_set_new(hold.names, json_string_value(name), json_true());
	}
	json_decref(all);
	cluster_each(s->q->cluster, s->q->job.partition, see_held, &hold);
	json_decref(hold.names);
	return r->nodes && (hold.is_near || !hold.is_seen);
}

static void look_at_reservations(struct state *s)
{
	json_t *shown = json_array();

	json_object_set_new(s->q->a->body, "reservations", shown);
	for (size_t i = 0; i < s->q->reservation_count; i++) {
		const struct reserved *r = &s->q->reservations[i];
		int64_t ends = s->q->time_minutes < 0 ? INT64_MAX
						      : s->now + 60 * s->q->time_minutes;
		json_t *o;

		if (r->end <= s->now || r->start >= ends || !is_near(s, r))
			continue;
		if (s->q->reservation && r->name && strcmp(s->q->reservation, r->name) == 0)
			continue;
		o = json_object();
		js_set_str(o, "name", r->name);
		js_set_int(o, "start", r->start);
		js_set_int(o, "end", r->end);
		js_set_str(o, "nodes", r->nodes);
		json_array_append_new(shown, o);
		add_hole(s, r->start);
	}
}

static void see_partition(const struct cluster_partition *p, void *arg)
{
	struct state *s = arg;
	json_t *exceeded = cluster_exceeded(s->q->cluster, s->fields, p);
	unsigned count, all;
	char *absent = cluster_absent_nodes(s->q->cluster, p, &count, &all);

	json_array_extend(s->limits, exceeded);
	json_decref(exceeded);
	if (!p->is_up)
		json_array_append_new(
			s->limits, json_pack("{s:s, s:s+}", "limit", "State", "text",
					     "nothing starts at present in partition ", p->name));
	if (absent) {
		char *text = xasprintf("%u of %u nodes of partition %s are away: %s", count, all,
				       p->name, absent);
		json_t *o = json_object();

		js_set_str(o, "limit", "Away");
		json_object_set_new(o, "text", js_bytes(text));
		json_array_append_new(s->limits, o);
		free(text);
	}
	free(absent);
}

static void tell_job(const struct state *s)
{
	const struct inquiry *q = s->q;
	json_t *body = q->a->body;

	js_set_bool(body, "pending", q->is_pending);
	js_set_str(body, "reason", q->reason);
	js_set_str(body, "partition", q->job.partition);
	js_set_str(body, "account", q->account);
	js_set_str(body, "qos", q->qos);
	js_set_int(body, "priority", q->job.priority);
	js_set_int(body, "nodes", q->nodes);
	js_set_int(body, "time_minutes", q->time_minutes);
	js_set_int(body, "ahead", s->ahead);
	if (q->job.start > s->now)
		js_set_int(body, "start", q->job.start);
}

/* True: its own account or QOS is what it waits for. Slurm's plans know nothing of that. */
static bool add_figures(const struct state *s)
{
	json_t *totals = batch_totals(s->fields);
	int64_t least = js_int(s->fields, "time_min", 0); /* with which Slurm may begin it */
	struct limit_of of = {
		.reason = s->q->reason,
		.account = s->q->account,
		.qos = s->q->qos,
		.uid = s->q->uid,
		.totals = totals,
		.minutes = least > 0 ? least : s->q->time_minutes,
	};
	json_t *figures = limit_figures(&of);

	if (figures)
		json_array_insert_new(s->limits, 0, figures);
	json_decref(totals);
	return figures != NULL;
}

/* Without a plan of Slurm's own: when it could start if it were first. */
static void choose_reference(struct state *s)
{
	int64_t earliest = plan(s, NULL, false);

	if (earliest > 0)
		js_set_int(s->q->a->body, "earliest", earliest);
	if (s->q->job.start > s->now)
		s->reference = s->q->job.start;
	else
		s->reference = s->ahead || earliest == 0 ? INT64_MAX : earliest;
}

void inquire(const struct inquiry *q)
{
	struct state s = {
		.q = q,
		.fields = json_object_get(q->request, "fields"),
		.now = time(NULL),
		.begun_ms = clock_mono_ms(),
		.limits = json_array(),
		.sooner = json_array(),
	};

	json_object_set_new(q->a->body, "limits", s.limits);
	json_object_set_new(q->a->body, "sooner", s.sooner);
	look_ahead(&s);
	tell_job(&s);
	look_at_reservations(&s);
	cluster_each(q->cluster, js_str(s.fields, "partition", NULL), see_partition, &s);
	if (!q->is_pending)
		return;
	if (add_figures(&s) || q->job.priority == 0 || slurm_reason_is_everywhere(q->reason))
		return;
	choose_reference(&s);
	try_times(&s);
	try_partitions(&s);
	if (js_str(q->request, "avoided", "")[0])
		try_excluded(&s);
}

static void add_name(const struct cluster_partition *p, void *arg)
{
	struct buf *names = arg;

	buf_addf(names, "%s%s", names->len ? "," : "", p->name);
}

static unsigned count_line(const struct state *s)
{
	struct buf names;

	buf_init(&names, MAX_NAMES_BYTES);
	buf_addf(&names, "%s", "");
	cluster_each(s->q->cluster, js_str(s->fields, "partition", NULL), add_name, &names);
	char *partitions = buf_take(&names);
	unsigned count = waiting_in(s, partitions);
	free(partitions);
	return count;
}

/* Slurm's plan takes nobody's place in line into account. */
void inquire_room(const struct inquiry *q)
{
	struct state s = {
		.q = q,
		.fields = json_object_get(q->request, "fields"),
		.now = time(NULL),
		.begun_ms = clock_mono_ms(),
	};
	unsigned ahead = count_line(&s);

	if (ahead) {
		answer_set(q->a, SCHEDULER_REFUSED, "jobs wait in line: %u", ahead);
		return;
	}
	int64_t start = plan(&s, NULL, false);
	if (start == 0)
		answer_set(q->a, SCHEDULER_REFUSED,
			   "Slurm names no time at which such nodes would be free");
	else if (start > s.now + WORTH_SECONDS)
		answer_set(q->a, SCHEDULER_REFUSED, "no such nodes are free");
}
