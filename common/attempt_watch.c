/* SPDX-License-Identifier: MIT */
#include "common/attempt_watch.h"

#include <stddef.h>

#include "common/json.h"

enum { HALF_HOUR_MS = 30 * 60 * 1000 };

static const struct {
	const char *name;
	size_t offset;
	int64_t fallback, least;
} limits[] = {
	{"setup_timeout_ms", offsetof(struct attempt_watch, setup_ms), HALF_HOUR_MS, 0},
	{"step_timeout_ms", offsetof(struct attempt_watch, step_ms), WATCH_AUTO, WATCH_AUTO},
	{"checkpoint_timeout_ms", offsetof(struct attempt_watch, checkpoint_ms), HALF_HOUR_MS, 0},
	{"eval_timeout_ms", offsetof(struct attempt_watch, eval_ms), HALF_HOUR_MS, 0},
	{"output_timeout_ms", offsetof(struct attempt_watch, output_ms), 0, 0},
};

enum { LIMIT_COUNT = sizeof(limits) / sizeof(limits[0]) };

json_t *attempt_watch_json(const struct attempt_watch *w)
{
	json_t *o = json_object();

	for (size_t i = 0; i < LIMIT_COUNT; i++)
		js_set_int(o, limits[i].name,
			   *(const int64_t *)((const char *)w + limits[i].offset));
	return o;
}

int attempt_watch_read(const json_t *o, struct attempt_watch *out, struct err *err)
{
	*out = (struct attempt_watch){0};
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		int64_t ms = js_int(o, limits[i].name, limits[i].fallback);

		if (ms < limits[i].least)
			return err_set(err, ERR_USAGE, "\"%s\" must not be less than %lld",
				       limits[i].name, (long long)limits[i].least);
		*(int64_t *)((char *)out + limits[i].offset) = ms;
	}
	return 0;
}

void attempt_watch_clear(struct attempt_watch *w)
{
	*w = (struct attempt_watch){0};
}
