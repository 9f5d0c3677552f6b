/* SPDX-License-Identifier: MIT */
/* source.c - asks lbd, or takes frame after frame of a recording; pages are what lbctl's own
 * commands print, run as programs. */
#include "ctl/top/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "top_demo.h"

enum {
	PAGE_MS = 20 * 1000,
	LOG_LINES = 2000,
	KEPT_LINES = 60,      /* in a recording */
	AT_THE_END_MS = 8000, /* a recording begins anew after that */
	RECORDING_MAX_BYTES = 64 * 1024 * 1024,
};

/* --- recordings ------------------------------------------------------------------------------- */
static json_t *frames_parse(const char *text, size_t len, struct err *err)
{
	json_t *frames = json_array();

	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		json_t *frame = line ? js_parse(text, line, err) : NULL;

		if (line && !frame) {
			json_decref(frames);
			return NULL;
		}
		if (frame)
			json_array_append_new(frames, frame);
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
	if (time_ms(json_array_get(frames, 0), "time") == 0) {
		err_set(err, ERR_USAGE, "it has no frame in its first line");
		json_decref(frames);
		return NULL;
	}
	return frames;
}

static json_t *frames_load(const char *file, struct err *err)
{
	FILE *from = fopen(file, "re");
	struct buf text;
	char chunk[64 * 1024];
	json_t *frames;
	size_t n;

	if (!from)
		return NULL;
	buf_init(&text, RECORDING_MAX_BYTES);
	while ((n = fread(chunk, 1, sizeof(chunk), from)) > 0 && buf_add(&text, chunk, n) == 0)
		;
	fclose(from);
	frames = text.len ? frames_parse(text.data, text.len, err) : NULL;
	buf_fini(&text);
	return frames;
}

int source_replay(struct source *source, const char *file, struct err *err)
{
	json_t *frames = file ? frames_load(file, err)
			      : frames_parse(top_demo, sizeof(top_demo) - 1, err);
	size_t last;

	if (!frames && err->code == ERR_NONE)
		err_set(err, ERR_USAGE, "%s: cannot be read, or is empty: %s", file,
			strerror(errno ? errno : EINVAL));
	else if (!frames)
		err_wrap(err, "%s: no recording of lbctl top", file ? file : "the demonstration");
	if (!frames)
		return -1;
	last = json_array_size(frames) - 1;
	source->frames = frames;
	source->pages = json_object_get(json_array_get(frames, last), "pages");
	if (source->pages)
		json_incref(source->pages);
	if (source->pages)
		json_array_remove(frames, last);
	source->runs = json_object();
	source->begun_ms = clock_mono_ms();
	return 0;
}

static int64_t frame_ms(const struct source *source, size_t at)
{
	return time_ms(json_array_get(source->frames, at), "time");
}

/* A run of a frame has what changed of it. The answer before may still be in use: a copy. */
static void merge(json_t *runs, json_t *changes)
{
	const char *name = js_str(changes, "name", "?");
	json_t *now = json_copy(json_object_get(runs, name));

	if (!now)
		now = json_object();
	json_object_update(now, changes);
	json_object_set_new(runs, name, now);
}

static void take_frame(struct source *source, const json_t *frame)
{
	json_t *run, *name;
	size_t i;

	json_array_foreach(json_object_get(frame, "runs"), i, run) {
		merge(source->runs, run);
	}
	json_array_foreach(json_object_get(frame, "gone"), i, name) {
		json_object_del(source->runs, json_string_value(name));
	}
}

static void list_anew(struct source *source)
{
	const char *name;
	json_t *run;

	json_decref(source->list);
	source->list = json_array();
	json_object_foreach(source->runs, name, run) {
		json_array_append(source->list, run);
	}
}

static void look_at_frames(struct source *source, int64_t *now_ms)
{
	size_t count = json_array_size(source->frames);
	int64_t first_ms = frame_ms(source, 0), last_ms = frame_ms(source, count - 1);
	int64_t gone_ms = clock_mono_ms() - source->begun_ms;

	if (count > 1 && gone_ms > last_ms - first_ms + AT_THE_END_MS) {
		source->begun_ms += gone_ms;
		source->next = 0;
		json_object_clear(source->runs);
		gone_ms = 0;
	}
	while (source->next < count && frame_ms(source, source->next) <= first_ms + gone_ms)
		take_frame(source, json_array_get(source->frames, source->next++));
	/* behind its last frame time stands still: nothing is late that was not */
	*now_ms = first_ms + gone_ms < last_ms ? first_ms + gone_ms : last_ms;
	list_anew(source);
}

void source_skip(struct source *source)
{
	size_t count = json_array_size(source->frames);

	if (count > 0)
		source->begun_ms -= (frame_ms(source, count - 1) - frame_ms(source, 0)) * 2 / 3;
}

/* --- recording -------------------------------------------------------------------------------- */
int source_record(struct source *source, const char *file, struct err *err)
{
	source->record = fopen(file, "we");
	return source->record ? 0 : err_errno(err, "%s", file);
}

