/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.c - release, signal, cancel: each looks at the job first, and touches no other. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "common/json.h"
#include "slurm/lbd-slurm/calls.h"

enum { ID_TEXT = 16 };

/* The plain slurm_update_job would need the id in a member that newer releases moved. */
static int update(char *id, uint32_t priority, int *rc)
{
	job_desc_msg_t desc;
	job_array_resp_msg_t *answers = NULL;

	slurm_init_job_desc_msg(&desc);
	desc.job_id_str = id;
	desc.priority = priority;
	*rc = slurm_update_job2(&desc, &answers);
	if (*rc == 0 && answers && answers->job_array_count > 0)
		*rc = (int)answers->error_code[0];
	if (answers)
		slurm_free_job_array_resp(answers);
	return *rc ? -1 : 0;
}

void op_release(const json_t *request, struct answer *a)
{
	char id[ID_TEXT];
	uint32_t job_id;
	int rc;

	if (slurm_find(a, request, &job_id))
		return;
	snprintf(id, sizeof(id), "%u", job_id);
	answer_acting(a);
	if (update(id, INFINITE, &rc))
		slurm_failed(a, rc, true, "releasing the job");
}

static void kill_job(const json_t *request, struct answer *a, int signo, uint16_t flags,
		     const char *what)
{
	char id[ID_TEXT];
	uint32_t job_id;
	int rc;

	if (slurm_find(a, request, &job_id))
		return;
	snprintf(id, sizeof(id), "%u", job_id);
	answer_acting(a);
	rc = slurm_kill_job2(id, (uint16_t)signo, flags, NULL);
	/* What Slurm says of a job without processes: a lasting no to this signal. */
	if (rc && signo != SIGKILL && errno == ESLURM_TRANSITION_STATE_NO_UPDATE)
		answer_set(a, SCHEDULER_REFUSED, "the job does not run");
	else if (rc)
		slurm_failed(a, rc, true, what);
}

void op_signal(const json_t *request, struct answer *a)
{
	int signo = (int)js_int(request, "signo", 0);

	/* To Slurm SIGKILL means "cancel", which has an operation of its own. */
	if (signo <= 0 || signo > 64 || signo == SIGKILL) {
		answer_set(a, SCHEDULER_REFUSED, "%d is no signal to send", signo);
		return;
	}
	kill_job(request, a, signo, KILL_JOB_BATCH, "signalling the job");
}

void op_cancel(const json_t *request, struct answer *a)
{
	kill_job(request, a, SIGKILL, 0, "cancelling the job");
}
