/* SPDX-License-Identifier: MIT */
/* gist.c - what asks for a person, as a ladder of questions: the first that holds is the fact. */
#include "ctl/top/gist.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"

enum {
	STALLED_TIMES = 10,          /* as long as usual between two steps … */
	STALLED_MS = 30 * 1000,      /* … and at least so long */
	UNSAVED_MS = 60 * 60 * 1000, /* a run that works so long should have a checkpoint */
	LOST_STEPS = 8,
	FRESH_END_MS = 60 * 60 * 1000,
};
static const double slow_share = 0.7;

/* Milliseconds of a time of the protocol; 0 = not known. */
static int64_t at_ms(const json_t *object, const char *key)
{
	return llround(fmax(0, fmin(js_real(object, key, 0), 253402300799.0)) * 1000);
}

static int64_t since(int64_t now_ms, int64_t then_ms)
{
	if (then_ms == 0)
		return -1;
	return now_ms > then_ms ? now_ms - then_ms : 0;
}

static enum worry say(struct gist *g, enum worry worry, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static enum worry say(struct gist *g, enum worry worry, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(g->fact, sizeof(g->fact), fmt, args);
	va_end(args);
	return worry;
}

static enum worry judge_ended(struct gist *g, int64_t now_ms)
{
	char ago[CLOCK_TEXT_MAX];
	int64_t ended_ms = since(now_ms, at_ms(g->run, "ended"));
	const char *cause = js_str(g->run, "cause", run_state_name(g->state));
	const char *text = js_str(g->run, "text", "");

	duration_text(ended_ms, ago);
	if (g->state != RUN_FAILED)
		return say(g, WORRY_OVER, "%s %s ago%s%s", run_state_name(g->state), ago,
			   g->state == RUN_KILLED && text[0] ? ": " : "",
			   g->state == RUN_KILLED ? text : "");
	return say(g, ended_ms < FRESH_END_MS ? WORRY_FAILED : WORRY_OLD_END, "%s %s ago%s%s",
		   cause, ago, text[0] ? ": " : "", text);
}

static enum worry judge_waiting(struct gist *g, int64_t now_ms)
{
	const char *waits_for = js_str(g->run, "waits_for", "");
	char text[CLOCK_TEXT_MAX];
	int64_t next_ms = at_ms(g->run, "next_attempt") - now_ms;

	switch (g->state) {
	case RUN_BACKOFF:
		return say(g, WORRY_BACKOFF, "%s; next attempt in %s: %s",
			   js_str(g->run, "cause", "failed"),
			   duration_text(next_ms > 0 ? next_ms : 0, text),
			   js_str(g->run, "text", ""));
	case RUN_HELD:
		return say(g, WORRY_HELD, "on hold: %s", js_str(g->run, "text", ""));
	case RUN_QUEUED:
		return say(g, WORRY_WAITS, "waits %s%s%s",
			   duration_text(since(now_ms, g->created_ms), text),
			   waits_for[0] ? ": " : "", waits_for);
	default:
		return say(g, waits_for[0] ? WORRY_WAITS : WORRY_BEGINS, "%s%s",
			   waits_for[0] ? "waits: " : "is being submitted", waits_for);
	}
}

/* Steps tell none any more: for longer than twice the longest gap between two that did (some
 * trainers tell one every ten steps), or in all the newest ones. */
static bool has_lost_loss(const struct gist *g)
{
	size_t gap = 0, longest = 0;
	bool is_any = false;

	for (size_t i = 0; i < g->loss_count; i++) {
		if (!isfinite(g->losses[i])) {
			gap++;
			continue;
		}
		longest = is_any && gap > longest ? gap : longest;
		is_any = true;
		gap = 0;
	}
	return gap >= LOST_STEPS && gap > 2 * longest && isfinite(g->loss);
}

static enum worry judge_running(struct gist *g, int64_t now_ms)
{
	char a[CLOCK_TEXT_MAX], b[CLOCK_TEXT_MAX];
	int64_t launched_ms = since(now_ms, at_ms(g->run, "launched"));

	if (g->idle_ms >= STALLED_MS && g->usual_ms >= 0 &&
	    g->idle_ms > STALLED_TIMES * g->usual_ms)
		return say(g, WORRY_STALLED, "no step for %s, usual %s",
			   duration_text(g->idle_ms, a),
			   g->usual_ms < 1000 ? "under 1s" : duration_text(g->usual_ms, b));
	if (has_lost_loss(g))
		return say(g, WORRY_LOSS, "the loss is no number since step %lld",
			   (long long)g->step);
	if (g->eta_ms >= 0 && g->limit_ms >= 0 && g->eta_ms > g->limit_ms)
		return say(g, WORRY_LATE, "needs %s, its time limit comes in %s",
			   duration_text(g->eta_ms, a), duration_text(g->limit_ms, b));
	if (g->tokens_per_s < slow_share * g->median_tokens_per_s)
		return say(g, WORRY_SLOW, "%.0f%% of its usual speed",
			   100 * g->tokens_per_s / g->median_tokens_per_s);
	if (g->gpus_idle > 0 && g->idle_ms >= 0)
		return say(g, WORRY_IDLE, "%zu of %zu GPUs idle", g->gpus_idle, g->gpus_known);
	if (g->saved_ms < 0 && launched_ms >= UNSAVED_MS)
		return say(g, WORRY_UNSAVED, "no checkpoint in %s", duration_text(launched_ms, a));
	/* not yet, or an array, whose tasks have their own */
	if (g->idle_ms < 0 && launched_ms < 0)
		return say(g, WORRY_BEGINS, "runs for %s",
			   duration_text(since(now_ms, at_ms(g->run, "attempt_started")), a));
	if (g->idle_ms < 0)
		return say(g, WORRY_BEGINS, "started %s ago, no step yet",
			   duration_text(launched_ms, a));
	if (g->eta_ms >= 0)
		return say(g, WORRY_WELL, "done in %s", duration_text(g->eta_ms, a));
	return say(g, WORRY_WELL, "runs");
}

static enum worry judge(struct gist *g, int64_t now_ms)
{
	if (run_state_is_final(g->state))
		return judge_ended(g, now_ms);
	if (g->state == RUN_STOPPING)
		return say(g, WORRY_STOPPING, "is asked to %s: %s", js_str(g->run, "wanted", "end"),
			   js_str(g->run, "text", ""));
	/* a job that is suspended waits although it has begun */
	if (g->state == RUN_RUNNING && !js_str(g->run, "waits_for", NULL))
		return judge_running(g, now_ms);
	return judge_waiting(g, now_ms);
}

static void read_losses(struct gist *g)
{
	const json_t *list = json_object_get(g->run, "losses"), *loss;
	size_t i;

	g->losses = xcalloc(json_array_size(list) + 1, sizeof(double));
	json_array_foreach(list, i, loss) {
		g->losses[g->loss_count++] = json_is_number(loss) ? json_number_value(loss) : NAN;
	}
}

/* Up to 2 %: as lbrun judges them. */
static void read_gpus(struct gist *g)
{
	enum { IDLE_PERCENT = 2 };
	const json_t *use;
	size_t i;

	g->gpu_use = json_object_get(g->run, "gpu_use");
	json_array_foreach(g->gpu_use, i, use) {
		if (!json_is_integer(use))
			continue;
		g->gpus_known++;
		g->gpus_idle += json_integer_value(use) <= IDLE_PERCENT;
	}
}

/* Times are told while it runs only: of a run in the queue the last step is no sign of anything. */
static void read_times(struct gist *g, int64_t now_ms)
{
	int64_t saved_ms = at_ms(json_object_get(g->run, "checkpoint"), "time");
	int64_t limit_ms = at_ms(g->run, "limit");
	double step_s = js_real(g->run, "step_s", NAN);

	g->eta_ms = g->limit_ms = g->saved_ms = g->idle_ms = g->usual_ms = -1;
	if (g->state != RUN_RUNNING && g->state != RUN_STOPPING)
		return;
	g->saved_ms = since(now_ms, saved_ms);
	g->idle_ms = since(now_ms, at_ms(g->run, "last_step_time"));
	if (limit_ms > 0)
		g->limit_ms = limit_ms > now_ms ? limit_ms - now_ms : 0;
	if (isfinite(step_s) && step_s >= 0 && step_s < 1e9)
		g->usual_ms = llround(step_s * 1000);
	if (g->target >= g->step && g->step >= 0 && g->usual_ms >= 0)
		g->eta_ms = llround(fmin(step_s * (double)(g->target - g->step), 1e12) * 1000);
}

void gist_make(const json_t *run, int64_t now_ms, struct gist *out)
{
	*out = (struct gist){
		.run = run,
		.name = js_str(run, "name", "?"),
		.group = js_str(run, "group", ""),
		.state = run_state_from_name(js_str(run, "state", "")),
		.attempt = js_int(run, "attempt", 0),
		.launch = js_int(run, "launch", 0),
		.step = js_int(run, "step", -1),
		.target = js_int(run, "target_step", -1),
		.loss = js_real(run, "loss", NAN),
		.tokens_per_s = js_real(run, "tokens_per_s", NAN),
		.median_tokens_per_s = js_real(run, "median_tokens_per_s", NAN),
		.created_ms = at_ms(run, "created"),
	};
	read_losses(out);
	read_gpus(out);
	read_times(out, now_ms);
	out->worry = judge(out, now_ms);
}

void gist_clear(struct gist *gist)
{
	free(gist->losses);
	gist->losses = NULL;
}

enum color worry_color(enum worry worry)
{
	if (worry >= WORRY_BACKOFF)
		return COLOR_BAD;
	if (worry >= WORRY_WAITS)
		return COLOR_WAIT;
	return worry == WORRY_OVER ? COLOR_DIM : COLOR_NONE;
}
