/* SPDX-License-Identifier: MIT */
/* follow.c - lbctl follow and wait: looking on until a run is final.
 *
 * On a terminal one live line is redrawn in place and lines that stay are printed above it;
 * elsewhere every line stays, at most one a second for steps. With --json each step, each event and
 * at the end the run is one line: {"step":{…}}, {"event":{…}}, {"run":{…}}. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/last_output.h"
#include "ctl/base/progress.h"
#include "ctl/look/follow.h"
#include "ctl/team/ask.h"

enum { POLL_MS = 250, WAIT_POLL_MS = 500, PLAIN_MS = 1000, STEPS_PER_QUESTION = 1000 };

struct follow {
	struct ctl *ctl;
	const char *run;
	int64_t cursor, event_id;
	int64_t checkpoint; /* step of the newest one that was told */
	struct pace pace;
	int64_t step; /* newest one seen, -1 = none */
	double loss;
	bool unsaid;     /* there is a step that no plain line has told */
	int64_t said_ms; /* when the last plain line was printed */
	bool live;       /* a live line is kept */
	bool drawn;      /* … and stands on the terminal now */
	bool told_held;
	char *output; /* its last line, until a step is seen; NULL = none; owned */
	int64_t output_age_ms, output_ms; /* … how old, and when we looked */
	json_t *object;                   /* the run, newest answer; owned */
};

static void on_winch(int number)
{
	(void)number; /* it is enough that it ends our nap */
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_winch };

	sigaction(SIGWINCH, &sa, NULL);
	interrupt_catch();
}

/* --- writing --------------------------------------------------------------------------------- */
static void erase(struct follow *f)
{
	if (f->drawn)
		fputs("\r\x1b[K", stdout);
	f->drawn = false;
}

/* "calm-heron-12  running  12s ago: loading the data" */
static char *output_line(const struct follow *f, const char *state, int width)
{
	char age[CLOCK_TEXT_MAX];
	char *line = xasprintf("%s  %s  %s ago: %s", f->run, state,
			       duration_text(f->output_age_ms, age), f->output);

	if (width > 0)
		line[bytes_within(line, width)] = '\0';
	return line;
}

static char *current_line(const struct follow *f, int width)
{
	struct progress p = { .run = f->run, .state = js_str(f->object, "state", "?") };

	progress_from_run(&p, f->object);
	if (f->step >= 0) {
		p.step = f->step;
		p.loss = f->loss;
	}
	if (strcmp(p.state, "running") == 0)
		p.eta_ms = pace_eta_ms(&f->pace, p.step, p.target);
	if (p.step < 0 && f->output)
		return output_line(f, p.state, width);
	return progress_line(&p, width, f->ctl->out.utf8);
}

/* The last column stays free: writing into it would make some terminals wrap. */
static void draw(struct follow *f)
{
	char *line;

	if (!f->live)
		return;
	f->ctl->out.width = terminal_width(STDOUT_FILENO);
	line = current_line(f, f->ctl->out.width > 1 ? f->ctl->out.width - 1 : 1);
	printf("\r%s\x1b[K", line);
	fflush(stdout);
	f->drawn = true;
	free(line);
}

static void say_plain(struct follow *f)
{
	char *line = current_line(f, 0);

	puts(line);
	fflush(stdout);
	free(line);
	f->unsaid = false;
	f->said_ms = clock_mono_ms();
}

/* client.tell: lbd went away, or is back. */
static void say_away(void *arg, const char *text)
{
	struct follow *f = arg;

	erase(f);
	complain(f->ctl, text);
	draw(f);
}

static bool is_held(const json_t *run)
{
	return strcmp(js_str(run, "state", ""), "held") == 0;
}

/* That may last for days: once, each time, with who wants it so. */
static void say_held(struct ctl *ctl, const json_t *run, bool *told)
{
	const char *name = js_str(run, "name", "?");

	if (is_held(run) && !*told) {
		json_t *why = ask_about(ctl, VERB_WHY, name, NULL, &(struct err){ 0 });
		char *text = xasprintf("%s is held: %s", name,
				       js_str(why, "text", "it goes on when it is released"));

		complain(ctl, text);
		free(text);
		json_decref(why);
	}
	*told = is_held(run);
}

