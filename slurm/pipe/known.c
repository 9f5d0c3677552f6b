/* SPDX-License-Identifier: MIT */
/* known.c - a list of a poll's jobs, sorted when the next poll looks one up. */
#include "slurm/pipe/known.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

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
	next.is_sorted = false;
}

void known_note(const struct wire_row *row)
{
	struct job *job;

	if (next.count == next.cap) {
		next.cap = next.cap ? 2 * next.cap : 64;
		next.jobs = xrealloc(next.jobs, next.cap * sizeof(next.jobs[0]));
	}
	job = &next.jobs[next.count++];
	*job = (struct job){ .job_id = row->job_id, .submit_time = row->submit_time };
	memcpy(job->token, row->token, sizeof(job->token));
	memcpy(job->ledger_id, row->ledger_id, sizeof(job->ledger_id));
}

bool known_find(struct wire_row *row)
{
	struct job wanted = { .job_id = row->job_id, .submit_time = row->submit_time };
	const struct job *job = NULL;

	if (last.count > 1 && !last.is_sorted)
		qsort(last.jobs, last.count, sizeof(last.jobs[0]), by_number);
	last.is_sorted = true;
	if (last.count > 0)
		job = bsearch(&wanted, last.jobs, last.count, sizeof(last.jobs[0]), by_number);
	if (job == NULL)
		return false;
	memcpy(row->token, job->token, sizeof(row->token));
	memcpy(row->ledger_id, job->ledger_id, sizeof(row->ledger_id));
	return true;
}
