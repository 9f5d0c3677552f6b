/* SPDX-License-Identifier: MIT */
/* why.c - why a job waits, or whether one would, asked of squeue, scontrol and sbatch --test-only;
 * slurm/pipe/inquiry.h makes the answer of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/commands/look.h"
#include "slurm/pipe/record.h"
#include "slurm/job_result.h"
#include "slurm/pipe/command.h"
#include "slurm/pipe/absent.h"
#include "slurm/pipe/inquiry.h"
#include "slurm/pipe/operations.h"
#include "slurm/pipe/sbatch.h"
#include "slurm/pipe/words.h"
#include "slurm/reasons.h"

/* squeue's columns; the reason, which may be any text, is last. */
enum column {
	ID,
	ARRAY,
	PRIORITY,
	NODES,
	START,
	TIME,
	ACCOUNT,
	QOS,
	RESERVATION,
	PARTITION,
	SCHED_NODES,
	REASON,
	COLUMNS
};

#define FORMAT "--format=%A|%F|%Q|%D|%S|%l|%a|%q|%v|%P|%Y|%r"

/* What Slurm's commands tell, and what is made of it. */
struct told {
	struct said jobs, reservations;
	struct queued *queued;
	struct reserved *reserved;
	size_t queued_count, reserved_count;
	struct strv texts; /* of reservations */
};

static void told_fini(struct told *t)
{
	said_clear(&t->jobs);
	said_clear(&t->reservations);
	free(t->queued);
	free(t->reserved);
	strv_free(t->texts.items);
}

static const char *known(const char *text)
{
	return text[0] && text[0] != '(' && strcmp(text, "N/A") != 0 ? text : NULL;
}

static bool is_in_line(int64_t priority, const char *reason)
{
	static const char *const others[] = { "Dependency", "DependencyNeverSatisfied", "BeginTime",
					      "JobHeldUser", "JobHeldAdmin" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(others[i], reason) == 0)
			return false;
	}
	return priority > 0;
}

/* Cuts the line. False: it is none of squeue's. */
static bool split(char *line, char *value[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		value[i] = i + 1 < COLUMNS ? strsep(&line, "|") : line;
		if (!value[i])
			return false;
	}
	return true;
}

static struct queued queued_of(char *const value[COLUMNS])
{
	return (struct queued){
		.job_id = (uint32_t)strtoul(value[ID], NULL, 10),
		.array_id = (uint32_t)strtoul(value[ARRAY], NULL, 10),
		.priority = strtoll(value[PRIORITY], NULL, 10),
		.start = strtoll(value[START], NULL, 10), /* 0 of "N/A" */
		.partition = value[PARTITION],
		.sched_nodes = known(value[SCHED_NODES]),
		.is_in_line = is_in_line(strtoll(value[PRIORITY], NULL, 10), value[REASON]),
	};
}

/* All that wait; *q gets what is told of ours, of an array the part that waits. */
static int ask_jobs(struct told *t, uint32_t job_id, struct inquiry *q)
{
	static const char *const words[] = { "squeue", "-h", "-a", "-t", "PENDING", FORMAT, NULL };
	char *rest, *line, *value[COLUMNS];

	command_ask(words, &t->jobs);
	if (t->jobs.status)
		return said_failed(q->a, &t->jobs, false, "squeue");
	for (rest = t->jobs.out; (line = strsep(&rest, "\n"));) {
		if (!split(line, value))
			continue;
		t->queued = xrealloc(t->queued, (t->queued_count + 1) * sizeof(*t->queued));
		t->queued[t->queued_count++] = queued_of(value);
		if (t->queued[t->queued_count - 1].array_id != job_id)
			continue;
		q->job = t->queued[t->queued_count - 1];
		q->nodes = strtoll(value[NODES], NULL, 10);
		q->time_minutes = record_minutes(value[TIME]);
		q->account = known(value[ACCOUNT]);
		q->qos = known(value[QOS]);
		q->reservation = known(value[RESERVATION]);
		if (strchr(value[REASON], ' ')) /* more than the word */
			js_set_str(q->a->body, "detail", value[REASON]);
	}
	return 0;
}