static void say_event(struct follow *f, const json_t *event)
{
	static const char *const programs[] = { "lbd", "lbrun", "slurm" };
	const struct style *style = &f->ctl->out;
	const char *actor = js_str(event, "actor", "lbd");
	char time[CLOCK_TEXT_MAX];
	char *kind = clean_copy(js_str(event, "kind", NULL), style);
	char *text = clean_copy(js_str(event, "text", NULL), style);
	char *who = clean_copy(actor, style);
	bool person = true, has_text = js_str(event, "text", "")[0] != '\0';

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		person = person && strcmp(actor, programs[i]) != 0;
	clock_text(time_ms(event, "time"), time);
	erase(f);
	printf("%s%s%s  %s%s%s", color_code(style, COLOR_DIM), strlen(time) > 11 ? time + 11 : time,
	       color_code(style, COLOR_NONE), color_code(style, COLOR_BOLD), kind,
	       color_code(style, COLOR_NONE));
	if (has_text)
		printf("  %s", text);
	if (person)
		printf("%s(by %s)", has_text ? " " : "  ", who);
	putchar('\n');
	free(kind);
	free(text);
	free(who);
}

static void say_checkpoint(struct follow *f, int64_t step)
{
	erase(f);
	printf("%s: checkpoint at step %lld\n", f->run, (long long)step);
}

/* --- reading --------------------------------------------------------------------------------- */
static void take_steps(struct follow *f, const json_t *steps)
{
	json_t *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		f->step = js_int(step, "step", -1);
		f->loss = js_real(step, "loss", NAN);
		pace_add(&f->pace, f->step, js_real(step, "time", NAN));
		f->unsaid = true;
		if (f->ctl->options.json)
			print_json(json_pack("{s:O}", "step", step));
	}
}

/* The newest answers. *full: more steps are waiting already. -1 with err, or without when a signal
 * wants us to stop. */
static int ask_progress(struct follow *f, bool *full, struct err *err)
{
	json_t *args = json_pack("{s:I, s:i}", "after", (json_int_t)f->cursor, "limit",
				 STEPS_PER_QUESTION);
	json_t *data = ask_patiently(f->ctl, VERB_PROGRESS, f->run, args, err);
	const json_t *steps = json_object_get(data, "steps");

	if (!data)
		return -1;
	json_decref(f->object);
	f->object = json_incref(json_object_get(data, "run"));
	f->cursor = js_int(data, "cursor", f->cursor);
	*full = json_array_size(steps) >= STEPS_PER_QUESTION;
	take_steps(f, steps);
	if (strcmp(js_str(f->object, "state", ""), "running") != 0)
		pace_reset(&f->pace);
	json_decref(data);
	return 0;
}

static int64_t checkpoint_step(const struct follow *f)
{
	return js_int(json_object_get(f->object, "checkpoint"), "step", -1);
}

/* Events since the last id; `quiet` passes over what was before we came. */
static int ask_events(struct follow *f, bool quiet, struct err *err)
{
	int64_t before;
	bool told = quiet;

	do {
		json_t *args = json_pack("{s:I}", "after", (json_int_t)f->event_id);
		json_t *events = ask_patiently(f->ctl, VERB_EVENTS, f->run, args, err);
		json_t *event;
		size_t i;

		if (!events)
			return -1;
		before = f->event_id;
		json_array_foreach(events, i, event) {
			if (js_int(event, "id", 0) > f->event_id)
				f->event_id = js_int(event, "id", 0);
			told = told || strstr(js_str(event, "kind", ""), "checkpoint");
			if (!quiet && f->ctl->options.json)
				print_json(json_pack("{s:O}", "event", event));
			else if (!quiet)
				say_event(f, event);
		}
		json_decref(events);
	} while (f->event_id > before);
	/* Not every checkpoint is an event. */
	if (checkpoint_step(f) != f->checkpoint && !told && checkpoint_step(f) >= 0 &&
	    !f->ctl->options.json)
		say_checkpoint(f, checkpoint_step(f));
	f->checkpoint = checkpoint_step(f);
	return 0;
}

