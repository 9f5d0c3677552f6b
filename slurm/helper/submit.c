/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit.c - one held job from a request, and proof that Slurm has it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "slurm/helper/calls.h"
#include "slurm/helper/draft.h"
#include "slurm/helper/limit_catch.h"
#include "slurm/pipe/absent.h"
#include "slurm/pipe/closed.h"
#include "slurm/pipe/known.h"
#include "slurm/pipe/sbatch.h"

/* A job whose comment does not carry its token could never be told from others again. */
static void disown(struct answer *a, uint32_t job_id, const char *comment)
{
	char id[16];

	snprintf(id, sizeof(id), "%u", job_id);
	if (libslurm_kill_job(id, SIGKILL, 0))
		slurm_failed(a, -1, true, "cancelling a job whose comment this site replaced");
	else
		answer_set(a, SCHEDULER_REFUSED,
			   "this site replaces the comments of jobs (by \"%.80s\"): lbd needs them",
			   comment ? comment : "");
}

/* A site may add to comments, and rename jobs: the token counts. */
static bool has_token_of(const slurm_job_info_t *job, const char *comment, struct wire_row *row)
{
	char ledger_id[LEDGER_ID_HEX + 1], token[TOKEN_HEX + 1];

	return wire_comment_parse(comment, ledger_id, token) &&
	       wire_comment_parse(job->comment, row->ledger_id, row->token) &&
	       strcmp(token, row->token) == 0 && strcmp(ledger_id, row->ledger_id) == 0;
}

/* From now on it is known by its number, too. */
static void tell_job(struct answer *a, const slurm_job_info_t *job, struct wire_row *row)
{
	row->job_id = slurm_id_of(job);
	row->submit_time = (int64_t)job->submit_time;
	known_note(row);
	js_set_int(a->body, "submit_time", row->submit_time);
}

/* Without its token, is it the one that was just submitted, beyond its number, which a controller
 * that died may have given away? A site may have renamed it, too. */
static bool is_ours(const slurm_job_info_t *job, const struct wire_row *row, const char *name)
{
	bool is_called_so = job->name && strcmp(job->name, name) == 0;

	return job->user_id == getuid() && !row->token[0] && (slurm_is_held(job) || is_called_so);
}

/* Reads the submit time back. A failure leaves the job to the next poll, which finds the token. */
static void confirm(struct answer *a, const char *name, const char *comment, uint32_t job_id)
{
	struct answer look = { 0 };
	job_info_msg_t *list;
	const slurm_job_info_t *job;
	struct wire_row row = { 0 };

	answer_job(a, job_id);
	job = slurm_record(&look, job_id, &list);
	js_set_int(a->body, "job_id", job_id);
	if (job && job->user_id == getuid() && has_token_of(job, comment, &row))
		tell_job(a, job, &row);
	else if (!job || !is_ours(job, &row, name))
		answer_set(a, SCHEDULER_UNCLEAR, "job %u was accepted, but cannot be read back: %s",
			   job_id, job ? "it is another one" : look.text);
	else
		disown(a, job_id, job->comment);
	slurm_free_job_info_msg(list);
}

/* What the site's plug-in says of a job that it takes; sbatch prints it. */
static void add_sites_words(struct answer *a, char *words)
{
	char *line;

	while ((line = strsep(&words, "\n"))) {
		size_t len = strlen(a->text);

		if (line[0])
			snprintf(a->text + len, sizeof(a->text) - len, "%s%s", len ? "; " : "",
				 line);
	}
}

static void wait_for_room(struct answer *a)
{
	slurm_conf_t *conf = NULL;

	slurm_load_ctl_conf(0, &conf);
	limit_no_room(a, conf ? conf->max_job_cnt : 0);
	libslurm_free_conf(conf);
}

static void submit(struct answer *a, struct draft *d)
{
	submit_response_msg_t *response = NULL;
	struct limit_catch catch;
	char limit[LIMIT_WORD_BYTES], said[COMMAND_SAID_BYTES];
	int rc, code;

	answer_acting(a);
	limit_catch_begin(&catch);
	rc = slurm_submit_batch_job(&d->desc, &response);
	code = rc == 0 ? 0 : errno;
	limit_catch_end(&catch, limit, said);
	if (code == ESLURM_ACCOUNTING_POLICY)
		limit_wait(a, limit);
	errno = code;
	if (code == EAGAIN || code == CONTROLLER_IS_FULL)
		wait_for_room(a);
	else if (rc && code != ESLURM_ACCOUNTING_POLICY)
		slurm_failed(a, code, true, said[0] ? said : "submitting the job");
	if (rc)
		return;
	/* Accepted, but it will not start as things are. */
	if (response->error_code && response->error_code != ESLURM_JOB_HELD)
		answer_set(a, SCHEDULER_OK, "%s", slurm_strerror((int)response->error_code));
	add_sites_words(a, response->job_submit_user_msg);
	confirm(a, d->desc.name, d->desc.comment, libslurm_submitted_id(response));
	slurm_free_submit_response_response_msg(response);
}

/* By the site's own sbatch. */
static void submit_by_sbatch(struct answer *a, const json_t *request)
{
	char *name = js_bytes_take(json_object_get(request, "name"));
	char *comment = js_bytes_take(json_object_get(request, "comment"));
	uint32_t job_id;

	if (!name || !comment)
		answer_set(a, SCHEDULER_REFUSED, "the request lacks a name or comment");
	else if (sbatch_submit(request, a, &job_id) == 0)
		confirm(a, name, comment, job_id);
	free(name);
	free(comment);
}

static void submit_request(const json_t *request, struct answer *a)
{
	struct err why = { 0 };
	struct draft d;

	if (json_object_get(request, "sbatch")) {
		submit_by_sbatch(a, request);
		return;
	}
	if (draft_init(&d, request, &why) < 0)
		answer_set(a, SCHEDULER_REFUSED, "%s", why.text);
	else if (d.desc.name && d.desc.comment && d.desc.script && d.desc.work_dir)
		submit(a, &d);
	else
		answer_set(a, SCHEDULER_REFUSED,
			   "the request lacks a name, comment, script or workdir");
	draft_fini(&d);
}

void op_submit(const json_t *request, struct answer *a)
{
	if (slurm_ready(a))
		return;
	submit_request(request, a);
	absent_submit_again(request, a, cluster_load, submit_request);
	closed_wait(a);
}
