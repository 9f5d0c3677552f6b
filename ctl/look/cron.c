/* SPDX-License-Identifier: MIT */
/* cron.c - lbctl cron: the periodic jobs - when each ran last and how it ended, when it comes next,
 * and why not. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

enum { JOB_NAME, JOB_WHEN, JOB_LAST, JOB_RESULT, JOB_NEXT, JOB_NOTE, JOB_COUNT };
static const struct column columns[JOB_COUNT] = {
	[JOB_NAME] = { .title = "NAME", .least = 32, .rank = 0 },
	[JOB_WHEN] = { .title = "WHEN", .rank = 4 },
	[JOB_LAST] = { .title = "LAST", .rank = 3 },
	[JOB_RESULT] = { .title = "RESULT", .rank = 1 },
	[JOB_NEXT] = { .title = "NEXT", .rank = 2 },
	[JOB_NOTE] = { .title = "NOTE", .rank = 5 },
};

/* "completed" of the run, else what became of the tick. */
static const char *result_of(const json_t *last)
{
	return js_str(last, "run_state", js_str(last, "state", NULL));
}

static bool is_bad(const char *result)
{
	return result && (strcmp(result, "failed") == 0 || strcmp(result, "refused") == 0);
}

static char *clock_copy(int64_t wall_ms)
{
	char text[CLOCK_TEXT_MAX];

	return xstrdup(clock_text(wall_ms, text));
}

static char *note_of(const json_t *job, const struct style *style)
{
	const json_t *last = json_object_get(job, "last");

	if (!js_bool(job, "enabled", true))
		return xasprintf("disabled by %s", js_str(job, "disabled_by", "?"));
	if (js_str(job, "problem", NULL))
		return xstrdup("cannot run, see below");
	return clean_copy(js_str(last, "text", ""), style);
}

/* The zone that this process tells times in, by name; "" = not known. */
static void reader_zone(char *out, size_t size)
{
	const char *name = getenv("TZ");
	ssize_t len = name ? -1 : readlink("/etc/localtime", out, size - 1);
	const char *at;

	out[len > 0 ? len : 0] = '\0';
	at = name ? name + (name[0] == ':') : strstr(out, "zoneinfo/");
	if (at && !name)
		at += strlen("zoneinfo/");
	memmove(out, at ? at : "", at ? strnlen(at, size - 1) + 1 : 1);
	out[size - 1] = '\0';
}

/* LAST and NEXT are told in the reader's zone; what was written for another one says so. */
static char *when_of(const json_t *job, const struct style *style)
{
	const char *zone = js_str(job, "time_zone", NULL);
	char *when = clean_copy(js_str(job, "when", NULL), style), *shown, *whole;
	char reader[PATH_MAX];

	reader_zone(reader, sizeof(reader));
	if (!zone || strcmp(zone, reader) == 0)
		return when;
	shown = clean_copy(zone, style);
	whole = xasprintf("%s %s", when, shown);
	free(when);
	free(shown);
	return whole;
}

static void fill_row(struct cell *row, const json_t *job, const struct style *style)
{
	const json_t *last = json_object_get(job, "last");

	row[JOB_NAME].text = clean_copy(js_str(job, "name", NULL), style);
	row[JOB_WHEN].text = when_of(job, style);
	row[JOB_LAST].text = clock_copy(time_ms(last, "scheduled"));
	row[JOB_RESULT].text = xstrdup(last ? result_of(last) : "-");
	row[JOB_RESULT].color = is_bad(result_of(last)) ? COLOR_BAD : COLOR_NONE;
	row[JOB_NEXT].text = clock_copy(time_ms(job, "next"));
	row[JOB_NOTE].text = note_of(job, style);
}

static int show(struct ctl *ctl, struct err *err)
{
	json_t *data = client_ask(&ctl->client, VERB_CRON, NULL, err), *problem;
	const json_t *jobs = json_object_get(data, "entries");
	size_t i;

	if (!data)
		return -1;
	if (ctl->options.json) {
		print_json(data);
		return 0;
	}
	if (json_array_size(jobs) > 0)
		print_rows(ctl, columns, JOB_COUNT, jobs, fill_row);
	json_array_foreach(json_object_get(data, "problems"), i, problem) {
		char *text = clean_copy(json_string_value(problem), &ctl->err);

		complain(ctl, text);
		free(text);
	}
	if (json_array_size(jobs) == 0)
		hint(ctl,
		     "no periodic jobs; make %s/cron.daily and drop scripts (*.sh, *.slurm) "
		     "into it, or write %s/crontab; both are read each minute",
		     js_str(data, "folder", ""), js_str(data, "folder", ""));
	json_decref(data);
	return 0;
}

static int run_now(struct ctl *ctl, struct err *err)
{
	json_t *data = client_ask(&ctl->client, VERB_CRON_RUN,
				  json_pack("{s:s}", "name", ctl->operands.words[1]), err);

	if (!data)
		return -1;
	puts(js_str(data, "run", ""));
	json_decref(data);
	return 0;
}

static int set_enabled(struct ctl *ctl, bool enabled, struct err *err)
{
	json_t *data = client_ask(
		&ctl->client, VERB_CRON_SET,
		json_pack("{s:s, s:b}", "name", ctl->operands.words[1], "enabled", enabled), err);

	json_decref(data);
	return data ? 0 : -1;
}

int cron_run(struct ctl *ctl, struct err *err)
{
	const struct operands *o = &ctl->operands;

	if (o->count == 0 || (o->count == 1 && strcmp(o->words[0], "ls") == 0))
		return show(ctl, err);
	if (ctl->options.json)
		return err_set(err, ERR_USAGE, "cron: --json is for ls");
	if (o->count == 2 && strcmp(o->words[0], "run") == 0)
		return run_now(ctl, err);
	if (o->count == 2 && strcmp(o->words[0], "enable") == 0)
		return set_enabled(ctl, true, err);
	if (o->count == 2 && strcmp(o->words[0], "disable") == 0)
		return set_enabled(ctl, false, err);
	return err_set(err, ERR_USAGE, "cron: usage: lbctl cron %s", ctl->command->usage);
}