/* A trainer that tells no step yet may well be busy: what it prints says so. */
static void look_at_output(struct follow *f)
{
	int64_t now_ms = clock_mono_ms();
	bool is_wanted = f->step < 0 && js_int(f->object, "step", -1) < 0 &&
			 !f->ctl->options.json &&
			 strcmp(js_str(f->object, "state", ""), "running") == 0;
	char *text;

	if (is_wanted && now_ms - f->output_ms < PLAIN_MS)
		return;
	f->output_ms = now_ms;
	text = is_wanted ? last_output(f->ctl, f->run, &f->output_age_ms) : NULL;
	if (text && (!f->output || strcmp(text, f->output) != 0))
		f->unsaid = true;
	free(f->output);
	f->output = text;
}

static bool is_final(const json_t *run)
{
	return run_state_is_final(run_state_from_name(js_str(run, "state", NULL)));
}

static void say_numbers(const json_t *run)
{
	int64_t start_ms = time_ms(run, "created");
	int64_t end_ms = time_ms(run, "ended");
	int64_t step = js_int(run, "step", -1);
	double loss = js_real(run, "loss", NAN);
	char text[2 * NUMBER_TEXT_MAX], duration[CLOCK_TEXT_MAX];

	if (start_ms && end_ms >= start_ms)
		printf(" after %s", duration_text(end_ms - start_ms, duration));
	if (step >= 0)
		printf(" at step %s", step_text(step, js_int(run, "target_step", -1), text));
	if (isfinite(loss))
		printf(", loss %s", loss_text(loss, text));
}

/* "calm-heron-12 failed (oom) after 3m20s at step 57/200, loss 3.21: rank 0 ran out of memory" */
static void say_end(const struct ctl *ctl, const json_t *run)
{
	const char *state = js_str(run, "state", "?");
	char *name = clean_copy(js_str(run, "name", NULL), &ctl->out);
	char *cause = clean_copy(js_str(run, "cause", NULL), &ctl->out);
	char *why = clean_copy(js_str(run, "text", NULL), &ctl->out);

	printf("%s %s%s%s", name, color_code(&ctl->out, state_color(state)),
	       is_final(run) ? state : "?", color_code(&ctl->out, COLOR_NONE));
	if (strcmp(cause, "-") != 0 && strcmp(cause, state) != 0)
		printf(" (%s)", cause);
	say_numbers(run);
	if (strcmp(why, "-") != 0 && strcmp(state, "completed") != 0)
		printf(": %s", why);
	putchar('\n');
	free(name);
	free(cause);
	free(why);
}

static int end_status(const json_t *run)
{
	return strcmp(js_str(run, "state", ""), "completed") == 0 ? 0 : EXIT_RUN_FAILED;
}

/* --- follow ---------------------------------------------------------------------------------- */
/* One look; 1 when the run is final and all is told. */
static int look(struct follow *f, bool quiet, bool *full, struct err *err)
{
	bool plain = !f->live && !f->ctl->options.json;

	if (ask_progress(f, full, err) < 0 || ask_events(f, quiet, err) < 0)
		return -1;
	look_at_output(f);
	if (is_held(f->object))
		erase(f);
	say_held(f->ctl, f->object, &f->told_held);
	/* The last line of all tells the last step. */
	if (plain && f->unsaid && !is_final(f->object) && clock_mono_ms() - f->said_ms >= PLAIN_MS)
		say_plain(f);
	if (is_final(f->object) && !*full)
		return 1;
	draw(f);
	fflush(stdout);
	return 0;
}

static int leave(struct follow *f)
{
	char *text = xasprintf("%s goes on without you; see it again: lbctl follow %s, end it: "
			       "lbctl kill %s",
			       f->run, f->run, f->run);
	char *meant = with_home(f->ctl, text);

	erase(f);
	fflush(stdout);
	fprintf(stderr, "%s\n", meant);
	free(meant);
	free(text);
	return EXIT_INTERRUPTED;
}

static int watch(struct follow *f, bool fresh, struct err *err)
{
	bool quiet = !fresh, full = false;
	int rc;

	while ((rc = look(f, quiet, &full, err)) == 0 && !interrupted()) {
		if (quiet && !f->live && !f->ctl->options.json)
			say_plain(f);
		quiet = false;
		if (!full)
			nap(POLL_MS);
	}
	if (rc <= 0 && interrupted())
		return leave(f);
	erase(f);
	if (rc < 0)
		return -1;
	if (f->ctl->options.json)
		print_json(json_pack("{s:O}", "run", f->object));
	else
		say_end(f->ctl, f->object);
	fflush(stdout);
	return end_status(f->object);
}

