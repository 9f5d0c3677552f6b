/* SPDX-License-Identifier: MIT */
/* story.c - reads what the spools of a run's attempts tell, and, of an array, its tasks' files. */
#include "ctl/team/story.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt.h"
#include "common/run/attempt_folders.h"
#include "common/run/spool.h"

enum {
	OFFSET_BITS = 40,
	CHUNK_BYTES = 4 * 1024 * 1024,
	STEPS_MAX = 20000, /* of a spool with millions each n-th will do, as in a ledger */
};

/* --- spool lines ----------------------------------------------------------------------------- */

int64_t story_place(const struct story *s)
{
	return (s->number << OFFSET_BITS) + s->offset + 1;
}

static void add_event_at(struct story *s, int64_t time_ms, const char *kind, char *text)
{
	json_t *o = json_object();

	js_set_int(o, "id", story_place(s));
	js_set_time(o, "time", time_ms);
	js_set_str(o, "kind", kind);
	js_set_str(o, "actor", "lbrun");
	js_set_str(o, "text", text);
	js_set_int(o, "attempt", s->number);
	json_array_append_new(s->events, o);
	free(text);
}

static void add_event(struct story *s, const struct spool_line *spool, const char *kind, char *text)
{
	add_event_at(s, spool->time_ms, kind, text);
}

static json_t *launch_at(const struct story *s)
{
	const json_t *launches = json_object_get(s->attempt, "launches");

	return json_array_get(launches, json_array_size(launches) - 1);
}

/* Every other one stays. */
static void thin(struct story *s)
{
	json_t *kept = json_array();

	for (size_t i = 0; i < json_array_size(s->steps); i += 2)
		json_array_append(kept, json_array_get(s->steps, i));
	json_decref(s->steps);
	s->steps = kept;
	s->stride *= 2;
}

static void keep_step(struct story *s, const struct spool_line *spool)
{
	json_t *step;

	if (++s->passed_over < s->stride)
		return;
	s->passed_over = 0;
	step = spool->step ? js_parse(spool->text, spool->text_len, NULL) : json_copy(spool->line);
	js_set_int(step, "id", story_place(s));
	js_set_time(step, "time", spool->time_ms);
	json_array_append_new(s->steps, step);
	if (json_array_size(s->steps) >= STEPS_MAX)
		thin(s);
}

static void on_step(struct story *s, const struct spool_line *spool)
{
	json_t *launch = launch_at(s);
	struct step_line line;

	if (spool->step)
		line = *spool->step;
	else
		step_line_of(spool->line, &line);
	if (line.rank != JS_NONE && line.rank > 0)
		return;
	s->step_place = story_place(s);
	if (js_int(launch, "first_step", -1) < 0)
		js_set_int(launch, "first_step", line.step);
	js_set_int(launch, "last_step", line.step);
	if (s->wants_steps)
		keep_step(s, spool);
}

static void on_attempt_start(struct story *s, const struct spool_line *spool)
{
	json_t *nodes = json_object_get(spool->line, "nodes");

	js_set_time(s->attempt, "start_time", spool->time_ms);
	if (json_is_array(nodes))
		json_object_set(s->attempt, "nodes", nodes);
	add_event(s, spool, "running",
		  xasprintf("attempt %lld runs on %s", (long long)s->number,
			    js_str(spool->line, "host", "?")));
}

static void on_launch_start(struct story *s, const struct spool_line *spool)
{
	long long number = (long long)js_int(spool->line, "number", 0);
	long long step = (long long)js_int(spool->line, "resumed_from_step", -1);
	json_t *launch = json_pack("{s:I}", "number", (json_int_t)number);
	char *from = spool_launch_from(spool->line);

	js_set_time(launch, "start_time", spool->time_ms);
	json_array_append_new(json_object_get(s->attempt, "launches"), launch);
	if (number == 1)
		js_set_int(s->attempt, "resumed_from_step", step < 0 ? JS_NONE : step);
	add_event(s, spool, "launch", xasprintf("launch %lld, %s", number, from));
	free(from);
}

static void set_ending(json_t *o, const struct spool_line *spool)
{
	static const char *const fields[] = { "cause", "exit_code", "signal", "text" };

	for (size_t i = 0; o && i < sizeof(fields) / sizeof(fields[0]); i++)
		json_object_set(o, fields[i], json_object_get(spool->line, fields[i]));
	if (o)
		js_set_time(o, "end_time", spool->time_ms);
}

