/* SPDX-License-Identifier: MIT */
/* report.c - lbctl report: asks for all that the page tells, and writes it in one step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "ctl/code/code.h"
#include "ctl/report/page.h"
#include "ctl/team/ask.h"
#include "ctl/team/team.h"
#include "ctl/team/team_goodput.h"

enum {
	CHECKPOINTS_MS = 20 * 1000,
	WEEK_MS = 7 * 24 * 3600 * 1000,
	DRAWN_RUNS = 20, /* have curves and differences; the others lines in tables */
	PATCH_MAX_BYTES = 32 * 1024,
};

struct report {
	struct report_run *runs;
	size_t count;
};

static json_t *checkpoints_of(const char *run)
{
	const char *argv[] = { "/proc/self/exe", "checkpoints", run, "--json", NULL };
	struct err err = { 0 };
	char *text = NULL;
	json_t *list = NULL;

	if (program_output(argv, CHECKPOINTS_MS, &text, &err) == 0)
		list = js_parse(text, strlen(text), NULL);
	free(text);
	return list;
}

/* What is told by the files in its folder. */
static void add_made(struct report_run *r, const char *dir)
{
	struct err quiet = { 0 };

	made_read(&r->made, js_str(r->run, "name", "?"), dir, &quiet);
	if (json_object_get(r->made.code, "root"))
		r->code = code_text(r->made.code);
	r->code_changed = code_changed(dir);
}

