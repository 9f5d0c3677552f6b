/* SPDX-License-Identifier: MIT */
/* control.c - release, signal, cancel: each looks at the job first, touches no other, and looks
 * once more at what came of it: a command that says nothing and ends with 0 has not said that it
 * did something. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json.h"
#include "slurm/commands/look.h"
#include "slurm/pipe/operations.h"
#include "slurm/pipe/words.h"
#include "slurm/job_result.h"

enum { ID_TEXT = 16 };

static bool is_waiting(const struct seen *job)
{
	return (job->row.state & SJ_MASK) == SJ_PENDING;
}

static bool is_over(const struct seen *job)
{
	return (job->row.state & SJ_MASK) > SJ_SUSPENDED;
}

/* The job that the request names; its number as text, too. -1 with *a. */
static int find(const json_t *request, struct answer *a, struct look *look, const struct seen **job,
		char id[ID_TEXT])
{
	snprintf(id, ID_TEXT, "%u", (uint32_t)js_int(request, "job_id", 0));
	if (look_find(a, request, look, job))
		return -1;
	return is_over(*job) ? answer_set(a, SCHEDULER_GONE, "job %s has ended", id) : 0;
}

/* It answers for each group of an array's tasks. That some are over is no failure of what others
 * took; of others that did not take it the errors are left. */
static bool has_failed(struct said *said)
{
	char text[COMMAND_SAID_BYTES], left[COMMAND_SAID_BYTES] = "", *rest = text, *answer;
	bool has_done = false;
	size_t len = 0;

	memcpy(text, said->errors, sizeof(text));
	while ((answer = strsep(&rest, ";"))) {
		answer += strspn(answer, " ");
		if (strstr(answer, ": No error"))
			has_done = true;
		else if (*answer && !strstr(answer, "Job has already finished"))
			len += (size_t)snprintf(left + len, sizeof(left) - len, "%s%s",
						len ? "; " : "", answer);
		if (len >= sizeof(left))
			break;
	}
	if (left[0])
		memcpy(said->errors, left, sizeof(left));
	return said->status < 0 || (said->status > 0 && (left[0] || !has_done));
}

/* Runs a command that changes the job. */
static int act(const char *const *words, struct answer *a)
{
	struct said said;
	int rc;

	answer_acting(a);
	command_ask(words, &said);
	rc = has_failed(&said) ? said_failed(a, &said, true, words[0]) : 0;
	said_clear(&said);
	return rc;
}

/* What the job became; one that is gone has been changed for all that is known. Where that cannot
 * be seen, it is not known that anything was done. */
static void confirm(const json_t *request, struct answer *a,
		    bool (*is_unchanged)(const struct seen *job), const char *what)
{
	struct answer seen = { .body = json_object() };
	const struct seen *job;
	struct look look;
	int rc = look_find(&seen, request, &look, &job);

	if (rc == 0 && is_unchanged(job))
		answer_set(a, SCHEDULER_UNCLEAR, "%s", what);
	else if (rc && seen.result != SCHEDULER_GONE)
		answer_set(a, SCHEDULER_UNCLEAR, "what came of it cannot be seen: %.300s",
			   seen.text);
	look_clear(&look);
	json_decref(seen.body);
}

static bool is_held_still(const struct seen *job)
{
	return is_waiting(job) &&
	       (job->row.reason == SR_HELD_USER || job->row.reason == SR_HELD_ADMIN);
}

/* Of an array: tasks that wait. */
static bool has_held(const struct look *look)
{
	bool has = false;

	for (size_t i = 0; i < look->count; i++)
		has |= seen_is_held(&look->jobs[i]);
	return has;
}

/* One that nobody holds would lose its place in line. */
void op_release(const json_t *request, struct answer *a)
{
	char id[ID_TEXT];
	const char *const words[] = { "scontrol", "release", id, NULL };
	const struct seen *job;
	struct look look;

	if (find(request, a, &look, &job, id) == 0 && has_held(&look) && act(words, a) == 0) {
		js_set_bool(a->body, "held", true);
		confirm(request, a, is_held_still,
			"scontrol released the job, but it is held still");
	}
	look_clear(&look);
}

static bool lives_on(const struct seen *job)
{
	return !is_over(job) && !job->is_ending;
}

void op_cancel(const json_t *request, struct answer *a)
{
	char id[ID_TEXT];
	const char *const words[] = { "scancel", id, NULL };
	const struct seen *job;
	struct look look;

	if (find(request, a, &look, &job, id) == 0 && act(words, a) == 0)
		confirm(request, a, lives_on, "scancel cancelled the job, but it lives on");
	look_clear(&look);
}

/* A signal reaches the tasks that run. Those that wait have nobody to tell: left alone, each would
 * still start, once, to find out. What cannot be cancelled here does just that. */
static void cancel_waiting_tasks(const struct look *look, struct answer *a, const char *id)
{
	const char *const words[] = { "scancel", "--state=PENDING", id, NULL };
	struct answer ignored = { .id = a->id, .body = json_object() };
	bool has_waiting = false;

	for (size_t i = 0; i < look->count; i++)
		has_waiting |= look->jobs[i].is_task && is_waiting(&look->jobs[i]);
	if (has_waiting)
		act(words, &ignored);
	json_decref(ignored.body);
}

void op_signal(const json_t *request, struct answer *a)
{
	int signo = (int)js_int(request, "signo", 0);
	char id[ID_TEXT], number[ID_TEXT];
	const char *const words[] = { "scancel", "--batch", "--signal", number, id, NULL };
	const struct seen *job;
	struct look look;

	/* To Slurm SIGKILL means "cancel", which has an operation of its own. */
	if (signo <= 0 || signo > 64 || signo == SIGKILL) {
		answer_set(a, SCHEDULER_REFUSED, "%d is no signal to send", signo);
		return;
	}
	snprintf(number, sizeof(number), "%d", signo);
	if (find(request, a, &look, &job, id) == 0) {
		if (is_waiting(job)) {
			answer_set(a, SCHEDULER_REFUSED, "the job does not run");
		} else {
			cancel_waiting_tasks(&look, a, id);
			act(words, a);
		}
	}
	look_clear(&look);
}
