/* SPDX-License-Identifier: MIT */
/* wire.c - a job's comment and its row in a poll, as text and back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/wire.h"

static const char comment_mark[] = "lbd1:";

static const char *const result_names[SCHEDULER_RESULT_COUNT] = {
	[SCHEDULER_OK] = "ok",     [SCHEDULER_REFUSED] = "refused", [SCHEDULER_GONE] = "gone",
	[SCHEDULER_DOWN] = "down", [SCHEDULER_UNCLEAR] = "unclear",
};

const char *wire_result_name(enum scheduler_result result)
{
	return result_names[result];
}

enum scheduler_result wire_result_from_name(const char *name)
{
	for (int i = 0; i < SCHEDULER_RESULT_COUNT; i++)
		if (name && strcmp(result_names[i], name) == 0)
			return (enum scheduler_result)i;
	return SCHEDULER_UNCLEAR;
}

char *wire_comment(const struct job_request *job)
{
	char *more = js_bytes_take(json_object_get(job->fields, "comment"));
	bool has_more = more && more[0];
	char *comment = xasprintf("%s%s:%s%s%s", comment_mark, job->ledger_id, job->token,
				  has_more ? " " : "", has_more ? more : "");

	free(more);
	return comment;
}

char *wire_job_name(const struct job_request *job)
{
	char *own = js_bytes_take(json_object_get(job->fields, "name"));

	return own ? own : xasprintf("lb-%s-%.*s", job->run, WIRE_NAME_DIGITS, job->token);
}

/* Exactly `count` hexadecimal digits, then one of `ends`. */
static bool take_hex(const char **at, size_t count, const char *ends, char *out)
{
	size_t len = strspn(*at, "0123456789abcdef");

	if (len != count || !strchr(ends, (*at)[len]))
		return false;
	memcpy(out, *at, len);
	out[len] = '\0';
	*at += len + ((*at)[len] != '\0');
	return true;
}

bool wire_comment_parse(const char *comment, char ledger_id[LEDGER_ID_HEX + 1],
			char token[TOKEN_HEX + 1])
{
	const char *at = comment;

	ledger_id[0] = token[0] = '\0';
	if (!comment || strncmp(comment, comment_mark, sizeof(comment_mark) - 1) != 0)
		return false;
	at += sizeof(comment_mark) - 1;
	if (take_hex(&at, LEDGER_ID_HEX, ":", ledger_id) && take_hex(&at, TOKEN_HEX, " ,;|", token))
		return true;
	ledger_id[0] = token[0] = '\0';
	return false;
}

bool wire_is_asked(const struct wire_row *r, const char *ledger_id)
{
	return r->token[0] && (!ledger_id[0] || strcmp(r->ledger_id, ledger_id) == 0);
}

/* In the place of names, where there are none. */
static const char NO_NODES[] = "-";

void wire_row_print(const struct wire_row *r, char out[WIRE_ROW_BYTES])
{
	snprintf(out, WIRE_ROW_BYTES,
		 "%s %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
		 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s %s",
		 r->token, r->ledger_id, r->job_id, r->submit_time, r->state, r->reason,
		 r->exit_code, r->is_held, r->start_time, r->end_time, r->restarts,
		 r->idle_excluded, r->failed[0] ? r->failed : NO_NODES, r->nodes);
}

/* A number and the blank behind it. */
static bool take_number(const char **at, int64_t *out)
{
	char *end;

	*out = strtoll(*at, &end, 10);
	if (end == *at || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

/* A word and the blank behind it, to out[size]. */
static bool take_word(const char **at, char *out, size_t size)
{
	size_t length = strcspn(*at, " ");

	if (length == 0 || length >= size || (*at)[length] != ' ')
		return false;
	snprintf(out, size, "%.*s", (int)length, *at);
	*at += length + 1;
	return true;
}

/* failed: [JOB_FAILED_BYTES] */
static bool take_row(const char *at, struct wire_row *r, char *failed)
{
	int64_t *numbers[] = {
		&r->job_id,  &r->submit_time, &r->state,    &r->reason,   &r->exit_code,
		&r->is_held, &r->start_time,  &r->end_time, &r->restarts, &r->idle_excluded,
	};

	if (!take_hex(&at, TOKEN_HEX, " ", r->token) ||
	    !take_hex(&at, LEDGER_ID_HEX, " ", r->ledger_id))
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!take_number(&at, numbers[i]))
			return false;
	if (!take_word(&at, failed, JOB_FAILED_BYTES))
		return false;
	if (strcmp(failed, NO_NODES) == 0)
		failed[0] = '\0';
	r->failed = failed;
	r->nodes = at;
	return true;
}

bool wire_row_parse(const char *row, struct job_status *out)
{
	struct slurm_word word;
	struct wire_row r;

	memset(out, 0, sizeof(*out));
	if (row == NULL || !take_row(row, &r, out->failed_nodes)) {
		out->failed_nodes[0] = '\0';
		return false;
	}
	word = (struct slurm_word){
		.state = (uint32_t)r.state,
		.reason = (uint32_t)r.reason,
		.exit_code = (uint32_t)r.exit_code,
		.is_held = r.is_held != 0,
	};
	slurm_word_judge(&word, out);
	snprintf(out->ref.token, sizeof(out->ref.token), "%s", r.token);
	snprintf(out->ledger_id, sizeof(out->ledger_id), "%s", r.ledger_id);
	snprintf(out->nodes, sizeof(out->nodes), "%s", r.nodes);
	out->ref.job_id = (uint32_t)r.job_id;
	out->ref.submit_time = r.submit_time;
	out->start_time = r.start_time;
	out->end_time = r.end_time;
	out->restart_count = r.restarts;
	out->idle_excluded = r.idle_excluded;
	return true;
}