static void on_start(struct story *s, const struct spool_line *spool)
{
	json_t *launch = launch_at(s), *phases = json_object_get(spool->line, "phases");

	if (launch && json_is_object(phases))
		json_object_set(launch, "start", phases);
}

static void on_launch_end(struct story *s, const struct spool_line *spool)
{
	const char *text = js_str(spool->line, "text", "");

	set_ending(launch_at(s), spool);
	add_event(s, spool, "launch_end",
		  xasprintf("launch %lld: %s%s%s", (long long)js_int(spool->line, "number", 0),
			    js_str(spool->line, "cause", "?"), text[0] ? ": " : "", text));
}

static void on_attempt_end(struct story *s, const struct spool_line *spool)
{
	const char *text = js_str(spool->line, "text", "");

	set_ending(s->attempt, spool);
	add_event(s, spool, "attempt_end",
		  xasprintf("attempt %lld: %s%s%s", (long long)s->number,
			    js_str(spool->line, "cause", "?"), text[0] ? ": " : "", text));
}

static void on_checkpoint(struct story *s, const struct spool_line *spool)
{
	bool is_valid = js_bool(spool->line, "valid", false);
	int64_t step = js_int(spool->line, "step", -1);

	if (is_valid && step >= 0 && step == js_int(s->checkpoint, "step", -2))
		return; /* told twice */
	if (is_valid) {
		json_decref(s->checkpoint);
		s->checkpoint = json_pack("{s:I, s:O?, s:b}", "step", (json_int_t)step, "path",
					  json_object_get(spool->line, "path"), "valid", 1);
		add_event(s, spool, "checkpoint",
			  step >= 0 ? xasprintf("step %lld", (long long)step)
				    : xstrdup(js_str(spool->line, "path", "")));
	} else {
		add_event(s, spool, "checkpoint_bad",
			  text_about(js_str(spool->line, "path", ""),
				     js_str(spool->line, "text", "")));
	}
}

static void on_note(struct story *s, const struct spool_line *spool)
{
	add_event(s, spool, js_str(spool->line, "kind", "note"),
		  xstrdup(js_str(spool->line, "text", "")));
}

static const struct {
	const char *type;
	bool from_trainer;
	void (*on)(struct story *s, const struct spool_line *spool);
} kinds[] = {
	{ "step", true, on_step },
	{ "attempt_start", false, on_attempt_start },
	{ "launch_start", false, on_launch_start },
	{ "start", false, on_start },
	{ "launch_end", false, on_launch_end },
	{ "checkpoint_valid", false, on_checkpoint },
	{ "note", false, on_note },
	{ "attempt_end", false, on_attempt_end },
};

static int on_line(const struct spool_line *spool, void *arg)
{
	struct story *s = arg;
	const char *type = spool->step ? "step" : js_str(spool->line, "type", "");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && story_place(s) > s->after; i++) {
		if (kinds[i].from_trainer == spool->from_trainer &&
		    strcmp(kinds[i].type, type) == 0)
			kinds[i].on(s, spool);
	}
	return 0;
}

/* --- the story ------------------------------------------------------------------------------- */

static void begin_attempt(struct story *s, int64_t number)
{
	s->attempt = json_pack("{s:I, s:[]}", "number", (json_int_t)number, "launches");
	json_array_append_new(s->attempts, s->attempt);
	s->number = number;
	s->offset = 0;
	/* the line at that place was told already: on_line passes it over */
	if (s->after > 0 && number == s->after >> OFFSET_BITS)
		s->offset = (s->after & ((INT64_C(1) << OFFSET_BITS) - 1)) - 1;
}

/* Only an ordinary file: a pipe somebody left there must not hold us. */
static int read_spool(struct story *s, const char *run, struct err *err)
{
	char *path = path_join("%s/attempts/%lld/spool.jsonl", run, (long long)s->number);
	struct stat st = { 0 };
	int64_t n = 1;

	if (s->after < 0 && lstat(path, &st) == 0)
		s->offset = st.st_size;
	while (n > 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && s->offset < st.st_size)
		n = spool_read_plain(path, &s->offset, CHUNK_BYTES, on_line, NULL, s, err);
	free(path);
	return n < 0 ? -1 : 0;
}

