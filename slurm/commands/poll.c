/* SPDX-License-Identifier: MIT */
/* poll.c - all jobs of ours in one look, and what to know of the cluster. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/commands/excluded.h"
#include "slurm/commands/failed.h"
#include "slurm/commands/look.h"
#include "slurm/pipe/cancelled.h"
#include "slurm/pipe/known.h"
#include "slurm/pipe/operations.h"
#include "slurm/pipe/record.h"
#include "slurm/pipe/words.h"
#include "slurm/job_result.h"

/* How often each job had been restarted, by the last poll. */
static struct restarts {
	uint32_t job_id;
	int64_t count;
} * known;
static size_t known_count;

static void remember(const struct look *look)
{
	free(known);
	known = xcalloc(look->count + 1, sizeof(*known));
	known_count = look->count;
	for (size_t i = 0; i < look->count; i++) {
		const struct seen *job = &look->jobs[i];
		bool is_requeued = job->is_ending && (job->row.state & SJ_MASK) == SJ_PENDING;

		known[i] = (struct restarts){ job->job_id, job->row.restarts - is_requeued };
	}
}

/* A job that is COMPLETING because it was sent back into the queue waits there, as soon as its
 * nodes are free, and perhaps not until the next poll. */
static void tell_requeued(struct seen *job)
{
	for (size_t i = 0; job->is_ending && i < known_count; i++) {
		if (known[i].job_id == job->job_id && known[i].count < job->row.restarts) {
			job->row.state = SJ_PENDING;
			job->row.start_time = 0;
		}
	}
}

static bool lost_its_nodes(const struct seen *job)
{
	return job->row.token[0] && (job->row.state & SJ_MASK) == SJ_CANCELLED &&
	       !job->row.nodes[0];
}

/* "Slurmctld(primary) at host is DOWN" */
static bool is_first_away(const char *text)
{
	const char *at = strstr(text, "Slurmctld(primary) at "),
		   *end = at ? strchr(at, '\n') : NULL;
	const char *down = at ? strstr(at, " is DOWN") : NULL;

	return down && (!end || down < end);
}

/* By its own word; 0: it does not answer. */
static int64_t controller_start(bool *backup_serves)
{
	static const char *const words[] = { "scontrol", "show", "config", NULL };
	const char *value = NULL;
	struct said said;
	int64_t start;

	command_ask(words, &said);
	if (said.status == 0)
		value = record_setting(said.out, "BOOT_TIME");
	*backup_serves = value && is_first_away(value);
	start = value ? strtoll(value, NULL, 10) : 0;
	said_clear(&said);
	return start;
}

static bool is_held(const struct seen *job)
{
	return job->row.token[0] && seen_is_held(job);
}

/* A controller that died may have forgotten that it had given the job nodes, and one of them that,
 * or that the job was released: asked once for all jobs of a poll. A backup was started long before
 * it took over: of a release it may have forgotten any. */
static void tell_controller_start(struct look *look)
{
	bool backup_serves = false;
	int64_t start = -1;

	for (size_t i = 0; i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (!lost_its_nodes(job) && !is_held(job))
			continue;
		if (start < 0)
			start = controller_start(&backup_serves);
		job->row.controller_start = is_held(job) && backup_serves ? time(NULL) : start;
	}
}

/* Somebody replaced its comment: the token is put in front of the new one, without which no order
 * would find the job, nor an lbd that starts anew. Where that fails, the next poll tries again. All
 * tasks of an array are changed with the record of those that wait: the others have it then. */
static void mark_again(const struct seen *job)
{
	char *own = look_line(job->job_id, "--format=%k");
	char *comment = wire_comment_with(job->row.ledger_id, job->row.token,
					  own && strcmp(own, "(null)") != 0 ? own : "");
	char *id = xasprintf("JobId=%u", job->job_id), *set = xasprintf("Comment=%s", comment);
	const char *const words[] = { "scontrol", "update", id, set, NULL };
	char ledger_id[LEDGER_ID_HEX + 1], token[TOKEN_HEX + 1];
	struct said said;

	if (own && !wire_comment_parse(own, ledger_id, token)) {
		command_ask(words, &said);
		said_clear(&said);
	}
	free(own);
	free(comment);
	free(id);
	free(set);
}