static int64_t setting_int(const struct report_run *r, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(r->made.settings, key);

	return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

/* Where an older lbd does not tell the team where a run's hours went: how long its jobs held how
 * many GPUs. */
static json_t *held_hours(const struct report_run *r, int64_t now_ms)
{
	int64_t gpus = setting_int(r, "slurm.nodes", 1) * setting_int(r, "slurm.gpus_per_node", 0),
		held_ms = 0;
	const json_t *attempt;
	size_t i;

	json_array_foreach(json_object_get(r->run, "attempts"), i, attempt) {
		int64_t from_ms = time_ms(attempt, "start_time"),
			to_ms = time_ms(attempt, "end_time");

		if (to_ms == 0 && strcmp(js_str(attempt, "state", ""), "running") == 0)
			to_ms = now_ms;
		if (from_ms > 0 && to_ms > from_ms)
			held_ms += to_ms - from_ms;
	}
	return json_pack("{s:f}", "gpu_hours_total", (double)(held_ms * gpus) / 3600e3);
}

/* From the run's beginning; with --week of the last 7 days. NULL where nothing is told. */
static json_t *goodput_of(struct ctl *ctl, const char *name, const struct report_run *r)
{
	bool of_week = ctl->options.week, is_theirs = strchr(name, '/') != NULL;
	const struct team_export *export;
	struct err quiet = { 0 };
	json_t *goodput;

	if (!is_theirs)
		return ask_about(ctl, VERB_GOODPUT, name,
				 json_pack("{s:I}", "since",
					   (json_int_t)(of_week ? WEEK_MS / 1000 : 0)),
				 &quiet);
	goodput = team_goodput(team_run(ctl, name, &export, &quiet), of_week ? "last7d" : NULL);
	return goodput || of_week ? goodput : held_hours(r, clock_wall_ms());
}

/* Curves take long, and room: the first runs have some. */
static int add_run(struct ctl *ctl, struct report *report, const char *name, struct err *err)
{
	struct report_run r = { 0 };
	struct err quiet = { 0 };
	const char *dir;

	r.run = ask_about(ctl, VERB_STATUS, name, NULL, err);
	if (!r.run)
		return -1;
	dir = js_str(r.run, "dir", NULL);
	if (dir)
		add_made(&r, dir);
	if (report->count < DRAWN_RUNS)
		series_ask(ctl, name, &r.series, &quiet);
	if (report->count < DRAWN_RUNS && dir)
		use_read(&r.use, dir);
	r.goodput = goodput_of(ctl, name, &r);
	if (!strchr(name, '/'))
		r.checkpoints = checkpoints_of(name);
	report->runs = xrealloc(report->runs, (report->count + 1) * sizeof(r));
	report->runs[report->count++] = r;
	return 0;
}

static void report_clear(struct report *report)
{
	for (size_t i = 0; i < report->count; i++)
		report_run_clear(&report->runs[i]);
	free(report->runs);
}

/* --- beside each other ------------------------------------------------------------------------ */

/* The oldest run of its group; where runs were named, the first. NULL: itself, or none. */
static const struct report_run *compared_with(const struct ctl *ctl, const struct report *report,
					      size_t at)
{
	const char *group = js_str(report->runs[at].run, "group", NULL);
	const struct report_run *base = ctl->operands.count > 0 ? &report->runs[0] : NULL;
	double oldest = INFINITY;

	for (size_t i = 0; group && i < report->count; i++) {
		const json_t *run = report->runs[i].run;

		if (strcmp(js_str(run, "group", ""), group) == 0 &&
		    js_real(run, "created", INFINITY) < oldest) {
			oldest = js_real(run, "created", INFINITY);
			base = &report->runs[i];
		}
	}
	return base == &report->runs[at] ? NULL : base;
}

static void add_differences(const struct ctl *ctl, struct report *report)
{
	for (size_t i = 0; i < report->count && i < DRAWN_RUNS; i++) {
		struct report_run *r = &report->runs[i];
		const struct report_run *base = compared_with(ctl, report, i);
		struct err why = { 0 };

		if (!base || !r->made.code || !base->made.code)
			continue;
		r->differs_from = xstrdup(js_str(base->run, "name", "?"));
		r->differs = made_differences(&base->made, &r->made);
		r->code_patch = made_patch(&base->made, &r->made, PATCH_MAX_BYTES, &why);
		r->code_why = r->code_patch ? NULL : xstrdup(why.text);
	}
}

/* Those of a group by the command that compares them. */
static void add_settings_of(struct ctl *ctl, struct report *report, const char *group)
{
	struct err quiet = { 0 };
	json_t *data = client_ask(&ctl->client, VERB_COMPARE, json_pack("{s:s}", "group", group),
				  &quiet);
	json_t *run;
	size_t i;

	json_array_foreach(json_object_get(data, "runs"), i, run) {
		for (size_t k = 0; k < report->count; k++) {
			struct report_run *r = &report->runs[k];

			if (strcmp(js_str(r->run, "name", ""), js_str(run, "name", "?")) == 0 &&
			    !r->settings)
				r->settings = json_incref(json_object_get(run, "settings"));
		}
	}
	json_decref(data);
}

/* Whatever words meant the runs. */
static void add_settings(struct ctl *ctl, struct report *report)
{
	json_t *asked = json_object();

	for (size_t i = 0; i < report->count; i++) {
		const char *group = js_str(report->runs[i].run, "group", NULL);

		if (!group || json_object_get(asked, group))
			continue;
		json_object_set_new(asked, group, json_true());
		add_settings_of(ctl, report, group);
	}
	json_decref(asked);
}

/* --- which runs ------------------------------------------------------------------------------- */

/* Is the word a group, and no run? Then its runs are meant. */
static bool is_group(const json_t *runs, const char *word)
{
	bool is_any = false;
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run) {
		if (strcmp(js_str(run, "name", ""), word) == 0)
			return false;
		is_any = is_any || strcmp(js_str(run, "group", ""), word) == 0;
	}
	return is_any;
}

static bool is_recent(const json_t *run, int64_t now_ms)
{
	int64_t ended_ms = time_ms(run, "ended");

	return ended_ms == 0 || now_ms - ended_ms < WEEK_MS;
}

/* The runs that the command line means, by `all` of them. */
static int add_meant(struct ctl *ctl, struct report *report, const json_t *all, const char *word,
		     struct err *err)
{
	bool of_group = word && is_group(all, word);
	int64_t now_ms = clock_wall_ms();
	const json_t *run;
	size_t i;

