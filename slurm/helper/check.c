/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.c - would Slurm take such a job? Asked before a run is made, so that what it would refuse
 * leaves nothing behind.
 *
 * Slurm plans the job as for "sbatch --test-only". Its "no" to a configuration may mean "never" or
 * "not while a node is down"; cluster.h tells them apart, and what is not sure is accepted. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "slurm/helper/calls.h"
#include "slurm/helper/draft.h"
#include "slurm/helper/limit_catch.h"
#include "slurm/pipe/cluster.h"
#include "slurm/pipe/sbatch.h"

/* In libslurm, but in none of its headers. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *message);

int64_t slurm_will_run(job_desc_msg_t *desc, int *code)
{
	will_run_response_msg_t *plan = NULL;
	int64_t start = 0;
	int rc = slurm_job_will_run2(desc, &plan);

	*code = rc == 0 ? 0 : rc > 0 ? rc : errno;
	if (rc == 0 && plan)
		start = (int64_t)plan->start_time;
	if (plan)
		slurm_free_will_run_response_msg(plan);
	return start;
}

/* Errors that do not mean "never". */
static const struct passing {
	int code;
	bool of_reservation;   /* only of a job that asks for one */
	bool is_configuration; /* "never" or "not while a node is down" */
} passing[] = {
	{ .code = ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, .is_configuration = true },
	{ .code = ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, .is_configuration = true },
	{ .code = ESLURM_INVALID_TIME_VALUE, .of_reservation = true }, /* it has yet to begin */
	{ .code = ESLURM_RESERVATION_BUSY },
	{ .code = ESLURM_RESERVATION_NOT_USABLE },
	{ .code = ESLURM_RESERVATION_MAINT },
	{ .code = ESLURM_NODES_BUSY },
	{ .code = ESLURM_NODE_NOT_AVAIL },
	{ .code = ESLURM_QOS_THRES },
	{ .code = ESLURM_BURST_BUFFER_WAIT },
	{ .code = ESLURM_PARTITION_DOWN },
	{ .code = ESLURM_JOB_HELD },
	{ .code = ESLURM_DEPENDENCY },
	{ .code = ESLURM_DEFER },
	{ .code = ESLURM_FED_JOB_LOCK },
};

/* The entry of an error, or of the error whose words are in said; NULL if Slurm would refuse the
 * job. */
static const struct passing *find_passing(const struct draft *d, int code, const char *said)
{
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		const struct passing *p = &passing[i];

		if ((!p->of_reservation || d->desc.reservation) &&
		    (said ? strstr(said, slurm_strerror(p->code)) != NULL : p->code == code))
			return p;
	}
	return NULL;
}

static void refuse_partition(const struct draft *d, struct answer *a)
{
	struct answer ignored = { 0 };
	struct cluster c = { 0 };

	cluster_load(&c, &ignored);
	cluster_refuse_partition(&c, d->desc.partition, a);
	json_decref(ignored.body);
	cluster_fini(&c);
}

/* Slurm's word for a job that waits for what can no longer come tells nobody anything. */
static bool refuse_doomed(const struct draft *d, int code, struct answer *a)
{
	if (code != ESLURM_DISABLED || !d->desc.dependency || !d->desc.dependency[0])
		return false;
	answer_set(a, SCHEDULER_REFUSED,
		   "--dependency=%.200s can never be satisfied: a job there has ended "
		   "otherwise than it must, so this one would never start",
		   d->desc.dependency);
	return true;
}

static bool refuse_array(const struct draft *d, int code, struct answer *a)
{
	slurm_conf_t *conf = NULL;

	if (code != ESLURM_INVALID_ARRAY || !d->desc.array_inx)
		return false;
	slurm_load_ctl_conf(0, &conf);
	limit_refuse_array(a, d->desc.array_inx, conf ? conf->max_array_sz : 0,
			   conf ? conf->sched_params : NULL);
	libslurm_free_conf(conf);
	return true;
}

/* What libslurm says while it refuses a job. */
struct heard {
	char limit[LIMIT_WORD_BYTES]; /* of accounting, that it is over */
	char said[COMMAND_SAID_BYTES];
};

/* In words that name the key, where it is known which. */
static void refuse(const struct draft *d, int code, const struct heard *heard, struct answer *a)
{
	const char *said = heard->said, *colon = said[0] ? ": " : "";
	const char *value, *key;

	if (heard->limit[0]) {
		limit_refuse(a, heard->limit, d->desc.account, d->desc.qos);
		return;
	}
	if (code == ESLURM_INVALID_PARTITION_NAME && d->desc.partition) {
		refuse_partition(d, a);
		return;
	}
	if (refuse_doomed(d, code, a) || refuse_array(d, code, a))
		return;
	key = fields_blame(&d->desc, code, &value);
	if (slurm_is_plugins_word(code) && said[0]) /* nothing but the site's own words */
		answer_set(a, SCHEDULER_REFUSED, "Slurm would refuse the job: %s", said);
	else if (key)
		answer_set(a, SCHEDULER_REFUSED, "%s: %s: Slurm says: %s%s%s", key, value,
			   slurm_strerror(code), colon, said);
	else
		answer_set(a, SCHEDULER_REFUSED, "Slurm would refuse the job: %s%s%s",
			   slurm_strerror(code), colon, said);
}

