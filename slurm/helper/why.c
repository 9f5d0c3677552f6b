/* SPDX-License-Identifier: GPL-2.0-or-later */
/* why.c - why a job waits, or whether one would, asked of libslurm; slurm/pipe/inquiry.h makes the
 * answer of it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/helper/calls.h"
#include "slurm/helper/draft.h"
#include "slurm/pipe/absent.h"
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
		.array_id = slurm_id_of(job),
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
		if (slurm_id_of(job) == id && (!found || state_of(job) == SLURM_JOB_PENDING))
			found = job;
	}
	return found;
}

/* What both questions are answered from. */
struct asked {
	struct draft draft;
	struct told told;
	struct cluster cluster;
};

/* -1 with the answer set; asked_fini is due in any case. */
static int asked_init(struct asked *k, const json_t *request, struct answer *a)
{
	struct err err = { 0 };
	json_t *planned;
	int rc;

	memset(k, 0, sizeof(*k));
	if (slurm_load_jobs(0, &k->told.jobs, SHOW_ALL))
		return slurm_failed(a, -1, false, "listing the jobs");
	if (cluster_load(&k->cluster, a))
		return -1;
	planned = absent_left_out(request, &k->cluster, NULL);
	rc = draft_init(&k->draft, planned ? planned : request, &err);
	json_decref(planned);
	if (rc < 0)
		return answer_set(a, SCHEDULER_REFUSED, "%s", err.text);
	draft_release(&k->draft);
	take_jobs(&k->told);
	return 0;
}

static void asked_fini(struct asked *k)
{
	cluster_fini(&k->cluster);
	told_fini(&k->told);
	draft_fini(&k->draft);
}

void op_why(const json_t *request, struct answer *a)
{
	const slurm_job_info_t *job;
	struct asked k;

	if (slurm_ready(a))
		return;
	if (asked_init(&k, request, a) == 0) {
		if ((job = find(k.told.jobs, request)) != NULL) {
			take_reservations(&k.told);
			tell(&k.told, job, &k.cluster, &k.draft, request, a);
		} else {
			answer_set(a, SCHEDULER_GONE, "Slurm does not know the job any more");
		}
	}
	asked_fini(&k);
}

void op_room(const json_t *request, struct answer *a)
{
	struct asked k;

	if (slurm_ready(a))
		return;
	if (asked_init(&k, request, a) == 0) {
		struct inquiry q = {
			.a = a,
			.request = request,
			.cluster = &k.cluster,
			.jobs = k.told.queued,
			.job_count = k.told.queued_count,
			.plan = plan,
			.arg = &k.draft,
		};
		inquire_room(&q);
	}
	asked_fini(&k);
}
