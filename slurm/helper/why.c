/* SPDX-License-Identifier: GPL-2.0-or-later */
/* why.c - why a job waits: Slurm's reason, who is ahead, what is in the way, and what would start
 * sooner.
 *
 * What would start sooner: a shorter time, if nodes are free now until something that is ahead
 * begins there (a planned job, a reservation); another partition, for which Slurm is asked to plan
 * the job once more. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/helper/calls.h"
#include "slurm/helper/draft.h"
#include "slurm/helper/limits.h"
#include "slurm/pipe/limit_figures.h"
#include "slurm/reasons.h"

enum {
	MAX_PLANS = 16,     /* that Slurm is asked for */
	PLANS_MS = 4000,    /* and no new one after so long */
	WORTH_SECONDS = 60, /* what is no sooner than that is not proposed */
	MAX_HOLES = 6,
};

struct inquiry {
	struct answer *a;
	struct draft *draft;
	struct cluster cluster;
	job_info_msg_t *jobs;
	const slurm_job_info_t *job; /* ours */
	int64_t now, reference;      /* what counts as sooner is well before `reference` */
	int64_t begun_ms;
	int plans;
	uint32_t ahead;
	uint32_t holes[MAX_HOLES]; /* minutes from now until something begins that is ahead of us */
	int hole_count;
	reserve_info_msg_t *reservations; /* NULL: not known */
	json_t *limits, *sooner;          /* owned by the answer */
};

static uint32_t state_of(const slurm_job_info_t *job)
{
	return job->job_state & JOB_STATE_BASE;
}

static uint32_t id_of(const slurm_job_info_t *job)
{
	return job->array_job_id ? job->array_job_id : job->job_id;
}

/* Waits for nothing but its turn. */
static bool is_in_line(const slurm_job_info_t *job, int64_t now)
{
	return state_of(job) == SLURM_JOB_PENDING && job->priority > 0 &&
	       (int64_t)job->eligible_time <= now && job->state_reason != WAIT_DEPENDENCY &&
	       job->state_reason != WAIT_DEP_INVALID;
}

/* Have two lists of partitions one in common? */
static bool share_partition(const char *a, const char *b)
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

static bool is_ahead(const slurm_job_info_t *other, const slurm_job_info_t *job, int64_t now)
{
	if (id_of(other) == id_of(job) || !is_in_line(other, now) ||
	    !share_partition(other->partition, job->partition))
		return false;
	return other->priority != job->priority ? other->priority > job->priority
						: other->job_id < job->job_id;
}

static void add_hole(struct inquiry *q, int64_t begins)
{
	int64_t minutes = (begins - q->now) / 60 - 1;

	if (minutes > 0 && minutes < q->job->time_limit && q->hole_count < MAX_HOLES)
		q->holes[q->hole_count++] = (uint32_t)minutes;
}

static void look_ahead(struct inquiry *q)
{
	for (uint32_t i = 0; i < q->jobs->record_count; i++) {
		const slurm_job_info_t *other = &q->jobs->job_array[i];

		if (!is_ahead(other, q->job, q->now))
			continue;
		q->ahead++;
		add_hole(q, (int64_t)other->start_time);
	}
}

/* When the job would start if it were so; 0: never, or Slurm has been asked enough. */
static int64_t plan(struct inquiry *q)
{
	int code;

	if (q->plans++ >= MAX_PLANS || clock_mono_ms() - q->begun_ms > PLANS_MS)
		return 0;
	return slurm_will_run(&q->draft->desc, &code);
}

static bool is_sooner(const struct inquiry *q, int64_t start)
{
	return start > 0 && start + WORTH_SECONDS <= q->reference;
}

static json_t *propose(struct inquiry *q, int64_t start)
{
	json_t *o = json_object();

	js_set_int(o, "start", start < q->now ? q->now : start);
	json_array_append_new(q->sooner, o);
	return o;
}

