/* SPDX-License-Identifier: MIT */
/* goodput: where the hours of a run went. */
#include <math.h>

#include "common/json.h"
#include "ctl/command.h"

static const struct {
	const char *name, *words;
} rows[] = {
	{"productive", "productive"},
	{"queue", "waiting in the queue"},
	{"startup", "start-up"},
	{"restore", "restore from checkpoints"},
	{"lost", "lost since a checkpoint"},
	{"hang", "hanging"},
	{"pause", "back-off and hold"},
	{"other", "other"},
};

static void print_goodput(const json_t *data)
{
	const json_t *hours = json_object_get(data, "hours");
	const json_t *gpu_hours = json_object_get(data, "gpu_hours");
	double total = js_real(data, "hours_total", 0), ettr = js_real(data, "ettr", NAN);

	if (isfinite(ettr))
		printf("%.1f%% of %.2f hours were productive (ETTR %.3f)\n", 100 * ettr, total,
		       ettr);
	printf("%-25s %10s %10s %6s\n", "", "HOURS", "GPU-HOURS", "SHARE");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double h = js_real(hours, rows[i].name, 0);

		printf("%-25s %10.3f %10.3f %5.1f%%\n", rows[i].words, h,
		       js_real(gpu_hours, rows[i].name, 0), total > 0 ? 100 * h / total : 0);
	}
}

/* What ended launches, and what was lost or hung away by it. */
static void print_causes(const json_t *data)
{
	json_t *causes = json_object_get(data, "causes"), *cause;
	const char *name;

	if (json_object_size(causes) > 0)
		printf("\n%-25s %10s %10s\n", "LAUNCHES ENDED BY", "LAUNCHES", "HOURS LOST");
	json_object_foreach(causes, name, cause) {
		printf("%-25s %10lld %10.3f\n", name, (long long)js_int(cause, "launches", 0),
		       js_real(cause, "hours", 0));
	}
}

int goodput_run(struct ctl *ctl, struct err *err)
{
	json_t *args = json_pack("{s:I}", "since", (json_int_t)(ctl->options.since_ms / 1000));
	json_t *data = ask_about(ctl, VERB_GOODPUT, ctl->operands.words[0], args, err);

	if (!data)
		return -1;
	if (ctl->options.json) {
		print_json(data);
		return 0;
	}
	print_goodput(data);
	print_causes(data);
	json_decref(data);
	return 0;
}
