/* SPDX-License-Identifier: MIT */
/* submit.c - one held job by sbatch, and proof that Slurm has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "slurm/commands/look.h"
#include "slurm/pipe/absent.h"
#include "slurm/pipe/closed.h"
#include "slurm/pipe/cluster.h"
#include "slurm/pipe/known.h"
#include "slurm/pipe/limit_word.h"
#include "slurm/pipe/operations.h"
#include "slurm/pipe/record.h"
#include "slurm/pipe/sbatch.h"
#include "slurm/pipe/words.h"

#define SBATCH_SAYS "sbatch: " /* as words_failed begins */

/* To who asks for too much at once (rl_enable) ping says that it is down; other commands wait. */
static bool answers_others(void)
{
	static const char *const words[] = { "sinfo", "-h", "--format=%P", NULL };
	struct said said;
	bool does;

	command_ask(words, &said);
	does = said.status == 0;
	said_clear(&said);
	return does;
}

/* A controller that does not answer would leave it open whether sbatch did something. */
static int controller_answers(struct answer *a)
{
	static const char *const words[] = { "scontrol", "ping", NULL };
	struct said said;
	int rc = 0;

	command_ask(words, &said);
	if (said.status == COMMAND_NOT_STARTED) {
		rc = answer_set(a, SCHEDULER_DOWN, "scontrol cannot be started");
	} else if (!strstr(said.out, " is UP") &&
		   !(strstr(said.out, " is DOWN") && answers_others())) {
		js_set_bool(a->body, "unreachable", true);
		rc = answer_set(a, SCHEDULER_DOWN, "Slurm does not answer: %.200s",
				said.errors[0] ? said.errors : "scontrol ping");
	}
	said_clear(&said);
	return rc;
}

static bool has_name(uint32_t job_id, const char *name)
{
	char *has = look_line(job_id, "--format=%j");
	bool is_same = has && strcmp(has, name) == 0;

	free(has);
	return is_same;
}

/* A job whose comment does not carry its token could never be told from others again. */
static void disown(struct answer *a, uint32_t job_id, const struct seen *job, const char *name)
{
	char id[16];
	const char *const words[] = { "scancel", id, NULL };
	struct said said;

	snprintf(id, sizeof(id), "%u", job_id);
	/* a site may have renamed it, too; a controller that died may have given its number away */
	if (job->uid != getuid() || job->row.token[0] ||
	    (!seen_is_held(job) && !has_name(job_id, name))) {
		answer_set(a, SCHEDULER_UNCLEAR, "job %u was accepted, but is another one", job_id);
		return;
	}
	command_ask(words, &said);
	if (said.status)
		said_failed(a, &said, true, "scancel of a job whose comment this site replaced");
	else
		answer_set(a, SCHEDULER_REFUSED,
			   "this site replaces the comments of jobs: lbd needs them");
	said_clear(&said);
}

/* Reads the submit time back. A failure leaves the job to the next poll, which finds the token. */
static void confirm(struct answer *a, const json_t *request, uint32_t job_id)
{
	struct answer seen = { .body = json_object() };
	char ledger_id[LEDGER_ID_HEX + 1], token[TOKEN_HEX + 1];
	char *comment = js_bytes_take(json_object_get(request, "comment"));
	char *name = js_bytes_take(json_object_get(request, "name"));
	const struct seen *job;
	struct look look;

	js_set_int(a->body, "job_id", job_id);
	answer_job(a, job_id);
	if (look_at(&seen, job_id, &look) || look.count == 0) {
		answer_set(a, SCHEDULER_UNCLEAR,
			   "job %u was accepted, but cannot be read back: %.300s", job_id,
			   seen.text);
	} else {
		job = look_foremost(&look, &look.jobs[0]);
		if (wire_comment_parse(comment, ledger_id, token) && job->uid == getuid() &&
		    strcmp(token, job->row.token) == 0 &&
		    strcmp(ledger_id, job->row.ledger_id) == 0) {
			known_note(&job->row);
			js_set_int(a->body, "submit_time", job->row.submit_time);
		} else {
			disown(a, job_id, job, name ? name : "");
		}
	}
	look_clear(&look);
	json_decref(seen.body);
	free(comment);
	free(name);
}

/* Of the controller's configuration; owned; NULL: not known. */
static char *config_value(const char *name)
{
	static const char *const words[] = { "scontrol", "show", "config", NULL };
	const char *at;
	char *value = NULL;
	struct said said;

	command_ask(words, &said);
	at = said.status == 0 ? record_setting(said.out, name) : NULL;
	if (at)
		value = xstrndup(at, strcspn(at, "\n"));
	said_clear(&said);
	return value;
}

/* At each change of a waiting job Slurm 23.02 to 24.11 counts the tasks of --ntasks-per-gpu anew,
 * as if it had one GPU a node. scontrol cannot both release a job and say how many they are. */
static bool release_loses_tasks(const char *version)
{
	long year = strtol(version, NULL, 10);

	return year == 23 || year == 24;
}

static int check_tasks(const json_t *fields, struct answer *a)
{
	int64_t per_gpu = js_int(fields, "ntasks_per_tres", js_int(fields, "ntasks_per_gpu", 0));
	int64_t tasks = js_int(fields, "num_tasks", js_int(fields, "implied_tasks", 0));
	int64_t left = per_gpu * js_int(fields, "min_nodes", 1);
	char *version;
	int rc = 0;

	if (per_gpu <= 0 || tasks == left)
		return 0;
	version = config_value("SLURM_VERSION");
	if (!version)
		rc = answer_set(a, SCHEDULER_DOWN, "scontrol does not tell Slurm's release");
	else if (release_loses_tasks(version))
		rc = answer_set(a, SCHEDULER_REFUSED,
				"--ntasks-per-gpu=%lld: of %lld tasks this release of Slurm would "
				"keep %lld when lbd releases the job through its commands: write "
				"--ntasks-per-node instead, or --ntasks",
				(long long)per_gpu, (long long)tasks, (long long)left);
	free(version);
	return rc;
}

