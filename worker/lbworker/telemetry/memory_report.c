/* SPDX-License-Identifier: MIT */
/* memory_report.c - one table of rows, told twice. */
#include "worker/lbworker/telemetry/memory_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/paths.h"

enum { FOLDER_MODE = 0755, CLASSES = 4 };

struct row {
	const char *what;
	uint64_t planned, held; /* bytes */
};

struct table {
	struct row row[CLASSES + HOLDINGS_MAX];
	size_t rows;
	uint64_t others; /* held by other programs, and by the driver for us */
};

static struct row *row_of(struct table *t, const char *what)
{
	for (size_t i = 0; i < t->rows; i++)
		if (strcmp(t->row[i].what, what) == 0)
			return &t->row[i];
	t->row[t->rows] = (struct row){ .what = what };
	return &t->row[t->rows++];
}

static struct table table_of(const struct memory_use *use, const struct plan *plan)
{
	const struct row planned[CLASSES] = {
		{ "weights", plan->weights, 0 },
		{ "gradients", plan->gradients, 0 },
		{ "moments", plan->moments, 0 },
		{ "activations", plan->activations, 0 },
	};
	struct table t = { .rows = CLASSES };
	uint64_t ours = 0;

	memcpy(t.row, planned, sizeof(planned));
	for (size_t i = 0; i < use->count; i++) {
		row_of(&t, use->held[i].what)->held += use->held[i].bytes;
		ours += use->held[i].bytes;
	}
	uint64_t taken = use->total - use->available;
	t.others = taken > ours ? taken - ours : 0;
	return t;
}

static json_t *json_of(const struct table *t, const struct memory_use *use, const char *why,
		       int64_t step)
{
	json_t *o = json_object(), *rows = json_array();

	for (size_t i = 0; i < t->rows; i++) {
		json_t *row = json_object();
		js_set_str(row, "what", t->row[i].what);
		js_set_int(row, "planned_bytes", (int64_t)t->row[i].planned);
		js_set_int(row, "held_bytes", (int64_t)t->row[i].held);
		json_array_append_new(rows, row);
	}
	js_set_int(o, "format", 1);
	js_set_int(o, "step", step);
	js_set_str(o, "why", why);
	if (use->refused) {
		js_set_str(o, "refused", use->refused);
		js_set_int(o, "refused_bytes", (int64_t)use->refused_bytes);
	}
	json_object_set_new(o, "memory", rows);
	js_set_int(o, "others_bytes", (int64_t)t->others);
	js_set_int(o, "available_bytes", (int64_t)use->available);
	js_set_int(o, "total_bytes", (int64_t)use->total);
	return o;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print(const struct table *t, const struct memory_use *use, FILE *to)
{
	if (use->refused)
		fprintf(to, "no room for %.1f MiB of %s\n", mib(use->refused_bytes), use->refused);
	fprintf(to, "%-18s %14s %14s\n", "memory of the GPU", "planned MiB", "held MiB");
	for (size_t i = 0; i < t->rows; i++)
		fprintf(to, "%-18s %14.1f %14.1f\n", t->row[i].what, mib(t->row[i].planned),
			mib(t->row[i].held));
	fprintf(to, "%-18s %14s %14.1f\n", "others, driver", "", mib(t->others));
	fprintf(to, "%-18s %14s %14.1f of %.1f\n", "free", "", mib(use->available),
		mib(use->total));
}

/* Takes the object. */
static int write_json(const struct trace_place *place, json_t *object, struct err *err)
{
	char *parent = path_join("%s/iteration_%" PRId64, place->folder, place->step);
	char *path = path_join("%s/rank%d_out_of_memory.json", parent, place->rank);
	int rc = folder_make(parent, FOLDER_MODE, err);

	if (rc == 0 && json_dump_file(object, path, JSON_INDENT(2)) != 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0)
		log_info("memory snapshot: %s", path);
	json_decref(object);
	free(path);
	free(parent);
	return rc;
}

void memory_report(const struct trace_place *place, const struct memory_use *use,
		   const struct plan *plan, const char *why, FILE *to)
{
	const struct table t = table_of(use, plan);
	struct err err = { 0 };

	print(&t, use, to);
	if (write_json(place, json_of(&t, use, why, place->step), &err))
		log_warn("memory snapshot: %s", err.text);
}
