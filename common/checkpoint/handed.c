/* SPDX-License-Identifier: MIT */
/* handed.c - the memory of a run's launches: a small JSON file, replaced as a whole. */
#include "common/checkpoint/handed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FILE_MAX_BYTES = 1024 * 1024 };

static void drop(struct handed *h, int i)
{
	free(h->items[i].path);
	h->count--;
	memmove(&h->items[i], &h->items[i + 1], (size_t)(h->count - i) * sizeof(h->items[0]));
}

static void take_item(struct handed *h, const json_t *o)
{
	struct handed_item *item = &h->items[h->count];

	*item = (struct handed_item){
		.path = js_bytes_take(json_object_get(o, "path")),
		.stamp = strtoull(js_str(o, "stamp", ""), NULL, 16),
		.step = js_int(o, "step", -1),
		.failures = js_int(o, "failures", 0),
	};
	snprintf(item->text, sizeof(item->text), "%s", js_str(o, "text", ""));
	h->count += item->path != NULL;
}

void handed_load(struct handed *h, const char *run_dir, const char *name)
{
	json_t *o, *item;
	size_t i;

	*h = (struct handed){ .file = path_join("%s/%s", run_dir, name),
			      .first_told = -1,
			      .best_told = -1 };
	o = js_load(h->file, FILE_MAX_BYTES, NULL);
	h->is_first = o == NULL;
	h->launches = js_int(o, "launches", 0);
	h->has_had = js_bool(o, "has_had", false);
	h->has_steps = js_bool(o, "has_steps", false);
	h->has_rolled_back = js_bool(o, "has_rolled_back", false);
	h->is_own_reported = js_bool(o, "is_own_told", false);
	h->generation = js_int(o, "generation", 0);
	h->first_told = js_int(o, "first_told", -1);
	h->best_told = js_int(o, "best_told", -1);
	json_array_foreach(json_object_get(o, "handed"), i, item) {
		if (h->count < HANDED_MAX)
			take_item(h, item);
	}
	json_decref(o);
}

int handed_save(struct handed *h, struct err *err)
{
	json_t *o = json_object(), *list = json_array();

	for (int i = 0; i < h->count; i++) {
		const struct handed_item *item = &h->items[i];
		json_t *line = json_object();
		char stamp[20];

		snprintf(stamp, sizeof(stamp), "%016" PRIx64, item->stamp);
		json_object_set_new(line, "path", js_bytes(item->path));
		js_set_str(line, "stamp", stamp);
		js_set_int(line, "step", item->step < 0 ? JS_NONE : item->step);
		js_set_int(line, "failures", item->failures);
		js_set_str(line, "text", item->text);
		json_array_append_new(list, line);
	}
	js_set_int(o, "version", 1);
	js_set_int(o, "launches", h->launches);
	js_set_bool(o, "has_had", h->has_had);
	js_set_bool(o, "has_steps", h->has_steps);
	js_set_bool(o, "has_rolled_back", h->has_rolled_back);
	js_set_bool(o, "is_own_told", h->is_own_reported);
	js_set_int(o, "generation", h->generation);
	js_set_int(o, "first_told", h->first_told < 0 ? JS_NONE : h->first_told);
	js_set_int(o, "best_told", h->best_told < 0 ? JS_NONE : h->best_told);
	json_object_set_new(o, "handed", list);
	return js_save(h->file, o, err);
}

void handed_forget(struct handed *h)
{
	while (h->count > 0)
		drop(h, h->count - 1);
	h->has_rolled_back = false;
	h->generation++;
}

void handed_clear(struct handed *h)
{
	handed_forget(h);
	free(h->file);
	*h = (struct handed){ 0 };
}

static struct handed_item *find(struct handed *h, const char *path, uint64_t stamp)
{
	for (int i = 0; i < h->count; i++) {
		if (h->items[i].stamp == stamp && strcmp(h->items[i].path, path) == 0)
			return &h->items[i];
	}
	return NULL;
}

void handed_begin(struct handed *h, const char *path, uint64_t stamp, int64_t step)
{
	struct handed_item *item = find(h, path, stamp);

	if (!item) {
		if (h->count == HANDED_MAX)
			drop(h, 0);
		item = &h->items[h->count++];
		*item = (struct handed_item){ .path = xstrdup(path), .stamp = stamp, .step = step };
	}
}

/* A suspect of a later step stays one: it is newer than what the next search would find. */
void handed_good(struct handed *h, const char *path, uint64_t stamp)
{
	struct handed_item *item = find(h, path, stamp);
	int64_t step = item ? item->step : -1;

	for (int i = h->count - 1; item && i >= 0; i--) {
		if (h->items[i].step <= step)
			drop(h, i);
	}
}

void handed_failed(struct handed *h, const char *path, uint64_t stamp, const char *text)
{
	struct handed_item *item = find(h, path, stamp);

	if (!item)
		return;
	item->failures++;
	snprintf(item->text, sizeof(item->text), "%s", text);
}

const struct handed_item *handed_suspect(const struct handed *h, const char *path, uint64_t stamp)
{
	for (int i = 0; i < h->count; i++) {
		const struct handed_item *item = &h->items[i];

		if (item->stamp == stamp && strcmp(item->path, path) == 0 && item->failures > 0)
			return item;
	}
	return NULL;
}

void handed_mark(const struct handed *h, struct checkpoint_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct checkpoint *c = &list->items[i];

		c->is_suspect = handed_suspect(h, c->path, c->stamp) != NULL;
	}
}

char *handed_why(const struct handed *h, const struct checkpoint *c)
{
	const struct handed_item *item = handed_suspect(h, c->path, c->stamp);

	if (!item)
		return NULL;
	return xasprintf("%s: is suspect: the launch from it failed before any new step (%s)",
			 c->path, item->text);
}