static void write_line(FILE *to, json_t *value)
{
	json_dumpf(value, to, JSON_COMPACT | JSON_REAL_PRECISION(15));
	putc('\n', to);
	json_decref(value);
}

/* The members of `now` that are others than before, and its name. */
static json_t *changes(const json_t *before, json_t *now)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(now, key, value) {
		if (strcmp(key, "name") == 0 || !json_equal(value, json_object_get(before, key)))
			json_object_set(out, key, value);
	}
	return out;
}

static void record(struct source *source, const json_t *answer)
{
	json_t *changed = json_array(), *gone = json_array(), *now = json_object(), *run;
	const char *name;
	size_t i;

	json_array_foreach(json_object_get(answer, "runs"), i, run) {
		name = js_str(run, "name", "?");
		json_object_set(now, name, run);
		if (!json_equal(run, json_object_get(source->runs, name)))
			json_array_append_new(changed,
					      changes(json_object_get(source->runs, name), run));
	}
	json_object_foreach(source->runs, name, run) {
		if (!json_object_get(now, name))
			json_array_append_new(gone, json_string(name));
	}
	json_decref(source->runs);
	source->runs = now;
	write_line(source->record,
		   json_pack("{s:O, s:o, s:o}", "time", json_object_get(answer, "time"), "runs",
			     changed, "gone", gone));
}

static const char *const page_names[PAGE_COUNT] = {
	[PAGE_STORY] = "story",     [PAGE_LOGS] = "logs",     [PAGE_CHECKPOINTS] = "checkpoints",
	[PAGE_GOODPUT] = "goodput", [PAGE_STACKS] = "stacks", [PAGE_TEAM] = "team",
};

/* What somebody may want to open in the recording. */
static void record_pages(struct source *source)
{
	json_t *pages = json_object(), *run;
	const char *name;

	json_object_foreach(source->runs, name, run) {
		json_t *of = json_object();

		for (int page = PAGE_STORY; page < PAGE_HELP; page++) {
			char *text = page == PAGE_TEAM || page == PAGE_STACKS
					     ? NULL
					     : source_page(source, (enum page)page, name);

			if (text)
				js_set_str(of, page_names[page], text);
			free(text);
		}
		json_object_set_new(pages, name, of);
	}
	write_line(source->record, json_pack("{s:o}", "pages", pages));
}

void source_fini(struct source *source)
{
	if (source->record) {
		record_pages(source);
		fclose(source->record);
	}
	json_decref(source->runs);
	json_decref(source->list);
	if (source->frames)
		json_decref(source->pages);
	json_decref(source->frames);
}

/* --- lbd -------------------------------------------------------------------------------------- */
int source_look(struct source *source, int64_t *now_ms, struct err *err)
{
	json_t *answer;

	if (source->frames) {
		look_at_frames(source, now_ms);
		return 0;
	}
	answer = client_ask(&source->ctl->client, VERB_TOP, NULL, err);
	if (!answer)
		return -1;
	if (source->record)
		record(source, answer);
	json_decref(source->list);
	source->list = json_incref(json_object_get(answer, "runs"));
	*now_ms = time_ms(answer, "time");
	json_decref(answer);
	return 0;
}

/* lbctl itself, by what the kernel runs of it. */
static char *own_output(const char *a, const char *b, const char *c, const char *d)
{
	const char *argv[] = { "/proc/self/exe", "--no-color", a, b, c, d, NULL };
	struct err err = { 0 };
	char *out = NULL;

	if (program_output(argv, PAGE_MS, &out, &err) >= 0)
		return out;
	free(out);
	return xstrdup(err.text);
}

static char *story(const char *run)
{
	char *status = own_output("status", run, NULL, NULL);
	char *events = own_output("events", run, NULL, NULL);
	char *both = xasprintf("%s\n\n%s", status, events);

	free(status);
	free(events);
	return both;
}

char *source_page(struct source *source, enum page page, const char *run)
{
	char lines[NUMBER_TEXT_MAX];

	if (source->frames)
		return xstrdup(js_str(json_object_get(source->pages, run), page_names[page],
				      "the recording has nothing of that"));
	snprintf(lines, sizeof(lines), "%d", source->record ? KEPT_LINES : LOG_LINES);
	switch (page) {
	case PAGE_STORY:
		return story(run);
	case PAGE_LOGS:
		return own_output("logs", run, "-n", lines);
	case PAGE_STACKS:
		return own_output("stacks", run, NULL, NULL);
	case PAGE_CHECKPOINTS:
		return own_output("checkpoints", run, NULL, NULL);
	case PAGE_GOODPUT:
		return own_output("goodput", run, NULL, NULL);
	default:
		return own_output("ls", "--team", NULL, NULL);
	}
}

char *source_order(struct source *source, enum act_kind kind, const char *run)
{
	char *said;

	if (source->frames)
		return xstrdup("this is a recording: nothing is killed or saved");
	said = kind == ACT_KILL ? own_output("kill", run, "--yes", "--reason=lbctl top")
				: own_output("save", run, "--yes", NULL);
	said[strcspn(said, "\n")] = '\0';
	return said;
}
