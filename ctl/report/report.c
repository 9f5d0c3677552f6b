/* SPDX-License-Identifier: MIT */
/* report.c - lbctl report: asks for all that the page tells, and writes it in one step. */
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

enum { CHECKPOINTS_MS = 20 * 1000, WEEK_MS = 7 * 24 * 3600 * 1000 };

struct report {
	struct report_run *runs;
	char **codes;
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

static char *code_of_run(const json_t *run)
{
	const char *dir = js_str(run, "dir", NULL);
	json_t *code = dir ? code_load(dir, NULL) : NULL;
	char *text = json_object_get(code, "root") ? code_text(code) : NULL;

	json_decref(code);
	return text;
}

static int add_run(struct ctl *ctl, struct report *report, const char *name, struct err *err)
{
	struct report_run r = { 0 };
	struct err quiet = { 0 };

	r.run = ask_about(ctl, VERB_STATUS, name, NULL, err);
	if (!r.run)
		return -1;
	/* what a colleague's files do not tell is left out */
	r.goodput = ask_about(ctl, VERB_GOODPUT, name, json_object(), &quiet);
	r.checkpoints = checkpoints_of(name);
	series_ask(ctl, name, &r.series, &quiet);
	report->runs = xrealloc(report->runs, (report->count + 1) * sizeof(r));
	report->codes = xrealloc(report->codes, (report->count + 1) * sizeof(char *));
	r.code = report->codes[report->count] = code_of_run(r.run);
	report->runs[report->count++] = r;
	return 0;
}

static void report_clear(struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		struct report_run *r = &report->runs[i];

		json_decref(r->run);
		json_decref(r->goodput);
		json_decref(r->checkpoints);
		json_decref(r->settings);
		series_clear(&r->series);
		free(report->codes[i]);
	}
	free(report->runs);
	free(report->codes);
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
	if (of_group)
		add_settings_of(ctl, report, word);
	return 0;
}

static char *title_of(const struct ctl *ctl)
{
	const struct operands *o = &ctl->operands;

	if (o->count == 0)
		return xstrdup(ctl->options.week ? "runs of the last 7 days" : "all runs");
	return xasprintf("%s%s", o->words[0], o->count > 1 ? " and others" : "");
}

static int write_page(const struct ctl *ctl, const struct report *report, struct err *err)
{
	char *title = title_of(ctl);
	char *page = page_make(title, clock_wall_ms(), report->runs, report->count);
	int rc = file_write_atomic(ctl->options.output, page, strlen(page), 0644, err);

	free(title);
	free(page);
	return rc;
}

int report_run(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;
	struct report report = { 0 };
	json_t *all;
	int rc = 0;

	if (!o->output)
		return err_set(err, ERR_USAGE, "report: where to? -o FILE.html");
	if ((ctl->operands.count > 0) == (o->team || o->week))
		return err_set(err, ERR_USAGE,
			       "report: of what? RUN or GROUP, or --team, or --week");
	all = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err);
	if (!all)
		return -1;
	for (size_t i = 0; i < ctl->operands.count && rc == 0; i++)
		rc = add_meant(ctl, &report, all, ctl->operands.words[i], err);
	if (ctl->operands.count == 0)
		rc = add_meant(ctl, &report, all, NULL, err);
	json_decref(all);
	if (rc == 0)
		rc = write_page(ctl, &report, err);
	if (rc == 0)
		hint(ctl, "%s: %zu runs", o->output, report.count);
	report_clear(&report);
	return rc;
}
