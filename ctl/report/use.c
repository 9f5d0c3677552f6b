/* SPDX-License-Identifier: MIT */
/* use.c - adds up minutes: a row for each GPU, and one curve for all of them. */
#include "ctl/report/use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/attempt_folders.h"
#include "common/run/spool.h"

enum { ROWS_MAX = 4096, READ_BYTES = 4 * 1024 * 1024, MINUTE_MS = 60 * 1000 };

static struct use_row *row_of(struct use *u, const char *node, int64_t rank, int64_t gpu)
{
	for (size_t i = 0; i < u->count; i++) {
		struct use_row *r = &u->rows[i];

		if (r->rank == rank && r->gpu == gpu && strcmp(r->node, node) == 0)
			return r;
	}
	if (u->count == ROWS_MAX)
		return NULL;
	u->rows = xrealloc(u->rows, (u->count + 1) * sizeof(*u->rows));
	u->rows[u->count] = (struct use_row){ .node = xstrdup(node), .rank = rank, .gpu = gpu };
	u->rows[u->count].memory_mb = u->rows[u->count].memory_total_mb = -1;
	u->rows[u->count].celsius = u->rows[u->count].ecc_uncorrected = -1;
	u->rows[u->count].nvlink_errors = -1;
	return &u->rows[u->count++];
}

static void raise_to(int64_t *highest, int64_t value)
{
	if (value > *highest)
		*highest = value;
}

static unsigned throttled(const json_t *gpu)
{
	static const struct {
		const char *name;
		unsigned bit;
	} reasons[] = { { "power", USE_POWER },
			{ "thermal", USE_THERMAL },
			{ "hardware", USE_HARDWARE } };
	const json_t *list = json_object_get(gpu, "throttled"), *item;
	unsigned bits = 0;
	size_t i;

	json_array_foreach(list, i, item) {
		for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++)
			if (json_is_string(item) &&
			    strcmp(json_string_value(item), reasons[k].name) == 0)
				bits |= reasons[k].bit;
	}
	return bits;
}

static void add_gpu(struct use *u, struct use_row *r, int64_t seconds, const json_t *gpu)
{
	double use = js_real(gpu, "use", NAN);

	if (isfinite(use)) {
		r->seconds += seconds;
		r->use += use * (double)seconds;
		r->watts += js_real(gpu, "watts", 0) * (double)seconds;
		u->sum += use;
		u->sum_of++;
	}
	raise_to(&r->memory_mb, js_int(gpu, "memory_mb", -1));
	raise_to(&r->memory_total_mb, js_int(gpu, "memory_total_mb", -1));
	raise_to(&r->celsius, js_int(gpu, "celsius", -1));
	r->ecc_uncorrected = js_int(gpu, "ecc_uncorrected", r->ecc_uncorrected);
	r->nvlink_errors = js_int(gpu, "nvlink_errors", r->nvlink_errors);
	r->throttled |= throttled(gpu);
}

static void add_machine(struct use_row *r, int64_t seconds, const json_t *line)
{
	r->seconds += seconds;
	r->cpus += js_real(line, "cpu", 0) * (double)seconds;
	r->io_stall += js_real(line, "io_stall", js_real(line, "blocked", 0)) * (double)seconds;
	raise_to(&r->memory_mb, js_int(line, "job_peak_mb", -1));
	raise_to(&r->memory_mb, js_int(line, "resident_mb", -1));
}

void use_end(struct use *u)
{
	if (u->sum_of > 0)
		series_push(&u->gpus, &(struct point){ .step = u->minute * MINUTE_MS / 1000,
						       .loss = NAN,
						       .tokens_per_s = NAN,
						       .use = u->sum / (double)u->sum_of,
						       .stretch = (int)u->attempt });
	u->sum = 0;
	u->sum_of = 0;
}

void use_add(struct use *u, int64_t attempt, int64_t time_ms, const json_t *line)
{
	const char *node = js_str(line, "node", "?");
	int64_t rank = js_int(line, "rank", 0), seconds = js_int(line, "seconds", 0);
	struct use_row *r = row_of(u, node, rank, USE_MACHINE);
	const json_t *gpu;
	size_t i;

	if (attempt != u->attempt || time_ms / MINUTE_MS != u->minute)
		use_end(u);
	u->attempt = attempt;
	u->minute = time_ms / MINUTE_MS;
	if (seconds < 1)
		seconds = 1;
	if (r)
		add_machine(r, seconds, line);
	json_array_foreach(json_object_get(line, "gpus"), i, gpu) {
		r = row_of(u, node, rank, js_int(gpu, "gpu", 0));
		if (r)
			add_gpu(u, r, seconds, gpu);
	}
}

void use_clear(struct use *u)
{
	for (size_t i = 0; i < u->count; i++)
		free(u->rows[i].node);
	free(u->rows);
	series_clear(&u->gpus);
	*u = (struct use){ 0 };
}

struct reading {
	struct use *use;
	int64_t attempt;
};

static int on_line(const struct spool_line *spool, void *arg)
{
	const struct reading *r = arg;

	if (!spool->from_trainer && strcmp(js_str(spool->line, "type", ""), "usage") == 0)
		use_add(r->use, r->attempt, spool->time_ms, spool->line);
	return 0;
}

void use_read(struct use *u, const char *run_dir)
{
	size_t count;
	int64_t *numbers = attempt_folders(run_dir, &count);

	*u = (struct use){ 0 };
	for (size_t i = 0; i < count; i++) {
		char *path = path_join("%s/attempts/%lld/spool.jsonl", run_dir,
				       (long long)numbers[i]);
		struct reading reading = { u, numbers[i] };
		int64_t offset = 0;

		while (spool_read(path, &offset, READ_BYTES, on_line, NULL, &reading, NULL) > 0)
			;
		free(path);
	}
	use_end(u);
	free(numbers);
}
