/* SPDX-License-Identifier: MIT */
/* goodput.c - lbctl goodput: where the hours of a run went. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/hours.h"
#include "ctl/base/print.h"
#include "ctl/base/starts.h"
#include "ctl/look/goodput_sums.h"
#include "ctl/team/ask.h"

/* As long as it is: what took seconds is not told in thousandths of an hour. */
static const char *time_text(double hours, char out[CLOCK_TEXT_MAX])
{
	return duration_text(hours >= 0 && hours < 1e9 ? llround(hours * 3600) * 1000 : -1, out);
}

/* People are billed in hours, however many days they are. */
static const char *gpu_time_text(double hours, char out[CLOCK_TEXT_MAX])
{
	if (hours < 1)
		return time_text(hours, out);
	snprintf(out, CLOCK_TEXT_MAX, hours < 100 ? "%.1f h" : "%.0f h", hours);
	return out;
}

static void print_goodput(const json_t *data)
{
	const json_t *hours = json_object_get(data, "hours");
	const json_t *gpu_hours = json_object_get(data, "gpu_hours");
	double total = js_real(data, "hours_total", 0), ettr = js_real(data, "ettr", NAN);
	char text[CLOCK_TEXT_MAX], gpu_text[CLOCK_TEXT_MAX];

	if (isfinite(ettr))
		printf("%.1f%% of %s were productive (ETTR %.3f)\n", 100 * ettr,
		       time_text(total, text), ettr);
	printf("%-25s %10s %10s %6s\n", "", "TIME", "GPU TIME", "SHARE");
	for (size_t i = 0; i < HOURS_PARTS; i++) {
		double h = js_real(hours, hours_parts[i].name, 0);

		printf("%-25s %10s %10s %5.1f%%\n", hours_parts[i].words, time_text(h, text),
		       gpu_time_text(js_real(gpu_hours, hours_parts[i].name, 0), gpu_text),
		       total > 0 ? 100 * h / total : 0);
	}
}

/* Where start-up and restore went. */
static void print_starts(const json_t *data, const struct style *style)
{
	const json_t *starts = json_object_get(data, "starts");
	json_t *hours = json_object_get(starts, "hours"), *h;
	double total = js_real(data, "hours_total", 0);
	int64_t gpus = js_int(data, "gpus", 0);
	char text[CLOCK_TEXT_MAX], gpu_text[CLOCK_TEXT_MAX];
	const char *name;

	if (json_object_size(hours) == 0)
		return;
	printf("\n%-25s %10s %10s %6s   (%lld)\n", "STARTS, BY PHASE", "TIME", "GPU TIME", "SHARE",
	       (long long)js_int(starts, "launches", 0));
	json_object_foreach(hours, name, h) {
		double value = json_number_value(h);
		char *words = clean_copy(starts_words(name), style);

		printf("%-25s %10s %10s %5.1f%%\n", words, time_text(value, text),
		       gpu_time_text(value * (double)gpus, gpu_text),
		       total > 0 ? 100 * value / total : 0);
		free(words);
	}
}

/* What ended launches, and what was lost or hung away by it. */
static void print_causes(const json_t *data)
{
	json_t *causes = json_object_get(data, "causes"), *cause;
	char text[CLOCK_TEXT_MAX];
	const char *name;

	if (json_object_size(causes) > 0)
		printf("\n%-25s %10s %10s\n", "LAUNCHES ENDED BY", "LAUNCHES", "TIME LOST");
	json_object_foreach(causes, name, cause) {
		printf("%-25s %10lld %10s\n", name, (long long)js_int(cause, "launches", 0),
		       time_text(js_real(cause, "hours", 0), text));
	}
}

int goodput_run(struct ctl *ctl, struct err *err)
{
	const char *first = ctl->operands.count ? ctl->operands.words[0] : "";
	bool is_one = ctl->operands.count == 1 && !strpbrk(first, "*?@") &&
		      strcmp(first, "ALL") != 0 && !ctl->options.team;
	json_t *args, *data;

	if (ctl->operands.count == 0 && !ctl->options.team)
		return err_set(err, ERR_USAGE, "goodput: of which runs? RUNS, ALL or --team");
	if (ctl->options.csv && ctl->options.json)
		return err_set(err, ERR_USAGE, "goodput: --csv and --json do not go together");
	if (!is_one || ctl->options.by || ctl->options.csv)
		return goodput_sums(ctl, err);
	args = json_pack("{s:I}", "since", (json_int_t)goodput_since_s(ctl));
	data = ask_about(ctl, VERB_GOODPUT, first, args, err);
	if (!data)
		return -1;
	if (ctl->options.json) {
		print_json(data);
		return 0;
	}
	print_goodput(data);
	print_starts(data, &ctl->out);
	print_causes(data);
	json_decref(data);
	return 0;
}