int follow_show(struct ctl *ctl, const char *run, bool fresh, struct err *err)
{
	struct follow f = {
		.ctl = ctl,
		.run = run,
		.cursor = fresh ? 0 : -1,
		.step = -1,
		.checkpoint = -1,
		.live = ctl->out.terminal && !ctl->options.json,
	};
	int status;

	catch_signals();
	ctl->client.tell = say_away;
	ctl->client.tell_arg = &f;
	/* That lbd is not there at all is told at once; only one that goes away is waited for. */
	if (!fresh) {
		json_t *first = ask_about(ctl, VERB_STATUS, run, NULL, err);

		if (!first)
			return -1;
		json_decref(first);
	}
	status = watch(&f, fresh, err);
	json_decref(f.object);
	free(f.output);
	ctl->client.tell = NULL;
	return status;
}

int follow_run(struct ctl *ctl, struct err *err)
{
	return follow_show(ctl, ctl->operands.words[0], false, err);
}

/* --- wait ------------------------------------------------------------------------------------ */
static void say_away_simply(void *arg, const char *text)
{
	complain(arg, text);
}

static int wait_ended(const struct ctl *ctl, json_t *run)
{
	int status = end_status(run);

	if (ctl->options.json)
		print_json(json_incref(run));
	else
		say_end(ctl, run);
	json_decref(run);
	return status;
}

static void timed_out(const struct ctl *ctl, const char *name, struct err *err)
{
	char text[CLOCK_TEXT_MAX];

	err_clear(err);
	err_set(err, ERR_TIMEOUT, "%s has not ended within %s; it goes on", name,
		duration_text(ctl->options.timeout_ms, text));
}

/* The run once it is final; NULL with err, or without when a signal wants us to stop. */
static json_t *final_run(struct ctl *ctl, const char *name, struct err *err)
{
	int64_t limit_ms = ctl->options.timeout_ms;
	int64_t start_ms = clock_mono_ms();
	bool told_held = false;
	json_t *run;

	client_hurry(&ctl->client, limit_ms < 0 ? INT64_MAX : limit_ms);
	run = ask_about(ctl, VERB_STATUS, name, NULL, err);
	interrupt_catch();
	ctl->client.tell = say_away_simply;
	ctl->client.tell_arg = ctl;
	while (run && !is_final(run)) {
		int64_t gone_ms = clock_mono_ms() - start_ms;
		int64_t left_ms = limit_ms < 0 ? INT64_MAX : limit_ms - gone_ms;

		say_held(ctl, run, &told_held);
		json_decref(run);
		if (left_ms <= 0) {
			timed_out(ctl, name, err);
			return NULL;
		}
		nap(left_ms < WAIT_POLL_MS ? left_ms : WAIT_POLL_MS);
		ctl->client.patience_ms = left_ms < CLIENT_PATIENCE_MS ? left_ms
								       : CLIENT_PATIENCE_MS;
		client_hurry(&ctl->client, left_ms);
		run = client_ask_patient(&ctl->client, VERB_STATUS, json_pack("{s:s}", "run", name),
					 err);
		if (!run && err->code == ERR_DAEMON && ctl->client.patience_ms == left_ms)
			timed_out(ctl, name, err);
	}
	return run;
}

int wait_run(struct ctl *ctl, struct err *err)
{
	json_t *run = final_run(ctl, ctl->operands.words[0], err);

	if (run)
		return wait_ended(ctl, run);
	return interrupted() && err->code != ERR_TIMEOUT ? EXIT_INTERRUPTED : -1;
}

int wait_as_sbatch(struct ctl *ctl, const char *name, struct err *err)
{
	json_t *run = final_run(ctl, name, err);
	const json_t *attempts = json_object_get(run, "attempts"), *last;
	int status = run ? end_status(run) : -1;
	int64_t code;

	if (!run && interrupted())
		return EXIT_INTERRUPTED;
	last = json_array_get(attempts, json_array_size(attempts) - 1);
	code = js_int(last, "exit_code", -1);
	if (status == EXIT_RUN_FAILED && code > 0)
		status = (int)code;
	json_decref(run);
	return status;
}
