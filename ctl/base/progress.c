/* SPDX-License-Identifier: MIT */
/* progress.c - steps and times to a rate, a remaining time, and one line as wide as the
 * terminal. */
#include "ctl/base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"

enum { LEAST_BAR = 6, MOST_BAR = 30 };

void pace_reset(struct pace *pace)
{
	pace->count = 0;
	pace->next = 0;
}

static int newest(const struct pace *pace)
{
	return (pace->next + PACE_SAMPLES - 1) % PACE_SAMPLES;
}

void pace_add(struct pace *pace, int64_t step, double time)
{
	if (!isfinite(time) || step < 0)
		return;
	if (pace->count > 0 &&
	    (step <= pace->samples[newest(pace)].step || time < pace->samples[newest(pace)].time))
		pace_reset(pace);
	pace->samples[pace->next].step = step;
	pace->samples[pace->next].time = time;
	pace->next = (pace->next + 1) % PACE_SAMPLES;
	if (pace->count < PACE_SAMPLES)
		pace->count++;
}

double pace_rate(const struct pace *pace)
{
	int last = newest(pace);
	int first = (pace->next + PACE_SAMPLES - pace->count) % PACE_SAMPLES;
	double seconds;

	if (pace->count < 2)
		return NAN;
	seconds = pace->samples[last].time - pace->samples[first].time;
	if (!(seconds > 0))
		return NAN;
	return ((double)pace->samples[last].step - (double)pace->samples[first].step) / seconds;
}

int64_t pace_eta_ms(const struct pace *pace, int64_t step, int64_t target)
{
	double rate = pace_rate(pace);
	double ms;

	if (step < 0 || target <= 0 || !isfinite(rate))
		return -1;
	if (step >= target)
		return 0;
	ms = (double)(target - step) / rate * 1000;
	/* Beyond a century nobody wants to know, and the cast would overflow. */
	return ms < 3.2e12 ? (int64_t)ms : -1;
}

void progress_from_run(struct progress *progress, const json_t *run)
{
	progress->step = js_int(run, "step", -1);
	progress->target = js_int(run, "target_step", -1);
	progress->loss = js_real(run, "loss", NAN);
	progress->tokens_per_s = js_real(run, "tokens_per_s", NAN);
	progress->eta_ms = -1;
}

/* The parts in the order they are read; a higher rank goes first when there is no room. */
enum part { PART_RUN, PART_BAR, PART_STEP, PART_LOSS, PART_SPEED, PART_ETA, PART_COUNT };
static const int rank[PART_COUNT] = {
	[PART_RUN] = 5,  [PART_BAR] = 2,   [PART_STEP] = 0,
	[PART_LOSS] = 1, [PART_SPEED] = 4, [PART_ETA] = 3,
};

static void add_part(char **parts, enum part part, const char *before, const char *text,
		     const char *after)
{
	if (strcmp(text, "-") != 0)
		parts[part] = xasprintf("%s%s%s", before, text, after);
}

static void make_parts(const struct progress *p, char **parts)
{
	char text[CLOCK_TEXT_MAX > 2 * NUMBER_TEXT_MAX ? CLOCK_TEXT_MAX : 2 * NUMBER_TEXT_MAX];

	parts[PART_RUN] = xstrdup(p->run);
	if (p->step < 0) {
		parts[PART_STEP] = xstrdup(p->state);
		return;
	}
	step_text(p->step, p->target, text);
	parts[PART_STEP] = strcmp(p->state, "running") == 0
				   ? xasprintf("step %s", text)
				   : xasprintf("%s at step %s", p->state, text);
	add_part(parts, PART_LOSS, "loss ", loss_text(p->loss, text), "");
	add_part(parts, PART_SPEED, "", short_number(p->tokens_per_s, text), " tok/s");
	if (p->eta_ms >= 0)
		add_part(parts, PART_ETA, "ETA ", duration_text(p->eta_ms, text), "");
}

static int parts_width(char *const *parts)
{
	int width = -2;

	for (int i = 0; i < PART_COUNT; i++)
		width += parts[i] ? 2 + columns_of(parts[i]) : 0;
	return width;
}

static void drop_parts(char **parts, int width)
{
	while (width > 0 && parts_width(parts) > width) {
		int victim = -1;

		for (int i = 0; i < PART_COUNT; i++) {
			if (parts[i] && rank[i] > 0 && (victim < 0 || rank[i] > rank[victim]))
				victim = i;
		}
		if (victim < 0)
			return;
		free(parts[victim]);
		parts[victim] = NULL;
	}
}

char *progress_line(const struct progress *p, int width, bool utf8)
{
	char *parts[PART_COUNT] = { NULL };
	struct buf line;
	int room;

	make_parts(p, parts);
	/* The bar asks for its least size, so that it outlives parts that matter less. */
	if (width > 0 && p->step >= 0 && p->target > 0)
		parts[PART_BAR] = xasprintf("%*s", LEAST_BAR, "");
	drop_parts(parts, width);
	room = width - parts_width(parts) + LEAST_BAR;
	if (parts[PART_BAR]) {
		free(parts[PART_BAR]);
		parts[PART_BAR] = bar((double)p->step / (double)p->target,
				      room < MOST_BAR ? room : MOST_BAR, utf8);
	}
	buf_init(&line, 64 * 1024);
	for (int i = 0; i < PART_COUNT; i++) {
		if (parts[i])
			buf_addf(&line, "%s%s", line.len ? "  " : "", parts[i]);
		free(parts[i]);
	}
	/* Even the last part may be too wide. */
	if (width > 0 && line.data) {
		line.len = bytes_within(line.data, width);
		line.data[line.len] = '\0';
	}
	return buf_take(&line);
}