	if (word && !of_group)
		return add_run(ctl, report, word, err);
	json_array_foreach(all, i, run) {
		bool is_meant = word ? strcmp(js_str(run, "group", ""), word) == 0
				     : !ctl->options.week || is_recent(run, now_ms);

		if (is_meant && add_run(ctl, report, js_str(run, "name", "?"), err) < 0)
			return -1;
	}
	return 0;
}

/* Of a run whose folder is closed to us: what its owner tells the team. */
static void add_told(const struct ctl *ctl, struct report *report, const json_t *run)
{
	struct report_run r = { .run = json_deep_copy(run),
				.goodput = team_goodput(run, ctl->options.week ? "last7d" : NULL) };

	report->runs = xrealloc(report->runs, (report->count + 1) * sizeof(r));
	report->runs[report->count++] = r;
}

/* Those that colleagues tell of, where there is a team; one whose folder is closed to us is said,
 * and counted by what is told. */
static int add_colleagues(struct ctl *ctl, struct report *report, struct err *err)
{
	struct err why = { 0 };
	const json_t *run;
	size_t i;

	if (team_load(ctl, &why) < 0)
		return why.code == ERR_USAGE && report->count > 0
			       ? 0
			       : err_set(err, why.code, "%s", why.text);
	for (size_t n = 0; n < ctl->team.count; n++) {
		const struct team_export *export = &ctl->team.exports[n];

		json_array_foreach(export->runs, i, run) {
			char *name = xasprintf("%s/%s", export->user, js_str(run, "name", "?"));
			struct err closed = { 0 };

			if (!team_is_mine(ctl, name) && add_run(ctl, report, name, &closed) < 0) {
				complain(ctl, closed.text);
				add_told(ctl, report, run);
			}
			free(name);
		}
	}
	return 0;
}

static char *title_of(const struct ctl *ctl)
{
	const struct operands *o = &ctl->operands;

	if (o->count == 0)
		return xasprintf("%s%s", ctl->options.team ? "the team's runs" : "all runs",
				 ctl->options.week ? " of the last 7 days" : "");
	return xasprintf("%s%s", o->words[0], o->count > 1 ? " and others" : "");
}

static int write_page(struct ctl *ctl, const struct report *report, struct err *err)
{
	struct err quiet = { 0 };
	json_t *nodes = client_ask(&ctl->client, VERB_NODES, NULL, &quiet);
	char *title = title_of(ctl);
	const char *note = ctl->options.week ? "; hours are those of these 7 days" : "";
	char *page = page_make(title, note, clock_wall_ms(), report->runs, report->count, nodes);
	int rc = file_write_named(ctl->options.output, page, strlen(page), 0666 & ~file_umask(),
				  err);

	json_decref(nodes);
	free(title);
	free(page);
	return rc;
}

int report_run(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;
	struct report report = { 0 };
	json_t *all, *names;
	int rc = 0;

	if (!o->output)
		return err_set(err, ERR_USAGE, "report: where to? -o FILE.html");
	if ((ctl->operands.count > 0) == (o->team || o->week))
		return err_set(err, ERR_USAGE,
			       "report: of what? RUN or GROUP, or --team, or --week");
	all = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err);
	if (!all && o->team && err->code == ERR_DAEMON) { /* who has none may look at the team's */
		err_clear(err);
		all = json_array();
	}
	if (!all)
		return -1;
	names = runs_meant(ctl, err);
	if (!names)
		rc = -1;
	for (size_t i = 0; i < json_array_size(names) && rc == 0; i++)
		rc = add_meant(ctl, &report, all, json_string_value(json_array_get(names, i)), err);
	if (rc == 0 && ctl->operands.count == 0)
		rc = add_meant(ctl, &report, all, NULL, err);
	if (rc == 0 && o->team)
		rc = add_colleagues(ctl, &report, err);
	json_decref(names);
	json_decref(all);
	if (rc == 0) {
		if (ctl->operands.count > 0)
			add_settings(ctl, &report);
		add_differences(ctl, &report);
		rc = write_page(ctl, &report, err);
	}
	if (rc == 0)
		hint(ctl, "%s: %zu runs", o->output, report.count);
	report_clear(&report);
	return rc;
}
