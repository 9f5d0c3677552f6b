/* SPDX-License-Identifier: MIT */
/* look/ - commands that only look.
 *
 * status.c - lbctl status: one page about one run, most important things first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/code.h"
#include "ctl/look/last_output.h"
#include "ctl/base/progress.h"
#include "ctl/base/starts.h"
#include "ctl/team/ask.h"

enum { STEPS_PER_QUESTION = 10000, QUESTIONS = 4, LABEL_WIDTH = 12 };

/* of the run's steps */
struct history {
	double *losses;
	size_t count;
	struct pace pace;
};

static void history_add(struct history *h, const json_t *steps)
{
	const json_t *step;
	size_t i;

	h->losses = xrealloc(h->losses, (h->count + json_array_size(steps)) * sizeof(double));
	json_array_foreach(steps, i, step) {
		h->losses[h->count++] = js_real(step, "loss", NAN);
		pace_add(&h->pace, js_int(step, "step", -1), js_real(step, "time", NAN));
	}
}

/* A picture is a nicety: whatever goes wrong, the page is shown without it. */
static void history_read(struct ctl *ctl, const char *run, struct history *h)
{
	int64_t cursor = 0;

	for (int i = 0; i < QUESTIONS; i++) {
		struct err quiet = { 0 };
		json_t *args = json_pack("{s:I, s:i}", "after", (json_int_t)cursor, "limit",
					 STEPS_PER_QUESTION);
		json_t *data = ask_about(ctl, VERB_PROGRESS, run, args, &quiet);
		const json_t *steps = json_object_get(data, "steps");
		int64_t next = js_int(data, "cursor", cursor);
		bool more = json_array_size(steps) > 0 && next > cursor;

		history_add(h, steps);
		json_decref(data);
		if (!more)
			return;
		cursor = next;
	}
}

static void label(const struct ctl *ctl, const char *name)
{
	printf("  %s%-*s%s", color_code(&ctl->out, COLOR_DIM), LABEL_WIDTH, name,
	       color_code(&ctl->out, COLOR_NONE));
}

/* Prints text from elsewhere. */
static void show(const struct ctl *ctl, const char *before, const char *text)
{
	char *shown = clean_copy(text, &ctl->out);

	printf("%s%s", before, shown);
	free(shown);
}

static int picture_columns(const struct ctl *ctl, int taken)
{
	int columns = (ctl->out.width ? ctl->out.width : 80) - LABEL_WIDTH - 2 - taken - 2;

	return columns > 30 ? 30 : columns;
}

static void show_step(const struct ctl *ctl, const struct progress *p)
{
	char text[2 * NUMBER_TEXT_MAX];
	int columns;

	if (p->step < 0)
		return;
	label(ctl, "step");
	step_text(p->step, p->target, text);
	columns = picture_columns(ctl, (int)strlen(text) + 5);
	printf("%s", text);
	if (p->target > 0) {
		double part = (double)p->step / (double)p->target;
		char *picture = bar(part, columns < 4 ? 0 : columns, ctl->out.utf8);

		printf(" %3.0f%%  %s", floor(100 * fmin(part, 1)), picture);
		free(picture);
	}
	putchar('\n');
}

/* "2, 4, 7-12" */
static void show_tasks(const struct ctl *ctl, const json_t *run, const char *key, const char *what)
{
	enum { MANY = 8 };
	const json_t *tasks = json_object_get(run, key);
	size_t count = json_array_size(tasks), to;
	int shown = 0;

	if (count == 0)
		return;
	label(ctl, what);
	fputs(count > 1 ? "tasks" : "task", stdout);
	for (size_t from = 0; from < count && shown < MANY; from = to, shown++) {
		json_int_t first = json_integer_value(json_array_get(tasks, from)), last = first;

		for (to = from + 1;
		     to < count && json_integer_value(json_array_get(tasks, to)) == last + 1; to++)
			last++;
		printf("%s %lld", shown > 0 ? "," : "", (long long)first);
		if (last > first)
			printf("-%lld", (long long)last);
		if (shown + 1 == MANY && to < count)
			printf(", ... (%zu in all)", count);
	}
	putchar('\n');
}

