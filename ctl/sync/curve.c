/* SPDX-License-Identifier: MIT */
/* curve.c - a step that is not beyond the last one takes back all from there on. */
#include "ctl/sync/curve.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/attempt_folders.h"

enum { READ_BYTES = 8 * 1024 * 1024 };

static char *numbers_of(json_t *line)
{
	json_t *values = json_object(), *value;
	const char *key;
	char *text;

	json_object_foreach(line, key, value) {
		if (json_is_number(value) && strcmp(key, "step") != 0 && strcmp(key, "rank") != 0)
			json_object_set(values, key, value);
	}
	text = js_line(values);
	json_decref(values);
	return text;
}

static void take_back(struct curve *c, int64_t step)
{
	while (c->count > 0 && c->points[c->count - 1].step >= step) {
		free(c->points[--c->count].values);
		if (c->saved_step >= step)
			c->saved_step = step - 1;
	}
}

static void add_step(struct curve *c, const struct spool_line *line)
{
	int64_t step = js_int(line->line, "step", -1);

	if (step < 0 || js_int(line->line, "rank", 0) > 0)
		return;
	take_back(c, step);
	if (c->count == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 1024;
		c->points = xrealloc(c->points, c->cap * sizeof(*c->points));
	}
	c->points[c->count++] = (struct curve_point){ step, line->time_ms, numbers_of(line->line) };
}

static int add_line(const struct spool_line *line, void *arg)
{
	struct curve *c = arg;
	const char *type = js_str(line->line, "type", "");
	int64_t step = js_int(line->line, "step", -1);

	if (line->from_trainer && strcmp(type, "step") == 0)
		add_step(c, line);
	else if (!line->from_trainer && strcmp(type, "checkpoint_valid") == 0 &&
		 js_bool(line->line, "valid", false) && step > c->saved_step)
		c->saved_step = step;
	return 0;
}

size_t curve_settled(const struct curve *c, bool is_over)
{
	size_t count = c->count;

	while (!is_over && count > 0 && c->points[count - 1].step > c->saved_step)
		count--;
	return count;
}

/* Over steps and times: a step that was made again came at another time. */
uint64_t curve_digest(const struct curve *c, size_t count)
{
	uint64_t digest = FNV_START;

	for (size_t i = 0; i < count; i++) {
		digest = fnv_add(digest, (uint64_t)c->points[i].step);
		digest = fnv_add(digest, (uint64_t)c->points[i].time_ms);
	}
	return digest;
}

static int read_attempt(struct curve *c, const char *run_dir, int64_t number, struct err *err)
{
	char *path = path_join("%s/attempts/%lld/spool.jsonl", run_dir, (long long)number);
	int64_t offset = 0, got = 1;

	while (got > 0)
		got = spool_read(path, &offset, READ_BYTES, add_line, NULL, c, err);
	free(path);
	return got < 0 ? -1 : 0;
}

int curve_read(struct curve *c, const char *run_dir, struct err *err)
{
	size_t count;
	int64_t *numbers = attempt_folders(run_dir, &count);
	int rc = 0;

	*c = (struct curve){ .saved_step = -1 };
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = read_attempt(c, run_dir, numbers[i], err);
	free(numbers);
	return rc;
}

void curve_clear(struct curve *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->points[i].values);
	free(c->points);
	*c = (struct curve){ .saved_step = -1 };
}
