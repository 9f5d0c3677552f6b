/* SPDX-License-Identifier: MIT */
/* timeline.c - counter events of the Trace Event Format; /proc/self/status says what is
 * resident. */
#include "worker/lbworker/telemetry/timeline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FOLDER_MODE = 0755, LINE_BYTES = 256 };

struct timeline {
	struct timeline_classes classes;
	bool is_copied;
	const struct backend *gpu; /* NULL: none */
	struct device *device;
	char *path;
	FILE *out; /* NULL once a write has failed, which is said once */
};

struct resident {
	uint64_t anonymous, files; /* bytes */
};

static struct resident resident_now(void)
{
	struct resident r = { 0 };
	FILE *status = fopen("/proc/self/status", "re");
	char line[LINE_BYTES];

	while (status && fgets(line, sizeof(line), status)) {
		const char *at = strchr(line, ':');
		uint64_t bytes = at ? strtoull(at + 1, NULL, 10) * 1024 : 0;
		if (strncmp(line, "RssAnon:", 8) == 0)
			r.anonymous = bytes;
		else if (strncmp(line, "RssFile:", 8) == 0 || strncmp(line, "RssShmem:", 9) == 0)
			r.files += bytes;
	}
	if (status)
		fclose(status);
	return r;
}

struct timeline *timeline_open(const struct trace_place *place,
			       const struct timeline_classes *classes, const struct backend *gpu,
			       struct device *device, struct err *err)
{
	char *parent = path_join("%s/iteration_%" PRId64, place->folder, place->step);
	struct timeline *t = xcalloc(1, sizeof(*t));

	t->classes = *classes;
	t->gpu = gpu;
	t->device = device;
	t->path = path_join("%s/rank%d_memory.json", parent, place->rank);
	if (folder_make(parent, FOLDER_MODE, err) == 0) {
		t->out = fopen(t->path, "we");
		if (!t->out)
			err_errno(err, "%s", t->path);
	}
	free(parent);
	if (!t->out) {
		timeline_close(t);
		return NULL;
	}
	fprintf(t->out,
		"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"rank %d\"}}",
		place->rank);
	return t;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

/* By who holds it; what is neither ours nor free belongs to others on that GPU. */
static void add_gpu(const struct timeline *t, double now)
{
	struct memory_use use;
	uint64_t ours = 0;

	t->gpu->memory(t->device, &use);
	fprintf(t->out,
		",\n{\"ph\":\"C\",\"name\":\"GPU memory (MiB)\",\"pid\":0,\"ts\":%.3f,"
		"\"args\":{",
		now);
	for (size_t i = 0; i < use.count; i++) {
		fprintf(t->out, "\"%s\":%.3f,", use.held[i].what, mib(use.held[i].bytes));
		ours += use.held[i].bytes;
	}
	uint64_t taken = use.total - use.available;
	fprintf(t->out, "\"others\":%.3f}}", mib(taken > ours ? taken - ours : 0));
}

void timeline_add(struct timeline *t, const char *event, int64_t step)
{
	if (!t || !t->out)
		return;
	const struct timeline_classes *c = &t->classes;
	const struct resident r = resident_now();
	uint64_t fixed = c->weights + c->gradients + c->moments + c->activations;
	uint64_t rest = r.anonymous > fixed ? r.anonymous - fixed : 0;
	uint64_t copy = !t->is_copied ? 0 : rest < c->checkpoint_copy ? rest : c->checkpoint_copy;
	double now = clock_mono_us();

	fprintf(t->out,
		",\n{\"ph\":\"C\",\"name\":\"memory (MiB)\",\"pid\":0,\"ts\":%.3f,\"args\":{"
		"\"weights\":%.3f,\"gradients\":%.3f,\"moments\":%.3f,\"activations\":%.3f,"
		"\"checkpoint copy\":%.3f,\"other\":%.3f,\"files\":%.3f}}",
		now, mib(c->weights), mib(c->gradients), mib(c->moments), mib(c->activations),
		mib(copy), mib(rest - copy), mib(r.files));
	if (t->gpu)
		add_gpu(t, now);
	fprintf(t->out,
		",\n{\"ph\":\"i\",\"s\":\"p\",\"name\":\"%s %" PRId64 "\",\"pid\":0,\"tid\":0,"
		"\"ts\":%.3f}",
		event, step, now);
	if (fflush(t->out) == 0)
		return;
	log_warn("memory timeline: %s cannot be written, it ends here", t->path);
	fclose(t->out);
	t->out = NULL;
}

void timeline_copied(struct timeline *t)
{
	if (t)
		t->is_copied = true;
}

void timeline_close(struct timeline *t)
{
	if (!t)
		return;
	if (t->out) {
		fputs("\n]\n", t->out);
		if (fclose(t->out) != 0)
			log_warn("memory timeline: %s is cut short", t->path);
	}
	free(t->path);
	free(t);
}