static int longer_first(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* The nodes on which something is due to begin before `minutes` are over. */
static json_t *nodes_due(const struct inquiry *q, uint32_t minutes)
{
	int64_t end = q->now + 60 * (int64_t)minutes;
	json_t *names = json_array();

	for (uint32_t i = 0; i < q->jobs->record_count; i++) {
		const slurm_job_info_t *job = &q->jobs->job_array[i];
		bool is_due = (int64_t)job->start_time > q->now && (int64_t)job->start_time < end;
		json_t *planned = is_due && job->sched_nodes && is_ahead(job, q->job, q->now)
					  ? hosts_expand(job->sched_nodes)
					  : NULL;

		json_array_extend(names, planned);
		json_decref(planned);
	}
	for (uint32_t i = 0; q->reservations && i < q->reservations->record_count; i++) {
		const reserve_info_t *r = &q->reservations->reservation_array[i];
		json_t *reserved = (int64_t)r->start_time < end && (int64_t)r->end_time > q->now
					   ? hosts_expand(r->node_list ? r->node_list : "")
					   : NULL;

		json_array_extend(names, reserved);
		json_decref(reserved);
	}
	return names;
}

struct fit {
	const struct inquiry *q;
	json_t *due; /* owned */
	uint32_t free;
};

static void see_fit(const partition_info_t *p, void *arg)
{
	struct fit *f = arg;
	uint32_t free = p->state_up == PARTITION_UP
				? limits_free_nodes(&f->q->cluster, &f->q->draft->desc, p, f->due)
				: 0;

	f->free = free > f->free ? free : f->free;
}

static bool fits_now(const struct inquiry *q, uint32_t minutes)
{
	struct fit fit = { .q = q, .due = nodes_due(q, minutes) };

	cluster_each(&q->cluster, q->job->partition, see_fit, &fit);
	json_decref(fit.due);
	return fit.free >= q->job->num_nodes;
}

/* The longest time that ends before what is ahead begins, on nodes that are free now. Slurm's own
 * plans do not tell: they take nodes that are planned for others as used. */
static void try_times(struct inquiry *q)
{
	qsort(q->holes, (size_t)q->hole_count, sizeof(q->holes[0]), longer_first);
	for (int i = 0; i < q->hole_count && is_sooner(q, q->now); i++) {
		if (!fits_now(q, q->holes[i]))
			continue;
		js_set_int(propose(q, q->now), "time_minutes", q->holes[i]);
		return;
	}
}

static uint32_t waiting_in(const struct inquiry *q, const char *partition)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < q->jobs->record_count; i++)
		count += is_in_line(&q->jobs->job_array[i], q->now) &&
			 q->jobs->job_array[i].job_id != q->job->job_id &&
			 share_partition(q->jobs->job_array[i].partition, partition);
	return count;
}

static void try_partitions(struct inquiry *q)
{
	char *asked = q->draft->desc.partition;

	for (uint32_t i = 0; i < q->cluster.partitions->record_count; i++) {
		const partition_info_t *p = &q->cluster.partitions->partition_array[i];
		json_t *limits;
		int64_t start;

		if (p->state_up != PARTITION_UP || share_partition(p->name, q->job->partition))
			continue;
		limits = limits_exceeded(&q->cluster, &q->draft->desc, p);
		q->draft->desc.partition = p->name;
		start = json_array_size(limits) == 0 ? plan(q) : 0;
		json_decref(limits);
		if (is_sooner(q, start)) {
			json_t *o = propose(q, start);

			js_set_str(o, "partition", p->name);
			js_set_int(o, "waiting", waiting_in(q, p->name));
		}
	}
	q->draft->desc.partition = asked;
}

/* Nodes that lbd keeps the job away from may be what it waits for. */
static void try_excluded(struct inquiry *q)
{
	char *asked = q->draft->desc.exc_nodes;
	int64_t start;

	q->draft->desc.exc_nodes = NULL;
	start = plan(q);
	if (is_sooner(q, start))
		js_set_bool(propose(q, start), "forgive", true);
	q->draft->desc.exc_nodes = asked;
}

static void look_at_reservations(struct inquiry *q)
{
	reserve_info_msg_t *list;
	json_t *shown = json_array();

	json_object_set_new(q->a->body, "reservations", shown);
	if (slurm_load_reservations(0, &q->reservations))
		return;
	list = q->reservations;
	for (uint32_t i = 0; i < list->record_count; i++) {
		const reserve_info_t *r = &list->reservation_array[i];
		int64_t ends = q->now + 60 * (int64_t)q->job->time_limit;
		json_t *o;

		if ((int64_t)r->end_time <= q->now || (int64_t)r->start_time >= ends)
			continue;
		if (q->job->resv_name && strcmp(q->job->resv_name, r->name) == 0)
			continue;
		o = json_object();
		js_set_str(o, "name", r->name);
		js_set_int(o, "start", (int64_t)r->start_time);
		js_set_int(o, "end", (int64_t)r->end_time);
		js_set_str(o, "nodes", r->node_list);
		json_array_append_new(shown, o);
		add_hole(q, (int64_t)r->start_time);
	}
}

