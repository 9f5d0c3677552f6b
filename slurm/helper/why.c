/* SPDX-License-Identifier: GPL-2.0-or-later */
/* why.c - why a job waits, or whether one would, asked of libslurm; slurm/pipe/inquiry.h makes the answer of it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/helper/calls.h"
#include "slurm/helper/draft.h"
#include "slurm/pipe/inquiry.h"
#include "slurm/reasons.h"

/* What libslurm tells, and what is made of it. */
struct told {
	job_info_msg_t *jobs;
	reserve_info_msg_t *reservations; /* NULL: not known */
	struct queued *queued;
	struct reserved *reserved;
	size_t queued_count, reserved_count;
};

static void told_fini(struct told *t)
{
	slurm_free_reservation_info_msg(t->reservations);
	slurm_free_job_info_msg(t->jobs);
	free(t->queued);
	free(t->reserved);
}

static uint32_t state_of(const slurm_job_info_t *job)
{
	return job->job_state & JOB_STATE_BASE;
}

static uint32_t id_of(const slurm_job_info_t *job)
{
	return job->array_job_id ? job->array_job_id : job->job_id;
}

static bool is_in_line(const slurm_job_info_t *job, int64_t now)
{
	return state_of(job) == SLURM_JOB_PENDING && job->priority > 0 &&
	       (int64_t)job->eligible_time <= now && job->state_reason != WAIT_DEPENDENCY &&
	       job->state_reason != WAIT_DEP_INVALID;
}

static struct queued queued_of(const slurm_job_info_t *job, int64_t now)
{
	return (struct queued){
		.job_id = job->job_id,
		.array_id = id_of(job),
		.priority = job->priority,
		.start = (int64_t)job->start_time,
		.partition = job->partition,
		.sched_nodes = job->sched_nodes,
		.is_in_line = is_in_line(job, now),
	};
}

static void take_jobs(struct told *t)
{
	int64_t now = time(NULL);

	t->queued = xcalloc((size_t)t->jobs->record_count + 1, sizeof(*t->queued));
	for (uint32_t i = 0; i < t->jobs->record_count; i++) {
		const slurm_job_info_t *job = &t->jobs->job_array[i];

		if (state_of(job) == SLURM_JOB_PENDING)
			t->queued[t->queued_count++] = queued_of(job, now);
	}
}

static void take_reservations(struct told *t)
{
	if (slurm_load_reservations(0, &t->reservations))
		return;
	t->reserved = xcalloc((size_t)t->reservations->record_count + 1, sizeof(*t->reserved));
	for (uint32_t i = 0; i < t->reservations->record_count; i++) {
		const reserve_info_t *r = &t->reservations->reservation_array[i];

		t->reserved[t->reserved_count++] = (struct reserved){
			.name = r->name,
			.nodes = r->node_list,
			.start = (int64_t)r->start_time,
			.end = (int64_t)r->end_time,
		};
	}
}

static int64_t plan(const struct inquiry *q, const char *partition, bool is_forgiven)
{
	struct draft *draft = q->arg;
	char *asked = draft->desc.partition, *excluded = draft->desc.exc_nodes;
	char *other = partition ? xstrdup(partition) : NULL;
	int64_t start;
	int code;

	draft->desc.partition = other ? other : asked;
	draft->desc.exc_nodes = is_forgiven ? NULL : excluded;
	start = slurm_will_run(&draft->desc, &code);
	draft->desc.partition = asked;
	draft->desc.exc_nodes = excluded;
	free(other);
	return start;
}

static void tell(const struct told *t, const slurm_job_info_t *job, const struct cluster *cluster,
		 struct draft *draft, const json_t *request, struct answer *a)
{
	struct inquiry q = {
		.a = a,
		.request = request,
		.cluster = cluster,
		.jobs = t->queued,
		.job_count = t->queued_count,
		.reservations = t->reserved,
		.reservation_count = t->reserved_count,
		.job = queued_of(job, time(NULL)),
		.is_pending = state_of(job) == SLURM_JOB_PENDING,
		.reason = slurm_reason_name(job->state_reason),
		.account = job->account,
		.qos = job->qos,
		.reservation = job->resv_name,
		.nodes = job->num_nodes,
		.time_minutes = job->time_limit == INFINITE ? -1 : (int64_t)job->time_limit,
		.uid = job->user_id,
		.plan = plan,
		.arg = draft,
	};

	if (job->state_desc && job->state_desc[0])
		json_object_set_new(a->body, "detail", js_bytes(job->state_desc));
	inquire(&q);
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
	struct told told = { 0 };
	struct cluster cluster = { 0 };
	const slurm_job_info_t *job;

	if (slurm_ready(a))
		return;
	if (draft_init(&draft, request, &err) < 0)
		answer_set(a, SCHEDULER_REFUSED, "%s", err.text);
	else if (slurm_load_jobs(0, &told.jobs, SHOW_ALL))
		slurm_failed(a, -1, false, "listing the jobs");
	else if ((job = find(told.jobs, request)) == NULL)
		answer_set(a, SCHEDULER_GONE, "Slurm does not know the job any more");
	else if (cluster_load(&cluster, a) == 0) {
		draft_release(&draft);
		take_jobs(&told);
		take_reservations(&told);
		tell(&told, job, &cluster, &draft, request, a);
	}
	cluster_fini(&cluster);
	told_fini(&told);
	draft_fini(&draft);
}

void op_room(const json_t *request, struct answer *a)
{
	struct draft draft;
	struct err err = { 0 };
	struct told told = { 0 };
	struct cluster cluster = { 0 };
	struct inquiry q = {
		.a = a, .request = request, .cluster = &cluster, .plan = plan, .arg = &draft
	};

	if (slurm_ready(a))
		return;
	if (draft_init(&draft, request, &err) < 0)
		answer_set(a, SCHEDULER_REFUSED, "%s", err.text);
	else if (slurm_load_jobs(0, &told.jobs, SHOW_ALL))
		slurm_failed(a, -1, false, "listing the jobs");
	else if (cluster_load(&cluster, a) == 0) {
		draft_release(&draft);
		take_jobs(&told);
		q.jobs = told.queued;
		q.job_count = told.queued_count;
		inquire_room(&q);
	}
	cluster_fini(&cluster);
	told_fini(&told);
	draft_fini(&draft);
}
