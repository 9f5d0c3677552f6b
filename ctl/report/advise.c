/* SPDX-License-Identifier: MIT */
/* advise.c - lbctl advise: how often a run should save. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/run/attempt_folders.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/starts.h"
#include "ctl/report/advice.h"
#include "ctl/team/ask.h"

enum { READ_BYTES = 1024 * 1024, MONTH_HOURS = 30 * 24, DEAR_START_S = 60, DAY_S = 86400 };

static int on_line(const struct spool_line *line, void *arg)
{
	advice_add(arg, line);
	return 0;
}

static int read_run(struct advice_facts *f, const char *run_dir, struct err *err)
{
	size_t count;
	int64_t *numbers = attempt_folders(run_dir, &count), got = 0;

	for (size_t i = 0; got >= 0 && i < count; i++) {
		char *path = path_join("%s/attempts/%lld/spool.jsonl", run_dir,
				       (long long)numbers[i]);
		int64_t offset = 0;

		while ((got = spool_read(path, &offset, READ_BYTES, on_line, NULL, f, err)) > 0)
			;
		free(path);
	}
	free(numbers);
	return got < 0 ? -1 : 0;
}

static json_t *view(const char *run, const struct advice *a, json_t *goodput)
{
	int64_t gpus = js_int(goodput, "gpus", 0);
	json_t *o = json_object();

	js_set_str(o, "run", run);
	js_set_real(o, "step_s", a->step_s);
	js_set_int(o, "saves", a->saves);
	js_set_real(o, "save_s", a->save_s);
	js_set_real(o, "interval_s", a->interval_s);
	js_set_int(o, "troubles", a->troubles);
	js_set_real(o, "node_days", a->node_days);
	js_set_real(o, "mtbf_s", a->mtbf_s);
	js_set_real(o, "best_interval_s", a->best_s);
	js_set_real(o, "best_interval_steps", a->best_s / a->step_s);
	js_set_int(o, "gpus", gpus);
	js_set_real(o, "gpu_hours_a_month",
		    (a->lost_now - a->lost_best) * MONTH_HOURS * (double)(gpus > 0 ? gpus : 1));
	json_object_set(o, "starts", json_object_get(goodput, "starts"));
	return o;
}

/* An lbd of an earlier version tells of none, nor does a colleague's: NULL. */
static const struct troubles *troubles_of(const json_t *hours, struct troubles *out)
{
	const json_t *o = json_object_get(hours, "ledger_troubles");

	*out = (struct troubles){ js_real(o, "count", 0), js_real(o, "node_days", 0) };
	return o ? out : NULL;
}

static void print_advice(const struct advice *a, const struct troubles *seen, int64_t gpus)
{
	char cost[CLOCK_TEXT_MAX], now[CLOCK_TEXT_MAX], mtbf[CLOCK_TEXT_MAX], best[CLOCK_TEXT_MAX],
		nodes[CLOCK_TEXT_MAX];
	double month = (a->lost_now - a->lost_best) * MONTH_HOURS * (double)(gpus > 0 ? gpus : 1);

	printf("troubles:  %lld in %s of node time", (long long)a->troubles,
	       span_text(a->node_days * DAY_S, nodes));
	if (seen)
		printf(" (all runs: %.1f in %s, those of late weighed more)", seen->count,
		       span_text(seen->node_days * DAY_S, nodes));
	printf(", so one in %s is to be expected\n", span_text(a->mtbf_s, mtbf));
	if (isnan(a->save_s)) {
		printf("saving:    what it costs cannot be told from %lld saves and the steps "
		       "between them\n",
		       (long long)a->saves);
		return;
	}
	printf("saving:    %s each (median of %lld)", span_text(a->save_s, cost),
	       (long long)a->saves);
	if (isfinite(a->interval_s))
		printf(", every %s now", span_text(a->interval_s, now));
	printf("\nadvice:    save every %s (%.0f steps)", span_text(a->best_s, best),
	       fmax(1, round(a->best_s / a->step_s)));
	if (isfinite(month) && month > 0)
		printf("; that would keep %.*f %s-hours a month", month < 10 ? 1 : 0, month,
		       gpus > 0 ? "GPU" : "run");
	puts("\n           or checkpoint.save_every = \"auto\", for a trainer that reads orders");
}

/* Of all starts that were told, each. */
static void print_starts(const json_t *starts, int64_t gpus, const struct style *style)
{
	int64_t count = js_int(starts, "launches", 0);
	json_t *hours = json_object_get(starts, "hours");
	double total = js_real(starts, "hours_total", 0);
	char span[CLOCK_TEXT_MAX], *text;

	if (count == 0)
		return;
	text = starts_text(hours, 3600 / (double)count, style);
	printf("starts:    %s each (mean of %lld): %s\n",
	       span_text(total * 3600 / (double)count, span), (long long)count, text);
	if (total * 3600 / (double)count >= DEAR_START_S &&
	    total * (double)(gpus > 0 ? gpus : 1) >= 1)
		printf("           %.1f %s-hours so far; cache.folder keeps compiled code on the "
		       "node (lbd-run(5))\n",
		       total * (double)(gpus > 0 ? gpus : 1), gpus > 0 ? "GPU" : "run");
	free(text);
}

int advise_run(struct ctl *ctl, struct err *err)
{
	const char *name = ctl->operands.words[0];
	json_t *run = ask_about(ctl, VERB_STATUS, name, NULL, err), *hours = NULL;
	struct advice_facts facts = { .step = -1 };
	const char *dir = js_str(run, "dir", NULL);
	struct troubles ledger;
	const struct troubles *seen = NULL;
	struct advice advice;
	int64_t gpus;
	int rc = -1;

	if (!run)
		return -1;
	if (!dir)
		err_set(err, ERR_NOT_FOUND, "%s: its folder is not told", name);
	else
		rc = read_run(&facts, dir, err);
	if (rc == 0) {
		hours = ask_about(ctl, VERB_GOODPUT, name, json_object(), &(struct err){ 0 });
		gpus = js_int(hours, "gpus", 0);
		seen = troubles_of(hours, &ledger);
		advice_work_out(&facts, clock_wall_ms(), seen, &advice);
		if (ctl->options.json)
			print_json(view(name, &advice, hours));
		else {
			print_starts(json_object_get(hours, "starts"), gpus, &ctl->out);
			print_advice(&advice, seen, gpus);
		}
	}
	advice_clear(&facts);
	json_decref(hours);
	json_decref(run);
	return rc;
}
