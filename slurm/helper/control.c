/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.c - release, signal, cancel: each looks at the job first, and touches no other. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/helper/calls.h"

enum { ID_TEXT = 16 };

/* Of an array some tasks may be over, which is no failure of what the others took. */
static int code_of(const job_array_resp_msg_t *answers)
{
	int code = (int)answers->error_code[0];

	for (uint32_t i = 1; i < answers->job_array_count; i++) {
		int other = (int)answers->error_code[i];

		if ((code == 0 || code == ESLURM_JOB_FINISHED) && other != ESLURM_JOB_FINISHED)
			code = other;
	}
	return code;
}

/* The plain slurm_update_job would need the id in a member that newer releases moved. */
static int update(job_desc_msg_t *desc, char *id, int *rc)
{
	job_array_resp_msg_t *answers = NULL;

	desc->job_id_str = id;
	*rc = slurm_update_job2(desc, &answers);
	if (*rc == 0 && answers && answers->job_array_count > 0)
		*rc = code_of(answers);
	if (answers)
		slurm_free_job_array_resp(answers);
	return *rc ? -1 : 0;
}

/* A change of this job, which is nothing else as well. */
static void begin_change(job_desc_msg_t *desc, const slurm_job_info_t *job)
{
	bool is_waiting = (job->job_state & SJ_MASK) == SJ_PENDING;

	libslurm_init_desc(desc);
	if (CHANGES_COUNT_TASKS && is_waiting && job->ntasks_per_tres > 0 &&
	    job->ntasks_per_tres < INFINITE16)
		desc->num_tasks = job->num_tasks;
}

void slurm_set_comment(const slurm_job_info_t *job, char *comment)
{
	job_desc_msg_t desc;
	char id[ID_TEXT];
	int rc;

	snprintf(id, sizeof(id), "%u", job->job_id);
	begin_change(&desc, job);
	desc.comment = comment;
	update(&desc, id, &rc);
}

static void id_text(const json_t *request, char id[ID_TEXT])
{
	snprintf(id, ID_TEXT, "%u", (uint32_t)js_int(request, "job_id", 0));
}

/* Of an array: tasks that wait. NULL: none is held. */
static const slurm_job_info_t *held_of(const job_info_msg_t *list)
{
	for (uint32_t i = 0; i < list->record_count; i++) {
		const slurm_job_info_t *job = &list->job_array[i];

		if (slurm_is_held(job))
			return job;
	}
	return NULL;
}

/* One that nobody holds would lose its place in line. */
void op_release(const json_t *request, struct answer *a)
{
	char id[ID_TEXT];
	job_info_msg_t *list;
	const slurm_job_info_t *held;
	job_desc_msg_t desc;
	int rc;

	if (slurm_find(a, request, &list))
		return;
	held = held_of(list);
	if (held)
		begin_change(&desc, held);
	slurm_free_job_info_msg(list);
	if (!held)
		return;
	id_text(request, id);
	answer_acting(a);
	desc.priority = INFINITE;
	if (update(&desc, id, &rc))
		slurm_failed(a, rc, true, "releasing the job");
	else
		js_set_bool(a->body, "held", true);
}

static void kill_job(const json_t *request, struct answer *a, int signo, uint16_t flags,
		     const char *what)
{
	job_info_msg_t *list;
	char id[ID_TEXT];
	int rc;

	if (slurm_find(a, request, &list))
		return;
	slurm_free_job_info_msg(list);
	id_text(request, id);
	answer_acting(a);
	rc = libslurm_kill_job(id, (uint16_t)signo, flags);
	/* What Slurm says of a job without processes: a lasting no to this signal. */
	if (rc && signo != SIGKILL && errno == ESLURM_TRANSITION_STATE_NO_UPDATE)
		answer_set(a, SCHEDULER_REFUSED, "the job does not run");
	else if (rc)
		slurm_failed(a, rc, true, what);
}

/* A signal reaches the tasks that run. Those that wait have nobody to tell: left alone, each would
 * still start, once, to find out. What cannot be cancelled here does just that. */
static void cancel_waiting_tasks(const json_t *request, struct answer *a)
{
	uint32_t job_id = (uint32_t)js_int(request, "job_id", 0);
	job_info_msg_t *list;

	if (slurm_find(a, request, &list))
		return;
	for (uint32_t i = 0; i < list->record_count; i++) {
		const slurm_job_info_t *job = &list->job_array[i];
		int len = job->array_task_str ? (int)strcspn(job->array_task_str, "%") : 0;
		char *tasks;

		if (len == 0)
			continue;
		tasks = xasprintf("%u_[%.*s]", job_id, len, job->array_task_str);
		answer_acting(a);
		libslurm_kill_job(tasks, SIGKILL, 0);
		free(tasks);
	}
	slurm_free_job_info_msg(list);
}

void op_signal(const json_t *request, struct answer *a)
{
	int signo = (int)js_int(request, "signo", 0);

	/* To Slurm SIGKILL means "cancel", which has an operation of its own. */
	if (signo <= 0 || signo > 64 || signo == SIGKILL) {
		answer_set(a, SCHEDULER_REFUSED, "%d is no signal to send", signo);
		return;
	}
	cancel_waiting_tasks(request, a);
	if (a->result == SCHEDULER_OK)
		kill_job(request, a, signo, KILL_JOB_BATCH, "signalling the job");
}

void op_cancel(const json_t *request, struct answer *a)
{
	kill_job(request, a, SIGKILL, 0, "cancelling the job");
}