static void show_loss(const struct ctl *ctl, const struct progress *p, const struct history *h)
{
	char text[NUMBER_TEXT_MAX];
	char *picture;

	if (!isfinite(p->loss))
		return;
	label(ctl, "loss");
	loss_text(p->loss, text);
	picture = sparkline(h->losses, h->count, picture_columns(ctl, (int)strlen(text)),
			    ctl->out.utf8);
	printf("%s%s%s\n", text, picture[0] ? "  " : "", picture);
	free(picture);
}

static void show_speed(const struct ctl *ctl, const json_t *run, const struct progress *p)
{
	double mfu = js_real(run, "mfu", NAN);
	char text[NUMBER_TEXT_MAX], eta[CLOCK_TEXT_MAX];

	if (!isfinite(p->tokens_per_s) && p->eta_ms < 0)
		return;
	label(ctl, "speed");
	if (isfinite(p->tokens_per_s))
		printf("%s tokens/s", short_number(p->tokens_per_s, text));
	if (isfinite(p->tokens_per_s) && isfinite(mfu))
		printf(", %.1f%% MFU", 100 * mfu);
	if (p->eta_ms >= 0)
		printf("%sdone in %s", isfinite(p->tokens_per_s) ? ", " : "",
		       duration_text(p->eta_ms, eta));
	putchar('\n');
}

/* Of the newest launch whose start is over. */
static const json_t *newest_started(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts"), *launches, *launch;

	for (size_t i = json_array_size(attempts); i-- > 0;) {
		launches = json_object_get(json_array_get(attempts, i), "launches");
		for (size_t k = json_array_size(launches); k-- > 0;) {
			launch = json_array_get(launches, k);
			if (json_object_size(json_object_get(launch, "start")) > 0)
				return launch;
		}
	}
	return NULL;
}

static void show_start(const struct ctl *ctl, const json_t *run)
{
	const json_t *launch = newest_started(run);
	json_t *phases = json_object_get(launch, "start");
	char span[CLOCK_TEXT_MAX];
	char *text;

	if (!launch)
		return;
	label(ctl, "start");
	text = starts_text(phases, 1, &ctl->out);
	printf("%s %s: %s\n", span_text(starts_sum(phases), span),
	       js_int(launch, "first_step", -1) >= 0 ? "to the first step" : "without a step",
	       text);
	free(text);
}

static void show_checkpoint(const struct ctl *ctl, const json_t *run)
{
	const json_t *checkpoint = json_object_get(run, "checkpoint");

	if (!json_is_object(checkpoint))
		return;
	label(ctl, "checkpoint");
	if (js_int(checkpoint, "step", -1) >= 0)
		printf("step %lld", (long long)js_int(checkpoint, "step", -1));
	else
		fputs("of an unknown step", stdout);
	fputs(js_bool(checkpoint, "valid", true) ? "" : " (not valid)", stdout);
	show(ctl, ", ", js_str(checkpoint, "path", NULL));
	putchar('\n');
}

/* Of a folder that may not be read, or of a run from elsewhere, nothing. */
static void show_code(const struct ctl *ctl, const char *dir)
{
	json_t *code = dir ? code_load(dir, NULL) : NULL;
	char *text = json_object_get(code, "root") ? code_text(code) : NULL;
	char *changed = text ? code_changed(dir) : NULL;

	if (text) {
		label(ctl, "code");
		show(ctl, "", text);
		fputs(js_bool(code, "snapshot", false) ? ", a copy of it" : "", stdout);
		if (changed)
			show(ctl, "; ", changed);
		putchar('\n');
	}
	free(changed);
	free(text);
	json_decref(code);
}

static void show_origin(const struct ctl *ctl, const json_t *run)
{
	char time[CLOCK_TEXT_MAX];

	label(ctl, "submitted");
	show(ctl, "", clock_text(time_ms(run, "created"), time));
	show(ctl, " by ", js_str(run, "owner", NULL));
	if (js_str(run, "scheduler", NULL))
		show(ctl, ", ", js_str(run, "scheduler", NULL));
	putchar('\n');
	label(ctl, "folder");
	show(ctl, "", js_str(run, "dir", NULL));
	putchar('\n');
	show_code(ctl, js_str(run, "dir", NULL));
}

