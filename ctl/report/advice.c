/* SPDX-License-Identifier: MIT */
/* advice.c - medians, and what follows from them. */
#include "ctl/report/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"

static const double day_ms = 86400e3;

/* --- what was told ---------------------------------------------------------------------------- */

static void add_step(struct advice_facts *f, const struct spool_line *line)
{
	int64_t step = js_int(line->line, "step", -1);

	if (step < 0 || js_int(line->line, "rank", 0) > 0)
		return;
	if (f->step >= 0 && step > f->step) {
		f->gaps = xrealloc(f->gaps, (f->gap_count + 1) * sizeof(f->gaps[0]));
		f->gaps[f->gap_count++] = (struct advice_gap){
			(double)(line->time_ms - f->step_ms) / 1000, step - f->step
		};
	}
	f->step = step;
	f->step_ms = line->time_ms;
}

static void add_save(struct advice_facts *f, const struct spool_line *line)
{
	if (!js_bool(line->line, "valid", false))
		return;
	f->saves++;
	if (f->saved_ms > 0) {
		f->between_s = xrealloc(f->between_s,
					(f->between_count + 1) * sizeof(f->between_s[0]));
		f->between_s[f->between_count++] = (double)(line->time_ms - f->saved_ms) / 1000;
	}
	f->saved_ms = line->time_ms;
}

static void add_launch(struct advice_facts *f, const struct spool_line *line)
{
	f->launches = xrealloc(f->launches, (f->launch_count + 1) * sizeof(f->launches[0]));
	f->launches[f->launch_count++] = (struct advice_launch){ .from_ms = line->time_ms,
								 .to_ms = line->time_ms,
								 .nodes = f->nodes };
	f->step = -1;
	f->saved_ms = 0;
}

static bool is(const char *type, const char *word)
{
	return strcmp(type, word) == 0;
}

void advice_add(struct advice_facts *f, const struct spool_line *line)
{
	const char *type = js_str(line->line, "type", "");
	size_t nodes = json_array_size(json_object_get(line->line, "nodes"));

	if (line->from_trainer && is(type, "step"))
		add_step(f, line);
	if (line->from_trainer)
		type = "";
	if (is(type, "attempt_start"))
		f->nodes = nodes > 0 ? (int64_t)nodes : 1;
	if (is(type, "launch_start"))
		add_launch(f, line);
	if (is(type, "checkpoint_valid"))
		add_save(f, line);
	if (f->launch_count > 0 && !is(type, "attempt_start") && !is(type, "attempt_end"))
		f->launches[f->launch_count - 1].to_ms = line->time_ms;
	if (f->launch_count > 0 && is(type, "launch_end"))
		f->launches[f->launch_count - 1].is_trouble = cause_is_trouble(
			cause_from_name(js_str(line->line, "cause", "")));
}

void advice_clear(struct advice_facts *f)
{
	free(f->gaps);
	free(f->between_s);
	free(f->launches);
	*f = (struct advice_facts){ .step = -1 };
}

/* --- what follows ----------------------------------------------------------------------------- */

static double median(double *values, size_t count)
{
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof(*values), compare_double);
	return values[count / 2];
}

static void measure_saves(const struct advice_facts *f, struct advice *out)
{
	double *values = xcalloc(f->gap_count + 1, sizeof(*values));
	size_t slowest = (size_t)f->saves < f->gap_count ? (size_t)f->saves : f->gap_count;

	for (size_t i = 0; i < f->gap_count; i++)
		values[i] = f->gaps[i].seconds / (double)f->gaps[i].steps;
	out->step_s = median(values, f->gap_count);
	for (size_t i = 0; i < f->gap_count; i++)
		values[i] = f->gaps[i].seconds - out->step_s * (double)f->gaps[i].steps;
	if (f->gap_count > 0)
		qsort(values, f->gap_count, sizeof(*values), compare_double);
	/* where each step is followed by a save, none shows how long it takes without */
	out->save_s = 2 * slowest <= f->gap_count ? median(values + f->gap_count - slowest, slowest)
						  : NAN;
	/* told in heaps, as by output that a pipe kept back: what lies between heaps is no save */
	if (out->step_s <= 0)
		out->step_s = out->save_s = NAN;
	if (out->save_s <= 0)
		out->save_s = NAN;
	free(values);
}

static void measure_troubles(const struct advice_facts *f, int64_t now_ms,
			     const struct troubles *seen, struct advice *out)
{
	struct troubles own = { 0 };
	double nodes = 1;

	for (size_t i = 0; i < f->launch_count; i++) {
		const struct advice_launch *l = &f->launches[i];
		double days = (double)(l->to_ms - l->from_ms) / day_ms * (double)l->nodes;
		double fades = trouble_fades((double)(now_ms - l->to_ms));

		nodes = (double)l->nodes;
		out->troubles += l->is_trouble;
		out->node_days += days;
		own.count += l->is_trouble ? fades : 0;
		own.node_days += days * fades;
	}
	out->mtbf_s = trouble_mtbf_s(seen ? seen : &own, nodes);
}

/* Saving, and half an interval done again after each trouble. */
static double lost(double interval_s, double save_s, double mtbf_s)
{
	return save_s / (interval_s + save_s) + (interval_s + save_s) / 2 / mtbf_s;
}

void advice_work_out(struct advice_facts *f, int64_t now_ms, const struct troubles *seen,
		     struct advice *out)
{
	*out = (struct advice){ .saves = f->saves };
	measure_saves(f, out);
	measure_troubles(f, now_ms, seen, out);
	out->interval_s = median(f->between_s, f->between_count) - out->save_s;
	out->best_s = save_interval_s(out->save_s, out->mtbf_s);
	if (out->best_s < out->step_s) /* none is saved within a step */
		out->best_s = out->step_s;
	out->lost_now = lost(out->interval_s, out->save_s, out->mtbf_s);
	out->lost_best = lost(out->best_s, out->save_s, out->mtbf_s);
}