void op_poll(const json_t *request, struct answer *a)
{
	const char *ledger_id = js_str(request, "ledger", "");
	const struct seen **jobs;
	struct look look;
	size_t count;

	if (look_all(a, &look)) {
		look_clear(&look);
		return;
	}
	for (size_t i = 0; i < look.count; i++)
		tell_requeued(&look.jobs[i]);
	remember(&look);
	known_turn();
	for (size_t i = 0; i < look.count; i++) {
		if (!look.jobs[i].row.token[0] && known_find(&look.jobs[i].row))
			mark_again(&look.jobs[i]);
	}
	excluded_tell(&look);
	failed_tell(&look);
	tell_controller_start(&look);
	cancelled_turn();
	for (size_t i = 0; i < look.count; i++) {
		if (look.jobs[i].is_task && wire_is_asked(&look.jobs[i].row, ledger_id))
			cancelled_note(&look.jobs[i].row, look.jobs[i].tasks);
	}
	cancelled_tell(a);
	jobs = look_foremost_of_each(&look, &count);
	for (size_t i = 0; i < count; i++) {
		if (!wire_is_asked(&jobs[i]->row, ledger_id))
			continue;
		known_note(&jobs[i]->row);
		answer_row(a, &jobs[i]->row);
	}
	free(jobs);
	js_set_int(a->body, "last", look.time);
	js_set_int(a->body, "rows", a->row_count);
	look_clear(&look);
}

static void put_text(json_t *body, const char *key, const char *text, const char *name)
{
	const char *value = record_setting(text, name);
	size_t len = value ? strcspn(value, "\n") : 0;

	while (len > 0 && value[len - 1] == ' ')
		len--;
	if (value)
		json_object_set_new(body, key, json_stringn(value, len));
}

static void put_number(json_t *body, const char *key, const char *text, const char *name)
{
	const char *value = record_setting(text, name);

	if (value)
		js_set_int(body, key, strtoll(value, NULL, 10));
}

/* "root(0)" */
static void put_uid(json_t *body, const char *key, const char *text, const char *name)
{
	const char *value = record_setting(text, name), *open = value ? strchr(value, '(') : NULL;

	if (open)
		js_set_int(body, key, strtoll(open + 1, NULL, 10));
}

static bool says(const char *text, const char *name, const char *word)
{
	const char *value = record_setting(text, name), *at = value ? strstr(value, word) : NULL;

	return at && at < value + strcspn(value, "\n");
}

/* Elsewhere a job gets its place in line when it is released. */
static bool ages_held(const char *text)
{
	const char *weight = record_setting(text, "PriorityWeightAge");

	return says(text, "PriorityType", "priority/multifactor") &&
	       says(text, "PriorityFlags", "ACCRUE_ALWAYS") && weight &&
	       strtoll(weight, NULL, 10) > 0;
}

void op_info(const json_t *request, struct answer *a)
{
	static const char *const words[] = { "scontrol", "show", "config", NULL };
	struct said said;

	(void)request;
	command_ask(words, &said);
	if (said.status) {
		said_failed(a, &said, false, "scontrol show config");
	} else if (!record_setting(said.out, "ClusterName") ||
		   !record_setting(said.out, "SLURM_VERSION")) {
		answer_set(a, SCHEDULER_DOWN, "scontrol show config tells no configuration");
	} else {
		put_text(a->body, "version", said.out, "SLURM_VERSION");
		put_text(a->body, "cluster", said.out, "ClusterName");
		put_number(a->body, "min_job_age", said.out, "MinJobAge");
		cancelled_min_job_age(js_int(a->body, "min_job_age", 1));
		put_number(a->body, "message_timeout", said.out, "MessageTimeout");
		put_number(a->body, "kill_wait", said.out, "KillWait");
		put_uid(a->body, "slurmd_uid", said.out, "SlurmdUser");
		js_set_bool(a->body, "ages_held", ages_held(said.out));
	}
	said_clear(&said);
}
