/* SPDX-License-Identifier: MIT */
/* polled.c - rows are read where the last poll's were: ten thousand jobs are megabytes. */
#include "slurm/polled.h"

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
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

bool polled_row(struct polled *p, const char *line)
{
	if (p->coming == 0) {
		p->count = 0;
		p->last = 0;
	}
	if (p->coming == p->cap) {
		p->cap = p->cap ? 2 * p->cap : FIRST_ROOM;
		p->jobs = xrealloc(p->jobs, p->cap * sizeof(p->jobs[0]));
	}
	if (!wire_row_parse(line, &p->jobs[p->coming]))
		return false;
	p->coming++;
	return true;
}

/* What a larger poll took goes back. */
static void fit(struct polled *p)
{
	if (p->cap / 2 <= p->count || p->cap <= FIRST_ROOM)
		return;
	p->cap = p->count > FIRST_ROOM ? p->count : FIRST_ROOM;
	p->jobs = xrealloc(p->jobs, p->cap * sizeof(p->jobs[0]));
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
