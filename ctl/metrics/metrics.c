/* SPDX-License-Identifier: MIT */
/* metrics.c - a table of metrics: names, help, and where in a run object the value stands. */
#include "ctl/metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "ctl/base/text.h"

enum { METRICS_MAX_BYTES = 256 * 1024 * 1024 };

static const struct {
	const char *name, *help;
	const char *of, *key; /* of: the object in the run object; NULL: itself */
} rows[] = {
	{ "lowbits_run_step", "Newest step of the run.", NULL, "step" },
	{ "lowbits_run_target_step", "Step at which the run will be done.", NULL, "target_step" },
	{ "lowbits_run_loss", "Loss of the newest step.", NULL, "loss" },
	{ "lowbits_run_tokens_per_second", "Speed of the newest step.", NULL, "tokens_per_s" },
	{ "lowbits_run_median_tokens_per_second", "Median speed of the newest 64 steps.", NULL,
	  "median_tokens_per_s" },
	{ "lowbits_run_mfu_ratio", "Model FLOPs utilisation of the newest step.", NULL, "mfu" },
	{ "lowbits_run_step_seconds", "Mean time of a step of this launch.", NULL, "step_s" },
	{ "lowbits_run_last_step_timestamp_seconds", "When the newest step was made.", NULL,
	  "last_step_time" },
	{ "lowbits_run_checkpoint_step", "Step of the newest checkpoint.", "checkpoint", "step" },
	{ "lowbits_run_checkpoint_timestamp_seconds", "When the newest checkpoint was written.",
	  "checkpoint", "time" },
	{ "lowbits_run_attempts", "Jobs that the run has had.", NULL, "attempt" },
	{ "lowbits_run_gpus", "GPUs of its job.", NULL, "gpus" },
	{ "lowbits_run_limit_timestamp_seconds", "When its job's time limit comes.", NULL,
	  "limit" },
	{ "lowbits_run_created_timestamp_seconds", "When the run was submitted.", NULL, "created" },
	{ "lowbits_run_ended_timestamp_seconds", "When the run ended.", NULL, "ended" },
};

/* A label's value: cleaned, and with quotes, backslashes and newlines as the format wants them. */
static void put_label(struct buf *out, const char *name, const char *value)
{
	char *shown = xstrdup(value ? value : "");

	clean(shown, CLEAN_LINE);
	buf_addf(out, "%s=\"", name);
	for (const char *c = shown; *c; c++)
		buf_addf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	buf_addf(out, "\"");
	free(shown);
}

static void put_help(struct buf *out, const char *name, const char *help)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void put_row(struct buf *out, size_t row, const json_t *runs)
{
	const json_t *run;
	bool is_any = false;
	size_t i;

	json_array_foreach(runs, i, run) {
		const json_t *of = rows[row].of ? json_object_get(run, rows[row].of) : run;
		double value = js_real(of, rows[row].key, NAN);

		if (!isfinite(value))
			continue;
		if (!is_any)
			put_help(out, rows[row].name, rows[row].help);
		is_any = true;
		buf_addf(out, "%s{", rows[row].name);
		put_label(out, "run", js_str(run, "name", ""));
		buf_addf(out, "} %.15g\n", value);
	}
}

/* What a run is called, by which the others are joined: it changes with the state only. */
static void put_info(struct buf *out, const json_t *runs)
{
	static const char *const labels[] = { "group", "owner", "state", "cause", "scheduler" };
	const json_t *run;
	size_t i;

	put_help(out, "lowbits_run_info", "1 for each run, with what it is.");
	json_array_foreach(runs, i, run) {
		buf_addf(out, "lowbits_run_info{");
		put_label(out, "run", js_str(run, "name", ""));
		for (size_t k = 0; k < sizeof(labels) / sizeof(labels[0]); k++) {
			buf_addf(out, ",");
			put_label(out, labels[k], js_str(run, labels[k], ""));
		}
		buf_addf(out, "} 1\n");
	}
}

static void put_counts(struct buf *out, const json_t *runs)
{
	size_t of[RUN_STATE_COUNT + 1] = { 0 }, i;
	const json_t *run;

	json_array_foreach(runs, i, run) {
		of[run_state_from_name(js_str(run, "state", ""))]++;
	}
	put_help(out, "lowbits_runs", "Runs in this state; of those that ended, the last day's.");
	for (i = 0; i < RUN_STATE_COUNT; i++)
		buf_addf(out, "lowbits_runs{state=\"%s\"} %zu\n", run_state_name((enum run_state)i),
			 of[i]);
}

char *metrics_text(const json_t *answer)
{
	const json_t *runs = json_object_get(answer, "runs");
	struct buf out;

	buf_init(&out, METRICS_MAX_BYTES);
	put_help(&out, "lowbits_up", "1 where lbd answers.");
	buf_addf(&out, "lowbits_up %d\n", answer != NULL);
	if (!answer)
		return buf_take(&out);
	put_help(&out, "lowbits_answer_timestamp_seconds", "When lbd answered.");
	buf_addf(&out, "lowbits_answer_timestamp_seconds %.15g\n", js_real(answer, "time", 0));
	put_counts(&out, runs);
	put_info(&out, runs);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		put_row(&out, row, runs);
	return buf_take(&out);
}
