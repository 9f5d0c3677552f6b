/* SPDX-License-Identifier: MIT */
/* usage.c - reads the files of the meters, and counts how long a GPU has done nothing. */
#include "worker/lbrun/meter/usage.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

enum { FILE_MAX_BYTES = 256 * 1024 };

void usage_open(struct usage *u, const char *attempt_folder, int64_t idle_after_ms)
{
	u->folder = path_join("%s/usage", attempt_folder);
	u->idle_after_ms = idle_after_ms;
}

void usage_close(struct usage *u)
{
	free(u->folder);
	free(u->ranks);
	*u = (struct usage){ 0 };
}

static struct usage_rank *find_rank(struct usage *u, int64_t rank)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->ranks[i].rank == rank)
			return &u->ranks[i];
	u->ranks = xrealloc(u->ranks, (u->count + 1) * sizeof(*u->ranks));
	u->ranks[u->count] = (struct usage_rank){ .rank = rank };
	return &u->ranks[u->count++];
}

/* --- XIDs ------------------------------------------------------------------------------------- */

static void take_xids(struct usage *u, struct usage_rank *r, const json_t *file)
{
	const json_t *list = json_object_get(file, "xids");
	int64_t count = js_int(file, "xid_count", 0), size = (int64_t)json_array_size(list);
	int64_t fresh = count - r->xid_count < size ? count - r->xid_count : size;

	for (int64_t i = size - fresh; fresh > 0 && i < size; i++) {
		const json_t *x = json_array_get(list, (size_t)i);

		u->on_xid(u->arg, js_str(file, "node", ""), js_int(x, "gpu", -1),
			  js_int(x, "xid", -1));
	}
	r->xid_count = count;
}

/* --- minutes ---------------------------------------------------------------------------------- */

static void count_idle(struct usage_rank *r, const json_t *usage)
{
	int64_t seconds = js_int(usage, "seconds", 0);
	const json_t *gpu;
	size_t i;

	r->gpus = 0;
	json_array_foreach(json_object_get(usage, "gpus"), i, gpu) {
		if (i >= USAGE_GPUS)
			break;
		r->gpus++;
		if (js_int(gpu, "use", 100) <= USAGE_IDLE_PERCENT)
			r->idle_s[i] += seconds;
		else
			r->idle_s[i] = 0;
	}
}

static void take_minute(struct usage *u, struct usage_rank *r, const json_t *file)
{
	json_t *usage = json_object_get(file, "usage"), *line;

	r->seq = js_int(file, "seq", 0);
	count_idle(r, usage);
	line = json_object();
	js_set_str(line, "type", "usage");
	json_object_set(line, "node", json_object_get(file, "node"));
	json_object_set(line, "rank", json_object_get(file, "rank"));
	json_object_update(line, usage);
	u->on_minute(u->arg, line);
	json_decref(line);
}

void usage_take(struct usage *u, json_t *file)
{
	struct usage_rank *r = find_rank(u, js_int(file, "rank", 0));

	take_xids(u, r, file);
	if (json_object_get(file, "usage") && js_int(file, "seq", 0) > r->seq)
		take_minute(u, r, file);
}

void usage_judge_idle(struct usage *u)
{
	char names[128] = "", text[256];
	int64_t idle = 0, all = 0;

	for (size_t i = 0; i < u->count && u->idle_after_ms > 0; i++) {
		const struct usage_rank *r = &u->ranks[i];

		all += r->gpus;
		for (int g = 0; g < r->gpus; g++) {
			size_t len = strlen(names);

			if (r->idle_s[g] * 1000 < u->idle_after_ms)
				continue;
			if (idle++ < USAGE_NAMED)
				snprintf(names + len, sizeof(names) - len, "%s%lld",
					 len ? ", " : "",
					 (long long)(r->gpus > 1 ? r->rank + g : r->rank));
		}
	}
	snprintf(text, sizeof(text), "%lld of %lld GPUs idle for %lld min or longer: of rank %s%s",
		 (long long)idle, (long long)all, (long long)(u->idle_after_ms / 60000), names,
		 idle > USAGE_NAMED ? ", …" : "");
	if (idle > 0 && !u->is_idle_told)
		u->on_idle(u->arg, text);
	u->is_idle_told = idle > 0;
}

void usage_look(struct usage *u)
{
	DIR *dir = u->folder ? opendir(u->folder) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path = path_join("%s/%s", u->folder, entry->d_name);
		json_t *file = text_ends_with(entry->d_name, ".json")
				       ? js_load(path, FILE_MAX_BYTES, NULL)
				       : NULL;

		if (file)
			usage_take(u, file);
		json_decref(file);
		free(path);
	}
	if (dir) {
		closedir(dir);
		usage_judge_idle(u);
	}
}