/* --- arrays ---------------------------------------------------------------------------------- */

enum { FIRST_BYTES = 4096 }; /* of a spool, for its first line */

/* The spools of tasks are thousands, and lbd tells nothing of what they say, either: the ends alone
 * are events, and stand where the time says. */
static void add_end(struct story *s, const struct attempt_exit *e, const char *kind,
		    const char *what, int64_t number)
{
	s->offset = e->time_ms & ((INT64_C(1) << OFFSET_BITS) - 1);
	if (s->after >= 0 && story_place(s) > s->after)
		add_event_at(s, e->time_ms, kind,
			     xasprintf("%s %lld: %s%s%s", what, (long long)number,
				       cause_name(e->cause), e->text[0] ? ": " : "", e->text));
}

static int on_first_line(const struct spool_line *spool, void *arg)
{
	struct story *s = arg;

	if (!spool->step && strcmp(js_str(spool->line, "type", ""), "attempt_start") == 0)
		js_set_time(s->attempt, "start_time", spool->time_ms);
	return 0;
}

static void read_start(struct story *s, const char *folder, int64_t task)
{
	char *path = path_join("%s/task-%lld/spool.jsonl", folder, (long long)task);
	struct stat st;
	int64_t offset = 0;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		spool_read_plain(path, &offset, FIRST_BYTES, on_first_line, NULL, s, NULL);
	free(path);
}

static void read_failed(struct story *s, const char *folder)
{
	int64_t changed_ns = 0;
	size_t count;
	int64_t *tasks = array_tasks_failed(folder, &changed_ns, &count);

	for (size_t i = 0; i < count && i < ARRAY_TOLD_SINGLY; i++) {
		char *of_task = path_join("%s/task-%lld", folder, (long long)tasks[i]);
		struct attempt_exit e;

		if (attempt_exit_read(of_task, &e, NULL) == 0)
			add_end(s, &e, "task_failed", "task", tasks[i]);
		free(of_task);
	}
	free(tasks);
}

static void read_array_end(struct story *s, const char *folder)
{
	struct attempt_exit e;

	if (attempt_exit_read(folder, &e, NULL) < 0)
		return;
	js_set_str(s->attempt, "cause", cause_name(e.cause));
	js_set_int(s->attempt, "exit_code", e.exit_code < 0 ? JS_NONE : e.exit_code);
	js_set_int(s->attempt, "signal", e.signal == 0 ? JS_NONE : e.signal);
	js_set_str(s->attempt, "text", e.text);
	js_set_time(s->attempt, "end_time", e.time_ms);
	add_end(s, &e, "attempt_end", "attempt", s->number);
}

static void read_tasks(struct story *s, const char *run)
{
	char *folder = path_join("%s/attempts/%lld", run, (long long)s->number);
	size_t count;
	int64_t *tasks = array_task_folders(folder, &count);

	if (count > 0) {
		read_start(s, folder, tasks[0]);
		read_failed(s, folder);
		read_array_end(s, folder);
		s->offset = clock_wall_ms() & ((INT64_C(1) << OFFSET_BITS) - 1);
	}
	free(tasks);
	free(folder);
}

static int by_id(const void *a, const void *b)
{
	int64_t left = js_int(*(json_t *const *)a, "id", 0);
	int64_t right = js_int(*(json_t *const *)b, "id", 0);

	return (left > right) - (left < right);
}

void story_fini(struct story *s)
{
	json_decref(s->steps);
	json_decref(s->events);
	json_decref(s->attempts);
	json_decref(s->checkpoint);
}

int story_read(struct story *s, const char *run, int64_t after, bool wants_steps, struct err *err)
{
	size_t count;
	int64_t *numbers = attempt_folders(run, &count);
	int rc = 0;

	*s = (struct story){ .steps = json_array(),
			     .events = json_array(),
			     .attempts = json_array(),
			     .after = after,
			     .wants_steps = wants_steps,
			     .stride = 1 };
	for (size_t i = 0; i < count && rc == 0; i++) {
		if (numbers[i] < s->after >> OFFSET_BITS)
			continue;
		begin_attempt(s, numbers[i]);
		rc = read_spool(s, run, err);
		read_tasks(s, run);
	}
	s->events = js_sorted(s->events, by_id); /* tasks end in any order */
	free(numbers);
	return rc;
}