/* ", 2m10s" from start to end, or to now while it lasts. */
static void show_duration(const json_t *thing)
{
	int64_t start_ms = time_ms(thing, "start_time");
	int64_t end_ms = time_ms(thing, "end_time");
	char text[CLOCK_TEXT_MAX];

	if (!end_ms)
		end_ms = clock_wall_ms();
	/* Clocks of hosts differ; what would be negative is not worth showing. */
	if (start_ms && end_ms >= start_ms)
		printf(", %s", duration_text(end_ms - start_ms, text));
}

static void show_launch(const struct ctl *ctl, const json_t *launch)
{
	int64_t first = js_int(launch, "first_step", -1);
	int64_t last = js_int(launch, "last_step", -1);

	printf("    launch %lld: ", (long long)js_int(launch, "number", 0));
	show(ctl, "", js_str(launch, "cause", "running"));
	if (first >= 0 && last >= 0)
		printf(", steps %lld to %lld", (long long)first, (long long)last);
	show_duration(launch);
	putchar('\n');
}

static void show_job(const struct ctl *ctl, const json_t *attempt)
{
	const json_t *node;
	int64_t job = js_int(attempt, "job_id", 0);
	size_t i;

	if (job > 0)
		printf(", job %lld", (long long)job);
	json_array_foreach(json_object_get(attempt, "nodes"), i, node) {
		show(ctl, i == 0 ? " on " : ",", json_string_value(node));
	}
}

static void show_attempt(const struct ctl *ctl, const json_t *attempt)
{
	const json_t *launch;
	int64_t code = js_int(attempt, "exit_code", -1);
	int64_t number = js_int(attempt, "signal", 0);
	int64_t resumed = js_int(attempt, "resumed_from_step", -1);
	size_t i;

	printf("  attempt %lld: ", (long long)js_int(attempt, "number", 0));
	show(ctl, "", js_str(attempt, "cause", js_str(attempt, "state", NULL)));
	if (code > 0)
		printf(", exit status %lld", (long long)code);
	if (number > 0)
		printf(", signal %lld", (long long)number);
	if (resumed >= 0)
		printf(", from step %lld", (long long)resumed);
	show_duration(attempt);
	show_job(ctl, attempt);
	putchar('\n');
	json_array_foreach(json_object_get(attempt, "launches"), i, launch) {
		show_launch(ctl, launch);
	}
}

/* What most people want to do next, by state. */
static const char *const next_command[RUN_STATE_COUNT + 1] = {
	[RUN_CREATED] = "follow", [RUN_SUBMITTING] = "follow",  [RUN_QUEUED] = "why",
	[RUN_RUNNING] = "follow", [RUN_STOPPING] = "wait",      [RUN_BACKOFF] = "events",
	[RUN_HELD] = "release",   [RUN_COMPLETED] = "logs",     [RUN_FAILED] = "logs",
	[RUN_KILLED] = "restart", [RUN_STATE_COUNT] = "events",
};

/* Of a colleague's run one can follow only what runs, and read the rest. What had no attempt has
 * no output. */
static void show_next(const struct ctl *ctl, const json_t *run, const char *colleague,
		      const char *name)
{
	const char *command = next_command[run_state_from_name(js_str(run, "state", NULL))];
	char *owner = colleague ? clean_copy(colleague, &ctl->out) : NULL;

	if (colleague && strcmp(command, "follow") != 0)
		command = "logs";
	else if (strcmp(command, "logs") == 0 &&
		 json_array_size(json_object_get(run, "attempts")) == 0)
		command = "restart";
	hint(ctl, "next: lbctl %s %s%s%s", command, owner ? owner : "", owner ? "/" : "", name);
	free(owner);
}

