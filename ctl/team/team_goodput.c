/* SPDX-License-Identifier: MIT */
/* team_goodput.c - adds up the weeks of an export (docs/PROTOCOL.md, section 6). */
#include "ctl/team/team_goodput.h"

#include <math.h>
#include <string.h>

#include "common/base/json.h"
#include "common/run/spent.h"

struct sum {
	int64_t ms[SPENT_COUNT], interruptions;
};

bool team_tells_goodput(const json_t *run)
{
	return json_is_object(json_object_get(run, "goodput"));
}

static void add(struct sum *sum, const json_t *window)
{
	const json_t *ms = json_object_get(window, "ms");

	for (int i = 0; i < SPENT_COUNT; i++)
		sum->ms[i] += js_int(ms, spent_name((enum spent)i), 0);
	sum->interruptions += js_int(window, "interruptions", 0);
}

static json_t *view(const struct sum *sum, int64_t gpus)
{
	json_t *o = json_object(), *hours = json_object(), *gpu_hours = json_object();
	int64_t total_ms = 0;
	double held = 0;

	for (int i = 0; i < SPENT_COUNT; i++) {
		double h = (double)sum->ms[i] / 3600e3;
		double of_gpus = spent_holds_nodes((enum spent)i) ? h * (double)gpus : 0;

		js_set_real(hours, spent_name((enum spent)i), h);
		js_set_real(gpu_hours, spent_name((enum spent)i), of_gpus);
		total_ms += sum->ms[i];
		held += of_gpus;
	}
	/* to the last digit what its owner is told */
	js_set_real(o, "ettr",
		    total_ms > 0 ? (double)sum->ms[SPENT_PRODUCTIVE] / (double)total_ms : NAN);
	js_set_real(o, "hours_total", (double)total_ms / 3600e3);
	json_object_set_new(o, "hours", hours);
	js_set_int(o, "gpus", gpus);
	js_set_int(o, "interruptions", sum->interruptions);
	js_set_real(o, "gpu_hours_total", held);
	json_object_set_new(o, "gpu_hours", gpu_hours);
	return o;
}

json_t *team_goodput(const json_t *run, const char *of)
{
	const json_t *goodput = json_object_get(run, "goodput"), *window;
	/* younger than that: all of it lies there */
	const json_t *recent = of && strcmp(of, "last7d") == 0 ? json_object_get(goodput, of)
							       : NULL;
	bool is_of_week = of && strcmp(of, "last7d") != 0;
	struct sum sum = { .interruptions = 0 };
	size_t i;

	if (!team_tells_goodput(run))
		return NULL;
	if (recent)
		add(&sum, recent);
	json_array_foreach(json_object_get(goodput, "weeks"), i, window) {
		if (!recent && (!is_of_week || strcmp(js_str(window, "week", ""), of) == 0))
			add(&sum, window);
	}
	return view(&sum, js_int(goodput, "gpus", 0));
}
