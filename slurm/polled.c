/* SPDX-License-Identifier: MIT */
/* polled.c - rows are read where the last poll's were: ten thousand jobs are megabytes. */
#include "slurm/polled.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/wire.h"

enum {
	FULL_POLL_MS = 60000, /* a full answer at least this often, whatever the clocks say */
	FIRST_ROOM = 64
};

int64_t polled_have(struct polled *p)
{
	p->coming = 0;
	return p->last && clock_mono_ms() - p->told_ms < FULL_POLL_MS ? p->last : 0;
}

static void resize(struct polled *p, size_t cap)
{
	for (size_t i = cap; i < p->cap; i++) {
		free(p->names[i].nodes);
		free(p->names[i].failed_nodes);
	}
	p->jobs = xrealloc(p->jobs, cap * sizeof(p->jobs[0]));
	p->names = xrealloc(p->names, cap * sizeof(p->names[0]));
	for (size_t i = p->cap; i < cap; i++)
		p->names[i] = (struct polled_names){ 0 };
	p->cap = cap;
}

bool polled_row(struct polled *p, char *line)
{
	struct polled_names *names;
	struct job_status *job;

	if (p->coming == 0) {
		p->count = 0;
		p->last = 0;
	}
	if (p->coming == p->cap)
		resize(p, p->cap ? 2 * p->cap : FIRST_ROOM);
	job = &p->jobs[p->coming];
	names = &p->names[p->coming];
	if (!wire_row_parse(line, job))
		return false;
	text_keep(&names->nodes, job->nodes);
	text_keep(&names->failed_nodes, job->failed_nodes);
	job->nodes = names->nodes;
	job->failed_nodes = names->failed_nodes;
	p->coming++;
	return true;
}

/* What a larger poll took goes back. */
static void fit(struct polled *p)
{
	if (p->cap / 2 <= p->count || p->cap <= FIRST_ROOM)
		return;
	resize(p, p->count > FIRST_ROOM ? p->count : FIRST_ROOM);
}

int polled_answer(struct polled *p, const json_t *body)
{
	if (js_bool(body, "same", false) && p->last && p->coming == 0)
		return 0;
	if (js_int(body, "rows", -1) != (int64_t)p->coming)
		return -1;
	p->count = p->coming;
	p->last = js_int(body, "last", 0);
	p->told_ms = clock_mono_ms();
	fit(p);
	return 0;
}

void polled_clear(struct polled *p)
{
	resize(p, 0);
	free(p->jobs);
	free(p->names);
	*p = (struct polled){ 0 };
}
