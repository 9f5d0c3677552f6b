/* SPDX-License-Identifier: MIT */
/* wire.c - a job's comment and its row in a poll, as text and back. */
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
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

char *wire_comment_with(const char *ledger_id, const char *token, const char *more)
{
	bool has_more = more && more[0];

	return xasprintf("%s%s:%s%s%s", comment_mark, ledger_id, token, has_more ? " " : "",
			 has_more ? more : "");
}

char *wire_comment(const struct job_request *job)
{
	char *more = js_bytes_take(json_object_get(job->fields, "comment"));
	char *comment = wire_comment_with(job->ledger_id, job->token, more);

	free(more);
	return comment;
}

char *wire_job_name(const struct job_request *job)
{
	char *own = js_bytes_take(json_object_get(job->fields, "name"));

	return own ? own : xasprintf("lb-%s-%.*s", job->run, WIRE_NAME_DIGITS, job->token);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Exactly `count` hexadecimal digits, then one of `ends`. */
static bool take_hex(const char **at, size_t count, const char *ends, char *out)
{
	size_t len = 0;

	while (len < count && is_hex((*at)[len]))
		len++;
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

/* --- rows ------------------------------------------------------------------------------------- */

/* In the place of names, where there are none. */
static const char NO_NODES[] = "-";

enum { NUMBERS = 12, DIGITS = 20 };

/* Each puts a blank behind it. */
static char *put_text(char *at, const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	memcpy(at, text, len);
	at[len] = ' ';
	return at + len + 1;
}

static char *put_number(char *at, int64_t number)
{
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	char digits[DIGITS];
	int count = 0;

	do {
		digits[count++] = (char)('0' + rest % 10);
	} while ((rest /= 10) > 0);
	if (number < 0)
		*at++ = '-';
	while (count > 0)
		*at++ = digits[--count];
	*at++ = ' ';
	return at;
}

bool wire_failed_add(struct buf *failed, const char *node)
{
	if (buf_addf(failed, "%s%s", failed->len ? "," : "", node) == 0)
		return true;
	buf_drop(failed, failed->len);
	return false;
}

void wire_row_add(struct buf *out, const struct wire_row *r)
{
	const int64_t numbers[NUMBERS] = {
		r->job_id,     r->submit_time, r->state,         r->reason,
		r->exit_code,  r->is_held,     r->start_time,    r->end_time,
		r->limit_time, r->restarts,    r->idle_excluded, r->controller_start,
	};
	const char *failed = r->failed[0] ? r->failed : NO_NODES;
	size_t failed_len = strlen(failed), nodes_len = strlen(r->nodes);
	char *line = xmalloc(TOKEN_HEX + LEDGER_ID_HEX + NUMBERS * (DIGITS + 2) + failed_len +
			     nodes_len + 4);
	char *at = put_text(line, r->token, TOKEN_HEX);

	at = put_text(at, r->ledger_id, LEDGER_ID_HEX);
	for (int i = 0; i < NUMBERS; i++)
		at = put_number(at, numbers[i]);
	at = put_text(at, failed, failed_len);
	at = put_text(at, r->nodes, nodes_len);
	at[-1] = '\n';
	buf_add(out, line, (size_t)(at - line));
	free(line);
}

/* A number and the blank behind it. */
static bool take_number(const char **at, int64_t *out)
{
	bool is_negative = **at == '-';
	const char *digits = *at + is_negative, *end = digits;
	int64_t number = 0;

	while (*end >= '0' && *end <= '9' &&
	       end - digits < DIGITS - 2) /* all that an int64_t holds */
		number = number * 10 + (*end++ - '0');
	if (end == digits || *end != ' ')
		return false;
	*out = is_negative ? -number : number;
	*at = end + 1;
	return true;
}

/* To its places in *job, and what is to be judged. */
static bool take_row(char *row, struct job_status *job, struct slurm_word *word)
{
	const char *at = row;
	char *end;
	int64_t job_id = 0, state = 0, reason = 0, exit_code = 0, is_held = 0;
	int64_t *const numbers[NUMBERS] = {
		&job_id,
		&job->ref.submit_time,
		&state,
		&reason,
		&exit_code,
		&is_held,
		&job->start_time,
		&job->end_time,
		&job->limit_time,
		&job->restart_count,
		&job->idle_excluded,
		&job->controller_start,
	};

	if (!take_hex(&at, TOKEN_HEX, " ", job->ref.token) ||
	    !take_hex(&at, LEDGER_ID_HEX, " ", job->ledger_id))
		return false;
	for (int i = 0; i < NUMBERS; i++)
		if (!take_number(&at, numbers[i]))
			return false;
	end = strchr(at, ' ');
	if (!end || end == at)
		return false;
	*end = '\0';
	job->failed_nodes = strcmp(at, NO_NODES) == 0 ? "" : at;
	job->nodes = end + 1;
	job->ref.job_id = (uint32_t)job_id;
	*word = (struct slurm_word){
		.state = (uint32_t)state,
		.reason = (uint32_t)reason,
		.exit_code = (uint32_t)exit_code,
		.is_held = is_held != 0,
	};
	return true;
}

bool wire_row_parse(char *row, struct job_status *out)
{
	struct slurm_word word;

	out->has_canceller = false;
	out->canceller = 0;
	if (!take_row(row, out, &word))
		return false;
	slurm_word_judge(&word, out);
	return true;
}
