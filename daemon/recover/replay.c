/* SPDX-License-Identifier: MIT */
/* replay.c - the world of that day, for the engine: spools are read with the clock of the line that
 * is read. */
#include "daemon/recover/replay.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/zst.h"
#include "common/run/spool.h"
#include "daemon/job/job.h"

struct reading {
	struct recovery *r;
	int (*on_line)(const struct spool_line *line, void *arg);
	void *arg;
};

static int64_t replay_wall_ms(void *self)
{
	return ((struct recovery *)self)->clock_ms;
}

static int64_t replay_mono_ms(void *self)
{
	(void)self;
	return clock_mono_ms();
}

static int replay_spec(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	struct recovery *r = self;

	return r->real.spec(r->real.self, run_dir, out, err);
}

static int replay_line(const struct spool_line *line, void *arg)
{
	struct reading *reading = arg;

	reading->r->clock_ms = line->time_ms;
	return reading->on_line(line, reading->arg);
}

static int append_piece(const char *data, size_t len, void *arg)
{
	return fwrite(data, 1, len, arg) == len ? 0 : -1;
}

/* The spool as plain text: itself, or what its compressed form holds; owned. */
static char *plain_spool(struct recovery *r, const char *folder, int64_t offset)
{
	char *path = path_join("%s/spool.jsonl", folder), *packed = path_join("%s.zst", path);
	struct err err = { 0 };
	FILE *f;

	if (!file_exists(path) && file_exists(packed)) {
		f = offset == 0 ? fopen(r->spool, "we") : NULL;
		if (f && zst_read(packed, append_piece, f, &err) < 0)
			log_warn("%s", err.text);
		if (f)
			fclose(f);
		free(path);
		path = xstrdup(r->spool);
	}
	free(packed);
	return path;
}

static int64_t replay_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			    int (*on_line)(const struct spool_line *line, void *arg),
			    void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			    struct err *err)
{
	struct reading reading = { self, on_line, arg };
	char *folder = job_folder(run), *path = plain_spool(self, folder, *offset);
	int64_t bytes = spool_read_plain(path, offset, max_bytes, replay_line, NULL, &reading, err);

	(void)on_bad;
	free(path);
	free(folder);
	return bytes;
}

void replay_world(struct recovery *r, struct world *out)
{
	*out = (struct world){
		.self = r,
		.wall_ms = replay_wall_ms,
		.mono_ms = replay_mono_ms,
		.spec = replay_spec,
		.spool = replay_spool,
	};
}