/* The cluster is read while Slurm plans the job, unless it was read a moment ago: who submits many
 * jobs asks for it once. A job is refused only by what it is now. */
struct look {
	pthread_t thread;
	bool is_begun; /* the thread reads it */
	bool is_wanted, is_kept;
	struct cluster cluster;
	struct answer ignored;
	int rc;
};

enum { KEPT_MS = 5000 };

static struct {
	struct cluster cluster;
	int64_t read_ms; /* monotonic; 0 = there is none */
} kept;

static void *read_cluster(void *arg)
{
	struct look *l = arg;

	l->rc = cluster_load(&l->cluster, &l->ignored);
	return NULL;
}

static void look_begin(struct look *l)
{
	*l = (struct look){ .rc = -1, .is_wanted = !slurm_rules()->qos_counts };
	l->is_kept = kept.read_ms && clock_mono_ms() - kept.read_ms < KEPT_MS;
	if (l->is_wanted && !l->is_kept)
		l->is_begun = pthread_create(&l->thread, NULL, read_cluster, l) == 0;
}

/* A QOS that may lift the limits of partitions is Slurm's affair, unless Slurm is not sure. */
static void check_limits(struct look *l, const json_t *request, bool is_refused, struct answer *a)
{
	const json_t *fields = json_object_get(request, "fields");

	if (!l->is_wanted && !is_refused)
		return;
	if (l->is_kept && !is_refused) {
		struct answer by_kept = { 0 };

		cluster_judge(&kept.cluster, fields, &by_kept);
		json_decref(by_kept.body);
		if (by_kept.result == SCHEDULER_OK)
			return;
	}
	if (!l->is_begun)
		read_cluster(l);
	if (l->rc == 0)
		cluster_judge(&l->cluster, fields, a);
}

static void look_wait(struct look *l)
{
	if (l->is_begun)
		pthread_join(l->thread, NULL);
}

/* What was read is kept. */
static void look_end(struct look *l)
{
	json_decref(l->ignored.body);
	if (l->rc != 0) {
		cluster_fini(&l->cluster);
		return;
	}
	cluster_fini(&kept.cluster);
	kept.cluster = l->cluster;
	kept.read_ms = clock_mono_ms();
}

/* *code is Slurm's error for the job, 0 for none, with what it said. False: *a says it all. */
static bool ask(struct draft *d, const json_t *request, struct heard *heard, int *code,
		struct answer *a)
{
	const struct passing *p;
	struct limit_catch catch;

	*code = 0;
	heard->limit[0] = heard->said[0] = '\0';
	if (!json_object_get(request, "sbatch")) {
		limit_catch_begin(&catch);
		slurm_will_run(&d->desc, code);
		limit_catch_end(&catch, heard->limit, heard->said);
		return true;
	}
	if (sbatch_test(request, a) == 0)
		return true;
	p = a->result == SCHEDULER_REFUSED ? find_passing(d, 0, a->text) : NULL;
	if (p == NULL) {
		if (a->result == SCHEDULER_REFUSED &&
		    strstr(a->text, slurm_strerror(ESLURM_DISABLED)))
			refuse_doomed(d, ESLURM_DISABLED, a);
		return false;
	}
	answer_set(a, SCHEDULER_OK, "%s", "");
	*code = p->code;
	return true;
}

static void check(struct draft *d, const json_t *request, struct look *look, struct answer *a)
{
	bool is_heard;
	const struct passing *p;
	struct heard heard;
	int code;

	draft_release(d);
	look_begin(look);
	is_heard = ask(d, request, &heard, &code, a);
	look_wait(look);
	if (!is_heard)
		return;
	p = find_passing(d, code, NULL);
	if (code == 0 || (p && p->is_configuration)) {
		check_limits(look, request, code != 0, a);
	} else if (p == NULL) {
		errno = code;
		slurm_failed(a, code, true, "checking the job"); /* plug-ins see it, as a job */
		if (a->result == SCHEDULER_REFUSED)
			refuse(d, code, &heard, a);
	}
}

void op_check(const json_t *request, struct answer *a)
{
	struct err why = { 0 };
	struct look look = { .rc = -1 };
	struct draft d;

	if (slurm_ready(a))
		return;
	if (draft_init(&d, request, &why) < 0)
		answer_set(a, SCHEDULER_REFUSED, "%s", why.text);
	else
		check(&d, request, &look, a);
	look_end(&look);
	draft_fini(&d);
}
