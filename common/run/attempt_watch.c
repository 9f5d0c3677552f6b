/* SPDX-License-Identifier: MIT */
/* attempt_watch.c - limits of a watch as JSON, and back. */
#include "common/run/attempt_watch.h"

#include <stddef.h>
#include <stdlib.h>

#include "common/base/json.h"
#include "common/base/mem.h"

enum { HALF_HOUR_MS = 30 * 60 * 1000 };

static const struct {
	const char *name;
	size_t offset;
	int64_t fallback, least;
} limits[] = {
	{ "setup_timeout_ms", offsetof(struct attempt_watch, setup_ms), HALF_HOUR_MS, 0 },
	{ "step_timeout_ms", offsetof(struct attempt_watch, step_ms), WATCH_AUTO, WATCH_AUTO },
	{ "checkpoint_timeout_ms", offsetof(struct attempt_watch, checkpoint_ms), HALF_HOUR_MS, 0 },
	{ "eval_timeout_ms", offsetof(struct attempt_watch, eval_ms), HALF_HOUR_MS, 0 },
	{ "output_timeout_ms", offsetof(struct attempt_watch, output_ms), 0, 0 },
	{ "node_timeout_ms", offsetof(struct attempt_watch, node_ms), 0, 0 },
	{ "usage_every_ms", offsetof(struct attempt_watch, usage_ms), 0, 0 },
	{ "idle_gpu_ms", offsetof(struct attempt_watch, idle_gpu_ms), 0, 0 },
};

enum { LIMIT_COUNT = sizeof(limits) / sizeof(limits[0]) };

json_t *attempt_watch_json(const struct attempt_watch *w)
{
	json_t *o = json_object();
	json_t *errors = json_array();

	for (size_t i = 0; i < LIMIT_COUNT; i++)
		js_set_int(o, limits[i].name,
			   *(const int64_t *)((const char *)w + limits[i].offset));
	js_set_str(o, "progress_regex", w->progress_regex);
	for (char **text = w->node_errors; text && *text; text++)
		json_array_append_new(errors, json_string(*text));
	json_object_set_new(o, "node_error_regex", errors);
	return o;
}

static char **read_list(const json_t *list)
{
	char **out = xcalloc(json_array_size(list) + 1, sizeof(out[0]));
	size_t count = 0;
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		if (json_is_string(item))
			out[count++] = xstrdup(json_string_value(item));
	}
	return out;
}

int attempt_watch_read(const json_t *o, struct attempt_watch *out, struct err *err)
{
	const char *text;

	*out = (struct attempt_watch){ 0 };
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		int64_t ms = js_int(o, limits[i].name, limits[i].fallback);

		if (ms < limits[i].least)
			return err_set(err, ERR_USAGE, "\"%s\" must not be less than %lld",
				       limits[i].name, (long long)limits[i].least);
		*(int64_t *)((char *)out + limits[i].offset) = ms;
	}
	text = js_str(o, "progress_regex", NULL);
	out->progress_regex = text ? xstrdup(text) : NULL;
	out->node_errors = read_list(json_object_get(o, "node_error_regex"));
	return 0;
}

void attempt_watch_clear(struct attempt_watch *w)
{
	for (char **text = w->node_errors; text && *text; text++)
		free(*text);
	free(w->node_errors);
	free(w->progress_regex);
	*w = (struct attempt_watch){ 0 };
}