/* Of a trainer that tells no steps: what it said last, so that nobody takes it for dead. */
static void show_output(struct ctl *ctl, const char *run)
{
	char age[CLOCK_TEXT_MAX];
	int64_t age_ms;
	char *text = last_output(ctl, run, &age_ms);
	int columns = ctl->out.width ? ctl->out.width : 200;

	if (!text)
		return;
	label(ctl, "output");
	duration_text(age_ms, age);
	text[bytes_within(text, columns - LABEL_WIDTH - 2 - (int)strlen(age) - 6)] = '\0';
	printf("%s ago: %s\n", age, text);
	free(text);
}

/* A hold ends the attempt as a kill would, which says nothing of the run. */
static bool is_telling(const char *cause, const char *state)
{
	return strcmp(cause, state) != 0 &&
	       !(strcmp(state, "held") == 0 && strcmp(cause, "killed") == 0);
}

/* Until when it waits for its next attempt. */
static void show_pause(const struct ctl *ctl, const json_t *run)
{
	int64_t next_ms = time_ms(run, "next_attempt"), left_ms = next_ms - clock_wall_ms();
	char at[CLOCK_TEXT_MAX], left[CLOCK_TEXT_MAX];

	if (next_ms == 0)
		return;
	label(ctl, "waits for");
	printf("its next attempt, at %s", clock_text(next_ms, at));
	if (left_ms > 0)
		printf(", in %s", duration_text(left_ms, left));
	putchar('\n');
}

static void show_page(struct ctl *ctl, const json_t *run, const struct history *h)
{
	const char *state = js_str(run, "state", "?");
	const json_t *attempt;
	struct progress p;
	char *name = clean_copy(js_str(run, "name", NULL), &ctl->out);
	size_t i;

	progress_from_run(&p, run);
	if (strcmp(state, "running") == 0)
		p.eta_ms = pace_eta_ms(&h->pace, p.step, p.target);
	printf("%s%s%s  %s", color_code(&ctl->out, COLOR_BOLD), name,
	       color_code(&ctl->out, COLOR_NONE), color_code(&ctl->out, state_color(state)));
	show(ctl, "", state);
	printf("%s", color_code(&ctl->out, COLOR_NONE));
	if (is_telling(js_str(run, "cause", state), state))
		show(ctl, ": ", js_str(run, "cause", NULL));
	putchar('\n');
	if (js_str(run, "text", "")[0]) {
		label(ctl, "why");
		show(ctl, "", js_str(run, "text", NULL));
		putchar('\n');
	}
	if (js_str(run, "waits_for", NULL)) {
		label(ctl, "waits for");
		show(ctl, "", js_str(run, "waits_for", NULL));
		if (js_str(run, "waits_text", NULL) && !strchr(js_str(run, "waits_for", ""), ':'))
			show(ctl, ": ", js_str(run, "waits_text", NULL));
		putchar('\n');
	}
	show_pause(ctl, run);
	if (p.step < 0 && strcmp(state, "running") == 0)
		show_output(ctl, ctl->operands.words[0]);
	show_step(ctl, &p);
	show_tasks(ctl, run, "failed_tasks", "failed");
	show_tasks(ctl, run, "cancelled_tasks", "cancelled");
	show_loss(ctl, &p, h);
	show_speed(ctl, run, &p);
	show_start(ctl, run);
	show_checkpoint(ctl, run);
	show_origin(ctl, run);
	json_array_foreach(json_object_get(run, "attempts"), i, attempt) {
		show_attempt(ctl, attempt);
	}
	show_next(ctl, run, js_str(run, "user", NULL), name);
	free(name);
}

int status_run(struct ctl *ctl, struct err *err)
{
	const char *name = ctl->operands.words[0];
	json_t *run = ask_about(ctl, VERB_STATUS, name, NULL, err);
	struct history history = { 0 };

	if (!run)
		return -1;
	if (ctl->options.json) {
		print_json(run);
		return 0;
	}
	history_read(ctl, name, &history);
	show_page(ctl, run, &history);
	if (!js_str(run, "user", NULL)) /* else it is a colleague's */
		complain_of_ledger(ctl);
	free(history.losses);
	json_decref(run);
	return 0;
}