static void submit_request(const json_t *request, struct answer *a)
{
	uint32_t job_id;

	if (!json_object_get(request, "sbatch") || !json_object_get(request, "comment"))
		answer_set(a, SCHEDULER_REFUSED,
			   "the request lacks words for sbatch, or a comment");
	else if (controller_answers(a) == 0 &&
		 check_tasks(json_object_get(request, "fields"), a) == 0 &&
		 sbatch_submit(request, a, &job_id) == 0)
		confirm(a, request, job_id);
}

void op_submit(const json_t *request, struct answer *a)
{
	submit_request(request, a);
	absent_submit_again(request, a, cluster_load, submit_request);
	closed_wait(a);
}

static void refuse_array(struct answer *a, const char *array)
{
	char *size = config_value("MaxArraySize"),
	     *parameters = config_value("SchedulerParameters");

	limit_refuse_array(a, array, size ? strtoll(size, NULL, 10) : 0, parameters);
	free(size);
	free(parameters);
}

static void refuse_partition(struct answer *a, const char *name)
{
	struct answer ignored = { 0 };
	struct cluster c = { 0 };

	cluster_load(&c, &ignored);
	cluster_refuse_partition(&c, name, a);
	json_decref(ignored.body);
	cluster_fini(&c);
}

/* In words that name the key, where it is known which. */
static void refuse(struct answer *a, const json_t *fields, const char *words)
{
	static const struct {
		const char *words, *field, *key;
	} blames[] = {
		{ "Required partition not available", "partition", "slurm.partition" },
		{ "User's group not permitted to use this partition", "partition",
		  "slurm.partition" },
		{ "Invalid account", "account", "slurm.account" },
		{ "Invalid qos", "qos", "slurm.qos" },
		{ "Invalid feature", "features", "slurm.constraint" },
		{ "Invalid node name", "req_nodes", "slurm.nodelist" },
		{ "reservation is invalid", "reservation", "slurm.reservation" },
	};
	const char *partition = js_str(fields, "partition", NULL);
	char limit[LIMIT_WORD_BYTES];

	limit_word(words, limit);
	if (limit[0] && strstr(words, LIMIT_WORDS)) {
		limit_refuse(a, limit, js_str(fields, "account", NULL),
			     js_str(fields, "qos", NULL));
		return;
	}
	if (strstr(words, "Requested operation is presently disabled") &&
	    json_object_get(fields, "dependency")) {
		answer_set(a, SCHEDULER_REFUSED,
			   "--dependency=%.200s can never be satisfied: a job there has ended "
			   "otherwise than it must, so this one would never start",
			   js_str(fields, "dependency", ""));
		return;
	}
	if (json_object_get(fields, "array_inx") && strstr(words, LIMIT_ARRAY_WORDS)) {
		refuse_array(a, js_str(fields, "array_inx", ""));
		return;
	}
	if (partition && strstr(words, "Invalid partition name")) {
		refuse_partition(a, partition);
		return;
	}
	for (size_t i = 0; i < sizeof(blames) / sizeof(blames[0]); i++) {
		const char *value = js_str(fields, blames[i].field, NULL);

		if (value && strstr(words, blames[i].words)) {
			answer_set(a, SCHEDULER_REFUSED, "%s: %.100s: Slurm says: %.300s",
				   blames[i].key, value, words);
			return;
		}
	}
	answer_set(a, SCHEDULER_REFUSED, "Slurm would refuse the job: %.400s", words);
}

/* Of a reservation that has not begun --test-only says this, and sbatch itself takes the job. */
static bool is_about_reservation(const json_t *fields, const char *words)
{
	return js_str(fields, "reservation", NULL) && strstr(words, "Invalid time specified");
}

/* A QOS may lift the limits of a partition: where those count, only Slurm knows. */
static bool qos_counts(void)
{
	char *enforced = config_value("AccountingStorageEnforce");
	bool is_none = enforced && strncmp(enforced, "none", 4) == 0;

	free(enforced);
	return !is_none;
}

static void check_limits(const json_t *fields, bool is_refused, struct answer *a)
{
	struct answer ignored = { 0 };
	struct cluster c = { 0 };

	if ((is_refused || !qos_counts()) && cluster_load(&c, &ignored) == 0)
		cluster_judge(&c, fields, a);
	json_decref(ignored.body);
	cluster_fini(&c);
}

/* What must wait is accepted: only a lasting "no" is one. */
void op_check(const json_t *request, struct answer *a)
{
	const json_t *fields = json_object_get(request, "fields");
	char words[COMMAND_SAID_BYTES];

	if (controller_answers(a) || check_tasks(fields, a))
		return;
	if (sbatch_test(request, a) == 0) {
		check_limits(fields, false, a);
		return;
	}
	if (a->result != SCHEDULER_REFUSED)
		return;
	snprintf(words, sizeof(words), "%s", a->text + strlen(SBATCH_SAYS));
	if (words_are_passing(words) || is_about_reservation(fields, words)) {
		answer_set(a, SCHEDULER_OK, "%s", "");
		if (strstr(words, " configuration ")) /* "never", or "not while a node is down" */
			check_limits(fields, true, a);
	} else {
		refuse(a, fields, words);
	}
}
