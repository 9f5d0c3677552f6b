/* SPDX-License-Identifier: MIT */
/* wire.c - see wire.h. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "slurm/endings.h"
#include "slurm/wire.h"

static const char comment_mark[] = "lbd1:";

static const char *const result_names[SCHEDULER_RESULT_COUNT] = {
	[SCHEDULER_OK] = "ok",
	[SCHEDULER_REFUSED] = "refused",
	[SCHEDULER_GONE] = "gone",
	[SCHEDULER_DOWN] = "down",
	[SCHEDULER_UNCLEAR] = "unclear",
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
	bool has_more = job->comment && job->comment[0];

	return xasprintf("%s%s:%s%s%s", comment_mark, job->ledger_id, job->token,
			 has_more ? " " : "", has_more ? job->comment : "");
}

char *wire_job_name(const struct job_request *job)
{
	return xasprintf("lb-%s-%.*s", job->run, WIRE_NAME_DIGITS, job->token);
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
	if (take_hex(&at, LEDGER_ID_HEX, ":", ledger_id) && take_hex(&at, TOKEN_HEX, " ", token))
		return true;
	ledger_id[0] = token[0] = '\0';
	return false;
}

static bool row_is_sound(const json_t *row)
{
	if (json_array_size(row) != WIRE_ROW_COUNT)
		return false;
	for (size_t i = 0; i < WIRE_ROW_COUNT; i++) {
		bool is_text = i == WIRE_ROW_TOKEN || i == WIRE_ROW_LEDGER || i == WIRE_ROW_NODES;
		const json_t *value = json_array_get(row, i);

		if (is_text ? !json_is_string(value) : !json_is_integer(value))
			return false;
	}
	return true;
}

static const char *row_text(const json_t *row, enum wire_row at)
{
	return json_string_value(json_array_get(row, at));
}

static int64_t row_int(const json_t *row, enum wire_row at)
{
	return json_integer_value(json_array_get(row, at));
}

bool wire_row_parse(const json_t *row, struct job_status *out)
{
	struct slurm_word word;

	memset(out, 0, sizeof(*out));
	if (!row_is_sound(row) || strlen(row_text(row, WIRE_ROW_TOKEN)) != TOKEN_HEX ||
	    strlen(row_text(row, WIRE_ROW_LEDGER)) != LEDGER_ID_HEX)
		return false;
	word = (struct slurm_word){
		.state = (uint32_t)row_int(row, WIRE_ROW_STATE),
		.reason = (uint32_t)row_int(row, WIRE_ROW_REASON),
		.exit_code = (uint32_t)row_int(row, WIRE_ROW_EXIT_CODE),
		.is_held = row_int(row, WIRE_ROW_HELD) != 0,
	};
	slurm_word_judge(&word, out);
	snprintf(out->ref.token, sizeof(out->ref.token), "%s", row_text(row, WIRE_ROW_TOKEN));
	snprintf(out->ledger_id, sizeof(out->ledger_id), "%s", row_text(row, WIRE_ROW_LEDGER));
	snprintf(out->nodes, sizeof(out->nodes), "%s", row_text(row, WIRE_ROW_NODES));
	out->ref.job_id = (uint32_t)row_int(row, WIRE_ROW_JOB_ID);
	out->ref.submit_time = row_int(row, WIRE_ROW_SUBMIT_TIME);
	out->start_time = row_int(row, WIRE_ROW_START_TIME);
	out->end_time = row_int(row, WIRE_ROW_END_TIME);
	out->restart_count = row_int(row, WIRE_ROW_RESTARTS);
	return true;
}