static void see_partition(const partition_info_t *p, void *arg)
{
	struct inquiry *q = arg;
	json_t *exceeded = limits_exceeded(&q->cluster, &q->draft->desc, p);
	uint32_t count, all;
	char *absent = limits_absent_nodes(&q->cluster, p, &count, &all);

	json_array_extend(q->limits, exceeded);
	json_decref(exceeded);
	if (p->state_up != PARTITION_UP)
		json_array_append_new(
			q->limits, json_pack("{s:s, s:s+}", "limit", "State", "text",
					     "nothing starts at present in partition ", p->name));
	if (absent) {
		char *text = xasprintf("%u of %u nodes of partition %s are away: %s", count, all,
				       p->name, absent);
		json_t *o = json_object();

		js_set_str(o, "limit", "Away");
		json_object_set_new(o, "text", js_bytes(text));
		json_array_append_new(q->limits, o);
		free(text);
	}
	free(absent);
}

static void tell_job(struct inquiry *q)
{
	json_t *body = q->a->body;
	const slurm_job_info_t *job = q->job;

	js_set_bool(body, "pending", state_of(job) == SLURM_JOB_PENDING);
	js_set_str(body, "reason", slurm_reason_name(job->state_reason));
	if (job->state_desc && job->state_desc[0])
		json_object_set_new(body, "detail", js_bytes(job->state_desc));
	js_set_str(body, "partition", job->partition);
	js_set_str(body, "account", job->account);
	js_set_str(body, "qos", job->qos);
	js_set_int(body, "priority", job->priority);
	js_set_int(body, "nodes", job->num_nodes);
	js_set_int(body, "time_minutes",
		   job->time_limit == INFINITE ? -1 : (int64_t)job->time_limit);
	js_set_int(body, "ahead", q->ahead);
	if ((int64_t)job->start_time > q->now)
		js_set_int(body, "start", (int64_t)job->start_time);
}

static void add_figures(struct inquiry *q)
{
	struct limit_of of = {
		.reason = slurm_reason_name(q->job->state_reason),
		.account = q->job->account,
		.qos = q->job->qos,
		.uid = q->job->user_id,
	};
	json_t *figures = limit_figures(&of);

	if (figures)
		json_array_insert_new(q->limits, 0, figures);
}

/* Without a plan of Slurm's own: when it could start if it were first. */
static void choose_reference(struct inquiry *q)
{
	int64_t earliest = plan(q);

	if (earliest > 0)
		js_set_int(q->a->body, "earliest", earliest);
	if ((int64_t)q->job->start_time > q->now)
		q->reference = (int64_t)q->job->start_time;
	else
		q->reference = q->ahead || earliest == 0 ? INT64_MAX : earliest;
}

static void inquire(struct inquiry *q, const json_t *request)
{
	look_ahead(q);
	tell_job(q);
	look_at_reservations(q);
	cluster_each(&q->cluster, q->draft->desc.partition, see_partition, q);
	if (state_of(q->job) == SLURM_JOB_PENDING)
		add_figures(q);
	if (state_of(q->job) != SLURM_JOB_PENDING || q->job->priority == 0)
		return;
	choose_reference(q);
	try_times(q);
	try_partitions(q);
	if (js_str(request, "avoided", "")[0])
		try_excluded(q);
}

static const slurm_job_info_t *find(const job_info_msg_t *jobs, const json_t *request)
{
	int64_t id = js_int(request, "job_id", 0);
	const slurm_job_info_t *found = NULL;

	for (uint32_t i = 0; i < jobs->record_count; i++) {
		const slurm_job_info_t *job = &jobs->job_array[i];

		/* of an array the part that waits */
		if (id_of(job) == id && (!found || state_of(job) == SLURM_JOB_PENDING))
			found = job;
	}
	return found;
}

void op_why(const json_t *request, struct answer *a)
{
	struct draft draft;
	struct err err = { 0 };
	struct inquiry q = {
		.a = a, .draft = &draft, .begun_ms = clock_mono_ms(), .now = time(NULL)
	};

	if (slurm_ready(a))
		return;
	json_object_set_new(a->body, "limits", q.limits = json_array());
	json_object_set_new(a->body, "sooner", q.sooner = json_array());
	if (draft_init(&draft, request, &err) < 0)
		answer_set(a, SCHEDULER_REFUSED, "%s", err.text);
	else if (slurm_load_jobs(0, &q.jobs, SHOW_ALL))
		slurm_failed(a, -1, false, "listing the jobs");
	else if ((q.job = find(q.jobs, request)) == NULL)
		answer_set(a, SCHEDULER_GONE, "Slurm does not know the job any more");
	else if (cluster_load(&q.cluster, a) == 0) {
		draft_release(&draft);
		inquire(&q, request);
	}
	cluster_fini(&q.cluster);
	slurm_free_reservation_info_msg(q.reservations);
	slurm_free_job_info_msg(q.jobs);
	draft_fini(&draft);
}
