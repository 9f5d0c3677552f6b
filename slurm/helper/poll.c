/* SPDX-License-Identifier: GPL-2.0-or-later */
/* poll.c - all jobs of ours in one look, and what to know of the cluster. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "slurm/job_result.h"
#include "slurm/helper/calls.h"
#include "slurm/pipe/cancelled.h"
#include "slurm/pipe/known.h"

/* slurm/job_result.c judges these numbers without seeing <slurm/slurm.h>. */
#define SAME(ours, slurms) _Static_assert((int)(ours) == (int)(slurms), #slurms)
SAME(SJ_PENDING, SLURM_JOB_PENDING);
SAME(SJ_RUNNING, SLURM_JOB_RUNNING);
SAME(SJ_SUSPENDED, JOB_SUSPENDED);
SAME(SJ_COMPLETE, JOB_COMPLETE);
SAME(SJ_CANCELLED, JOB_CANCELLED);
SAME(SJ_FAILED, JOB_FAILED);
SAME(SJ_TIMEOUT, JOB_TIMEOUT);
SAME(SJ_NODE_FAIL, JOB_NODE_FAIL);
SAME(SJ_PREEMPTED, JOB_PREEMPTED);
SAME(SJ_BOOT_FAIL, JOB_BOOT_FAIL);
SAME(SJ_DEADLINE, JOB_DEADLINE);
SAME(SJ_OOM, JOB_OOM);
SAME(SJ_COUNT, JOB_END);
SAME(SJ_MASK, JOB_STATE_BASE);
SAME(SJ_CONFIGURING, JOB_CONFIGURING);
SAME(SJ_COMPLETING, JOB_COMPLETING);
SAME(SR_PRIORITY, WAIT_PRIORITY);
SAME(SR_RESOURCES, WAIT_RESOURCES);
SAME(SR_NODE_NOT_AVAIL, WAIT_NODE_NOT_AVAIL);
SAME(SR_HELD_USER, WAIT_HELD_USER);
SAME(SR_NODE_DOWN, FAIL_DOWN_NODE);
SAME(SR_LAUNCH_FAILURE, FAIL_LAUNCH);
SAME(SR_EXIT_CODE, FAIL_EXIT_CODE);
SAME(SR_TIME_LIMIT, FAIL_TIMEOUT);
SAME(SR_DEPENDENCY_NEVER, WAIT_DEP_INVALID);

/* The start of a job that has not started is an estimate; the end of one that runs, its limit. */
static void fill_row(struct wire_row *row, const slurm_job_info_t *job)
{
	uint32_t base = job->job_state & SJ_MASK;
	bool has_started = base != SJ_PENDING && job->start_time > 0;
	bool has_ended = base > SJ_SUSPENDED;

	row->job_id = slurm_id_of(job);
	row->submit_time = (int64_t)job->submit_time;
	row->state = job->job_state;
	row->reason = job->state_reason;
	row->exit_code = job->exit_code;
	row->is_held = job->priority == 0;
	row->start_time = has_started ? (int64_t)job->start_time : 0;
	row->end_time = has_ended ? (int64_t)job->end_time : 0;
	row->limit_time = has_started && !has_ended && job->time_limit != INFINITE
				  ? (int64_t)job->end_time
				  : 0;
	row->restarts = job->restart_cnt;
	row->nodes = job->nodes ? job->nodes : ""; /* Slurm takes no names but ASCII ones */
}

static bool is_idle(const node_info_t *node)
{
	const uint32_t away = NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_COMPLETING |
			      NODE_STATE_NO_RESPOND | NODE_STATE_MAINT | NODE_STATE_RES;

	return (node->node_state & NODE_STATE_BASE) == NODE_STATE_IDLE &&
	       !(node->node_state & away);
}

/* Slurm says what a job waits for, not that it waits only because of the nodes that it must not
 * have. Asked once for all jobs of a poll, and only where one of them might. */
static int64_t idle_excluded(const slurm_job_info_t *job, node_info_msg_t **nodes)
{
	bool may_be_why = (job->job_state & SJ_MASK) == SJ_PENDING && job->exc_nodes &&
			  job->exc_nodes[0] &&
			  (job->state_reason == SR_PRIORITY || job->state_reason == SR_RESOURCES ||
			   job->state_reason == SR_NODE_NOT_AVAIL);
	nodes_t excluded;
	int64_t count = 0;

	if (!may_be_why || (*nodes == NULL && slurm_load_node(0, nodes, SHOW_ALL) != 0))
		return 0;
	excluded = slurm_hostlist_create(job->exc_nodes);
	for (uint32_t i = 0; excluded && i < (*nodes)->record_count; i++) {
		const node_info_t *node = &(*nodes)->node_array[i];

		count += node->name && is_idle(node) &&
			 slurm_hostlist_find(excluded, node->name) >= 0;
	}
	if (excluded)
		slurm_hostlist_destroy(excluded);
	return count;
}