static const char *text_of(struct told *t, const char *line, const char *name)
{
	size_t len;
	const char *value = record_value(line, name, &len);

	if (!value)
		return NULL;
	strv_add(&t->texts, xstrndup(value, len));
	return t->texts.items[t->texts.count - 1];
}

/* Where they are not told, the answer is one without them. */
static void ask_reservations(struct told *t)
{
	static const char *const words[] = { "scontrol", "-o", "show", "reservation", NULL };
	char *rest, *line;

	command_ask(words, &t->reservations);
	rest = t->reservations.status == 0 ? t->reservations.out : NULL;
	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, "ReservationName=", 16) != 0)
			continue;
		t->reserved = xrealloc(t->reserved, (t->reserved_count + 1) * sizeof(*t->reserved));
		t->reserved[t->reserved_count++] = (struct reserved){
			.name = text_of(t, line, "ReservationName"),
			.nodes = text_of(t, line, "Nodes"),
			.start = record_number(line, "StartTime", 0),
			.end = record_number(line, "EndTime", 0),
		};
	}
}

static int64_t plan(const struct inquiry *q, const char *partition, bool is_forgiven)
{
	char *option = partition ? xasprintf("--partition=%s", partition) : NULL;
	const char *const more[] = { is_forgiven ? "--exclude=" : option, NULL };
	int64_t start = sbatch_plan(q->request, more);

	free(option);
	return start;
}

static void tell(const json_t *request, struct answer *a, bool is_pending, const char *reason)
{
	struct told told = { .queued = NULL };
	struct cluster cluster = { 0 };
	json_t *planned = NULL;
	struct inquiry q = {
		.a = a,
		.cluster = &cluster,
		.is_pending = is_pending,
		.reason = reason,
		.uid = getuid(),
		.plan = plan,
	};

	if (ask_jobs(&told, (uint32_t)js_int(request, "job_id", 0), &q) == 0 &&
	    cluster_load(&cluster, a) == 0) {
		ask_reservations(&told);
		planned = absent_left_out(request, &cluster, NULL);
		q.request = planned ? planned : request;
		q.jobs = told.queued;
		q.job_count = told.queued_count;
		q.reservations = told.reserved;
		q.reservation_count = told.reserved_count;
		inquire(&q);
	}
	json_decref(planned);
	cluster_fini(&cluster);
	told_fini(&told);
}

/* Of an array the part that waits. */
static const struct seen *find(const struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		if ((look->jobs[i].row.state & SJ_MASK) == SJ_PENDING)
			return &look->jobs[i];
	}
	return look->count ? &look->jobs[0] : NULL;
}

void op_why(const json_t *request, struct answer *a)
{
	uint32_t job_id = (uint32_t)js_int(request, "job_id", 0);
	const struct seen *job;
	struct look look;

	if (look_at(a, job_id, &look) == 0 && (job = find(&look)) != NULL)
		tell(request, a, (job->row.state & SJ_MASK) == SJ_PENDING,
		     slurm_reason_name((uint32_t)job->row.reason));
	look_clear(&look);
}

void op_room(const json_t *request, struct answer *a)
{
	struct told told = { .queued = NULL };
	struct cluster cluster = { 0 };
	struct inquiry q = { .a = a, .cluster = &cluster, .plan = plan };
	json_t *planned = NULL;

	if (ask_jobs(&told, 0, &q) == 0 && cluster_load(&cluster, a) == 0) {
		planned = absent_left_out(request, &cluster, NULL);
		q.request = planned ? planned : request;
		q.jobs = told.queued;
		q.job_count = told.queued_count;
		inquire_room(&q);
	}
	json_decref(planned);
	cluster_fini(&cluster);
	told_fini(&told);
}
