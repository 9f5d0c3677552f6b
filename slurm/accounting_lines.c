/* SPDX-License-Identifier: MIT */
/* accounting_lines.c - what sacct printed, read. Pure: accounting.c runs it. */
#include "slurm/accounting_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/batch/sbatch_values.h"
#include "slurm/job_result.h"
#include "slurm/reasons.h"

enum { FIELDS = 8 };

/* --- one line --------------------------------------------------------------------------------- */

static bool number_of(const char *text, int64_t max, int64_t *out)
{
	char *end;

	*out = strtoll(text, &end, 10);
	return end != text && *end == '\0' && *out >= 0 && *out <= max;
}

/* "12", and of an array "12_3" or "12_[4-9%2]"; its steps ("12.batch") are not asked for. No tasks
 * where it is not one, or they cannot be told. */
static bool id_of(char *text, int64_t *id, struct sbatch_indices *tasks)
{
	char *of_array = strchr(text, '_');

	if (of_array) {
		*of_array++ = '\0';
		of_array += *of_array == '[';
		of_array[strcspn(of_array, "]")] = '\0';
		sbatch_array(of_array, SBATCH_ARRAY_MAX, tasks, NULL);
	}
	return number_of(text, UINT32_MAX, id) && *id > 0;
}

/* "Unknown" and "None" are no time. */
static int64_t time_of(const char *text)
{
	int64_t seconds;

	return number_of(text, INT64_MAX, &seconds) ? seconds : 0;
}

/* "3:0" or "0:9": the two bytes of a wait status. */
static bool status_of(char *text, uint32_t *status)
{
	char *colon = strchr(text, ':');
	int64_t code, signo;

	if (colon == NULL)
		return false;
	*colon = '\0';
	if (!number_of(text, 255, &code) || !number_of(colon + 1, 255, &signo))
		return false;
	*status = (uint32_t)code << 8 | (uint32_t)signo;
	return true;
}

/* "CANCELLED by 1000" */
static void note_canceller(const char *state, struct job_status *out)
{
	const char *by = strstr(state, " by ");
	int64_t uid;

	out->has_canceller = by && number_of(by + 4, UINT32_MAX, &uid);
	out->canceller = out->has_canceller ? (uint32_t)uid : 0;
}

/* Cuts the line at its bars. Only NodeList may hold anything but words and numbers, never a bar. */
static bool cut(char *line, char *fields[FIELDS])
{
	size_t n = 0;

	line[strcspn(line, "\r\n")] = '\0';
	for (char *at = line; at; n++) {
		char *bar = strchr(at, '|');

		if (n == FIELDS)
			return false;
		fields[n] = at;
		if (bar)
			*bar = '\0';
		at = bar ? bar + 1 : NULL;
	}
	return n == FIELDS;
}

/* One line: a job, or a task of an array, or tasks that never had one of their own. */
struct row {
	struct job_status job; /* of one that is over */
	char *nodes;           /* of it; owned */
	struct slurm_word word;
	struct sbatch_indices tasks; /* owned */
	bool is_over;
};

static void row_free(struct row *row)
{
	free(row->tasks.items);
	free(row->nodes);
}

static bool row_parse(const char *text, struct row *row)
{
	char *fields[FIELDS], *line = xstrdup(text);
	int64_t id;
	bool is_good;

	*row = (struct row){ .job.exit_code = -1 };
	is_good = cut(line, fields) && id_of(fields[0], &id, &row->tasks) &&
		  slurm_state_from_word(fields[1], &row->word.state) &&
		  status_of(fields[2], &row->word.exit_code) &&
		  number_of(fields[7], INT64_MAX, &row->job.ref.submit_time);
	if (is_good) {
		row->is_over = row->word.state >= SJ_COMPLETE;
		row->word.reason = slurm_reason_from_word(fields[3]);
		slurm_word_judge(&row->word, &row->job);
		note_canceller(fields[1], &row->job);
		row->job.ref.job_id = (uint32_t)id;
		row->job.start_time = time_of(fields[4]);
		row->job.end_time = time_of(fields[5]);
		row->nodes = xstrdup(strcmp(fields[6], "None assigned") != 0 ? fields[6] : "");
		row->job.nodes = row->nodes;
	}
	free(line);
	return is_good;
}