/* Slurm tells that a node ended the job, not which, and while the job completes it tells no more of
 * what was down: all nodes that went down since it began, as long as their names fit; lbd knows
 * which it had. They are looked at once for all jobs of a poll. */
static char *failed_nodes(const slurm_job_info_t *job, node_info_msg_t **nodes)
{
	struct buf out;

	buf_init(&out, WIRE_FAILED_BYTES);
	buf_addf(&out, "%s", "");
	if ((job->job_state & SJ_MASK) != SJ_NODE_FAIL ||
	    (*nodes == NULL && slurm_load_node(0, nodes, SHOW_ALL) != 0))
		return buf_take(&out);
	for (uint32_t i = 0; i < (*nodes)->record_count; i++) {
		const node_info_t *node = &(*nodes)->node_array[i];
		bool is_down = (node->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;

		if (!node->name || !is_down || node->reason_time < job->start_time)
			continue;
		if (!wire_failed_add(&out, node->name))
			break;
	}
	return buf_take(&out);
}

/* Jobs of a partition that was removed Slurm ends as if a node had failed. */
static bool lost_partition(const slurm_job_info_t *job, partition_info_msg_t **parts)
{
	if ((job->job_state & SJ_MASK) != SJ_NODE_FAIL || !job->partition ||
	    (*parts == NULL && slurm_load_partitions(0, parts, SHOW_ALL) != 0))
		return false;
	for (uint32_t i = 0; i < (*parts)->record_count; i++) {
		const char *name = (*parts)->partition_array[i].name;

		if (name && strcmp(name, job->partition) == 0)
			return false;
	}
	return true;
}

/* A controller that died may have forgotten that it had given the job nodes, and one of them that,
 * or that the job was released: asked once for all jobs of a poll. A backup was started long before
 * it took over: of a release it may have forgotten any. */
static int64_t controller_start(const slurm_job_info_t *job, slurm_conf_t **conf)
{
	bool is_held = slurm_is_held(job);
	bool lost_its_nodes = (job->job_state & SJ_MASK) == SJ_CANCELLED &&
			      !(job->nodes && job->nodes[0]);

	if ((!is_held && !lost_its_nodes) || (*conf == NULL && slurm_load_ctl_conf(0, conf) != 0))
		return 0;
	return (int64_t)(is_held && slurm_backup_serves() ? time(NULL) : (*conf)->boot_time);
}

static bool is_of_array(const slurm_job_info_t *job, const slurm_job_info_t *of)
{
	return job->array_job_id == of->array_job_id && job->user_id == of->user_id;
}

/* Of the array whose records are looked at: they stand together, mostly. */
static struct {
	const slurm_job_info_t *of;
	struct array_ends ends;
} array;

static const struct array_ends *ends_of(const job_info_msg_t *list, const slurm_job_info_t *of)
{
	if (array.of && is_of_array(array.of, of))
		return &array.ends;
	array.of = of;
	array.ends = (struct array_ends){ 0 };
	for (uint32_t i = 0; i < list->record_count; i++) {
		const slurm_job_info_t *job = &list->job_array[i];

		if (is_of_array(job, of))
			array_ends_add(&array.ends, job->job_state, job->state_reason,
				       job->end_time);
	}
	return &array.ends;
}

static int weight_of(const slurm_job_info_t *job, const struct array_ends *ends)
{
	return array_record_weight(job->job_state, job->state_reason, job->nodes && job->nodes[0],
				   job->end_time, ends);
}

/* Whether another record tells of the same array and is to be told instead. */
static bool is_outweighed(const job_info_msg_t *list, uint32_t at)
{
	const slurm_job_info_t *job = &list->job_array[at];
	const struct array_ends *ends;

	if (job->array_job_id == 0)
		return false;
	ends = ends_of(list, job);
	for (uint32_t i = 0; i < list->record_count; i++) {
		const slurm_job_info_t *other = &list->job_array[i];
		int difference = weight_of(other, ends) - weight_of(job, ends);

		if (is_of_array(other, job) && (difference > 0 || (difference == 0 && i < at)))
			return true;
	}
	return false;
}

/* Slurm tells all jobs, but only if any has changed, or those of one user, each time. On a busy
 * cluster some always have, and those of others are most: to load them would cost the controller
 * and us the more, the more they are. */
static struct {
	bool are_others_most;
	uint32_t ours; /* when all were looked at */
} seen;

enum { MANY = 100, TIMES = 4 };

static int load_jobs(time_t have, job_info_msg_t **list)
{
	if (seen.are_others_most)
		return slurm_load_job_user(list, getuid(), SHOW_ALL | SHOW_LOCAL);
	return slurm_load_jobs(have, list, SHOW_ALL | SHOW_LOCAL);
}

/* Where ours have become many, all are looked at again. */
static void note_share(const job_info_msg_t *list)
{
	uint32_t ours = 0;
	uid_t me = getuid();

	if (seen.are_others_most) {
		seen.are_others_most = list->record_count < TIMES * seen.ours + MANY;
		return;
	}
	for (uint32_t i = 0; i < list->record_count; i++)
		ours += list->job_array[i].user_id == me;
	seen.ours = ours;
	seen.are_others_most = list->record_count > TIMES * ours + MANY;
}

/* Somebody replaced its comment: the token is put in front of the new one, without which no order
 * would find the job, nor an lbd that starts anew. Where that fails, the next poll tries again. */
static void mark_again(const slurm_job_info_t *job, const struct wire_row *row)
{
	char *comment = wire_comment_with(row->ledger_id, row->token, job->comment);

	slurm_set_comment(job, comment);
	free(comment);
}

/* Waiting tasks share a record, which has no number of a task; that of those that were cancelled
 * all at once has none at all. */
static void note_tasks(const slurm_job_info_t *job, const struct wire_row *row)
{
	const char *several = job->array_task_str ? job->array_task_str : "";
	char one[16];

	if (job->array_job_id == 0)
		return;
	snprintf(one, sizeof(one), "%u", job->array_task_id);
	cancelled_note(row, job->array_task_id == NO_VAL ? several : one);
}

static void tell_jobs(struct answer *a, const job_info_msg_t *list, const char *ledger_id)
{
	partition_info_msg_t *parts = NULL;
	node_info_msg_t *nodes = NULL;
	slurm_conf_t *conf = NULL;
	uid_t me = getuid();

	known_turn();
	cancelled_turn();
	array.of = NULL;
	for (uint32_t i = 0; i < list->record_count; i++) {
		const slurm_job_info_t *job = &list->job_array[i];
		struct wire_row row = { 0 };
		char *failed;

		if (job->user_id != me)
			continue;
		fill_row(&row, job);
		if (!wire_comment_parse(job->comment, row.ledger_id, row.token) && known_find(&row))
			mark_again(job, &row);
		if (!wire_is_asked(&row, ledger_id))
			continue;
		row.controller_start = controller_start(job, &conf);
		note_tasks(job, &row);
		if (is_outweighed(list, i))
			continue;
		known_note(&row);
		row.idle_excluded = idle_excluded(job, &nodes);
		row.failed = failed = failed_nodes(job, &nodes);
		if (lost_partition(job, &parts))
			row.reason = SR_DOWN_PARTITION;
		answer_row(a, &row);
		free(failed);
	}
	if (parts)
		slurm_free_partition_info_msg(parts);
	slurm_free_node_info_msg(nodes);
	libslurm_free_conf(conf);
	cancelled_tell(a);
	js_set_int(a->body, "rows", a->row_count);
}

void op_poll(const json_t *request, struct answer *a)
{
	job_info_msg_t *list = NULL;
	time_t have = (time_t)js_int(request, "have", 0);

	if (slurm_ready(a))
		return;
	if (load_jobs(have, &list) == 0) {
		note_share(list);
		js_set_int(a->body, "last", (int64_t)list->last_update);
		tell_jobs(a, list, js_str(request, "ledger", ""));
	} else if (errno == SLURM_NO_CHANGE_IN_DATA && have) {
		js_set_int(a->body, "last", (int64_t)have);
		js_set_bool(a->body, "same", true);
		cancelled_same();
	} else {
		slurm_failed(a, -1, false, "listing the jobs");
	}
	slurm_free_job_info_msg(list);
}

/* Elsewhere a job gets its place in line when it is released. */
static bool ages_held(const slurm_conf_t *conf)
{
	return conf->priority_type && strcmp(conf->priority_type, "priority/multifactor") == 0 &&
	       (conf->priority_flags & PRIORITY_FLAGS_ACCRUE_ALWAYS) &&
	       conf->priority_weight_age > 0;
}

void op_info(const json_t *request, struct answer *a)
{
	slurm_conf_t *conf = NULL;

	(void)request;
	if (slurm_ready(a))
		return;
	if (slurm_load_ctl_conf(0, &conf)) {
		slurm_failed(a, -1, false, "reading the configuration");
		return;
	}
	js_set_str(a->body, "version", conf->version);
	js_set_str(a->body, "cluster", conf->cluster_name);
	js_set_int(a->body, "min_job_age", conf->min_job_age);
	cancelled_min_job_age(conf->min_job_age);
	js_set_int(a->body, "message_timeout", conf->msg_timeout);
	js_set_int(a->body, "kill_wait", conf->kill_wait);
	js_set_int(a->body, "slurmd_uid", conf->slurmd_user_id);
	js_set_bool(a->body, "ages_held", ages_held(conf));
	libslurm_free_conf(conf);
}
