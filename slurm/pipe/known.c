/* SPDX-License-Identifier: MIT */
/* known.c - a list of a poll's jobs, sorted when one is looked up. */
#include "slurm/pipe/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/pipe/operations.h"

struct job {
	int64_t job_id, submit_time;
	char token[TOKEN_HEX + 1], ledger_id[LEDGER_ID_HEX + 1];
};

static struct list {
	struct job *jobs;
	size_t count, cap;
	bool is_sorted;
} last, next;

static int by_number(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	if (x->job_id != y->job_id)
		return x->job_id < y->job_id ? -1 : 1;
	return (x->submit_time > y->submit_time) - (x->submit_time < y->submit_time);
}

void known_turn(void)
{
	struct list spare = last;

	last = next;
	next = spare;
	next.count = 0;
}

void known_note(const struct wire_row *row)
{
	struct job *job;

	if (next.count == next.cap) {
		next.cap = next.cap ? 2 * next.cap : 64;
		next.jobs = xrealloc(next.jobs, next.cap * sizeof(next.jobs[0]));
	}
	next.is_sorted = false;
	job = &next.jobs[next.count++];
	*job = (struct job){ .job_id = row->job_id, .submit_time = row->submit_time };
	memcpy(job->token, row->token, sizeof(job->token));
	memcpy(job->ledger_id, row->ledger_id, sizeof(job->ledger_id));
}

static bool find_in(struct list *list, struct wire_row *row)
{
	struct job wanted = { .job_id = row->job_id, .submit_time = row->submit_time };
	const struct job *job = NULL;

	if (list->count > 1 && !list->is_sorted)
		qsort(list->jobs, list->count, sizeof(list->jobs[0]), by_number);
	list->is_sorted = true;
	if (list->count > 0)
		job = bsearch(&wanted, list->jobs, list->count, sizeof(list->jobs[0]), by_number);
	if (job == NULL)
		return false;
	memcpy(row->token, job->token, sizeof(row->token));
	memcpy(row->ledger_id, job->ledger_id, sizeof(row->ledger_id));
	return true;
}

bool known_find(struct wire_row *row)
{
	return find_in(&last, row);
}

bool known_find_now(struct wire_row *row)
{
	return find_in(&next, row);
}

void op_known(const json_t *request, struct answer *a)
{
	const char *ledger_id = js_str(request, "ledger", "");
	json_t *jobs = json_object_get(request, "jobs"), *job;
	size_t i;

	(void)a;
	json_array_foreach(jobs, i, job) {
		const char *token = json_string_value(json_array_get(job, 0));
		struct wire_row row = {
			.job_id = json_integer_value(json_array_get(job, 1)),
			.submit_time = json_integer_value(json_array_get(job, 2)),
		};

		snprintf(row.token, sizeof(row.token), "%s", token ? token : "");
		snprintf(row.ledger_id, sizeof(row.ledger_id), "%s", ledger_id);
		known_note(&row);
	}
}