/* --- all lines of a job ----------------------------------------------------------------------- */

/* Those of one job: many where it is an array. */
struct rows {
	struct row *items; /* owned */
	size_t count, cap;
	struct array_ends ends;
	bool is_more; /* some of it is not over */
};

static void add_row(struct rows *to, const struct row *row)
{
	if (to->count == to->cap) {
		to->cap = to->cap ? 2 * to->cap : 4;
		to->items = xrealloc(to->items, to->cap * sizeof(to->items[0]));
	}
	to->items[to->count++] = *row;
	array_ends_add(&to->ends, row->word.state, row->word.reason, row->job.end_time);
}

static struct rows rows_of(const char *text, const struct job_ref *job)
{
	struct rows rows = { 0 };

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		char *copy = xstrndup(line, len);
		struct row row;
		bool is_good = row_parse(copy, &row);
		bool is_its = is_good && row.job.ref.job_id == job->job_id &&
			      row.job.ref.submit_time == job->submit_time;

		if (is_its && row.is_over)
			add_row(&rows, &row);
		else
			row_free(&row);
		rows.is_more |= is_its && !row.is_over;
		free(copy);
		line += len + (line[len] == '\n');
	}
	return rows;
}

/* The line that stands for all, as in a poll. */
static const struct row *stands_for(const struct rows *rows)
{
	const struct row *found = NULL;
	int most = -1;

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->items[i];
		int weight = array_record_weight(row->word.state, row->word.reason,
						 row->job.nodes[0] != '\0', row->job.end_time,
						 &rows->ends);

		if (weight > most)
			found = row;
		most = weight > most ? weight : most;
	}
	return found;
}

/* As "cancelled" of a poll (wire.h), and by whom those that ran. That Slurm has not seen one start
 * proves nothing here: what the controller forgot is not told. */
static void add_cancelled(json_t *list, const struct row *row)
{
	if (row->job.cause != CAUSE_KILLED || !row->job.has_canceller)
		return;
	if (row->tasks.count == 1)
		json_array_append_new(list, json_pack("[IbIIiI]", (json_int_t)row->tasks.items[0],
						      1, (json_int_t)row->job.start_time,
						      (json_int_t)row->job.end_time, 0,
						      (json_int_t)row->job.canceller));
	for (size_t i = 0; i < row->tasks.count && row->tasks.count > 1; i++)
		json_array_append_new(list, json_pack("[I]", (json_int_t)row->tasks.items[i]));
}

static json_t *body_of(const struct rows *rows, const struct row *found)
{
	json_t *cancelled = json_array(), *known = json_array(), *body;

	for (size_t i = 0; i < rows->count; i++) {
		const struct sbatch_indices *tasks = &rows->items[i].tasks;

		add_cancelled(cancelled, &rows->items[i]);
		for (size_t k = 0; k < tasks->count; k++)
			json_array_append_new(known, json_integer(tasks->items[k]));
	}
	body = json_pack("{s:o, s:o, s:b}", "cancelled", cancelled, "known", known, "more",
			 rows->is_more);
	js_set_str(body, "nodes", found ? found->nodes : "");
	return body;
}

static void rows_free(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		row_free(&rows->items[i]);
	free(rows->items);
}

bool accounting_read(const char *text, const struct job_ref *job, struct job_status *found,
		     json_t **body)
{
	struct rows rows = rows_of(text, job);
	const struct row *row = stands_for(&rows);

	*found = row ? row->job : (struct job_status){ 0 };
	memcpy(found->ref.token, job->token, sizeof(found->ref.token));
	*body = body_of(&rows, row);
	found->nodes = js_str(*body, "nodes", "");
	rows_free(&rows);
	return row != NULL;
}
