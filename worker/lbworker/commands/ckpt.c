/* SPDX-License-Identifier: MIT */
/* ckpt.c - lbworker ckpt ls|verify|diff: what checkpoints hold, whether they hold it, and where two
 * of them differ. */
#include "worker/lbworker/commands/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/checkpoint/retention.h"

/* --- ls, verify ----------------------------------------------------------------------------- */

static bool is_checkpoint(const char *path)
{
	return folder_holds(path, "manifest.json");
}

static void list_one(const char *path)
{
	char when[CLOCK_TEXT_MAX];
	struct manifest m;
	struct err err = { 0 };
	struct stat st;
	int64_t bytes = 0;

	if (manifest_verify(path, MANIFEST_SIZES, &m, &err)) {
		printf("%-16s broken: %s\n", path_base(path), err.text);
		return;
	}
	for (int i = 0; i < m.file_count; i++)
		bytes += m.files[i].bytes;
	int64_t wall_ms = stat(path, &st) == 0 ? (int64_t)st.st_mtime * 1000 : 0;
	printf("%-16s %14" PRId64 " tokens %10.1f MiB  attempt %-4" PRId64 " %s\n", path_base(path),
	       m.tokens, (double)bytes / (1 << 20), m.attempt, clock_text(wall_ms, when));
	manifest_clear(&m);
}

/* 1 when it does not hold. */
static int verify_one(const char *path)
{
	struct err err = { 0 };
	struct manifest m;

	if (manifest_verify(path, MANIFEST_DIGESTS, &m, &err)) {
		printf("bad  %s\n", err.text);
		return 1;
	}
	printf("good %s: step %" PRId64 ", %d files\n", path, m.step, m.file_count);
	manifest_clear(&m);
	return 0;
}

/* A checkpoint itself, or a folder of them, newest first. */
static int command_each(const char *path, bool verify)
{
	size_t count, bad = 0;
	int64_t *steps;

	if (is_checkpoint(path)) {
		if (verify)
			return verify_one(path) ? EXIT_FAILED : EXIT_DONE;
		list_one(path);
		return EXIT_DONE;
	}
	steps = retention_steps(path, &count);
	for (size_t i = 0; i < count; i++) {
		char *one = path_join("%s/step-%08" PRId64, path, steps[i]);
		if (verify)
			bad += (size_t)verify_one(one);
		else
			list_one(one);
		free(one);
	}
	free(steps);
	if (count == 0) {
		fprintf(stderr, "lbworker: %s: holds no checkpoint\n", path);
		return EXIT_USAGE;
	}
	return bad ? EXIT_FAILED : EXIT_DONE;
}

/* --- diff ----------------------------------------------------------------------------------- */

struct difference {
	size_t elements, different;
	double largest, at_value; /* |a - b|, and |a| there */
};

static struct difference compare(const struct st_tensor *a, const struct st_tensor *b)
{
	const float *x = a->data, *y = b->data;
	const uint32_t *x_bits = a->data, *y_bits = b->data;
	struct difference d = { .elements = a->bytes / sizeof(float) };

	for (size_t i = 0; i < d.elements; i++) {
		if (x_bits[i] == y_bits[i])
			continue;
		double gap = fabs((double)x[i] - (double)y[i]);
		d.different++;
		if (gap > d.largest || isnan(gap)) {
			d.largest = gap;
			d.at_value = fabs((double)x[i]);
		}
	}
	return d;
}

/* 1 when they differ. */
static int diff_tensor(const struct st_tensor *a, const struct st_file *b)
{
	struct err err = { 0 };
	const struct st_tensor *other = st_find(b, a->name, a->type, a->shape, &err);

	if (!other) {
		printf("%s: %s\n", a->name, err.text);
		return 1;
	}
	if (a->bytes == 0 || memcmp(a->data, other->data, a->bytes) == 0)
		return 0;
	if (a->type != ST_F32) {
		printf("%s: differs\n", a->name);
		return 1;
	}
	struct difference d = compare(a, other);
	printf("%s: %zu of %zu differ, at most by %g (where it is %g)\n", a->name, d.different,
	       d.elements, d.largest, d.at_value);
	return 1;
}

static int diff_tensors(const struct st_file *a, const struct st_file *b)
{
	size_t different = 0;

	for (size_t i = 0; i < st_count(a); i++)
		different += (size_t)diff_tensor(st_at(a, i), b);
	if (st_count(a) != st_count(b)) {
		printf("%zu tensors and %zu\n", st_count(a), st_count(b));
		different++;
	}
	return different ? 1 : 0;
}

static int diff_safetensors(const char *a, const char *b, struct err *err)
{
	struct st_file *x = st_open(a, err), *y = x ? st_open(b, err) : NULL;
	int rc = y ? diff_tensors(x, y) : -1;

	st_close(x);
	st_close(y);
	return rc;
}

static int diff_text(const char *a, const char *b, const char *name, struct err *err)
{
	char *x = file_read(a, 1 << 20, NULL, err),
	     *y = x ? file_read(b, 1 << 20, NULL, err) : NULL;
	int rc = -1;

	if (y) {
		rc = strcmp(x, y) != 0;
		if (rc)
			printf("%s: differs\n%s%s", name, x, y);
	}
	free(x);
	free(y);
	return rc;
}

/* Of some trainings only. */
static bool is_optional(const char *name)
{
	return strcmp(name, CHECKPOINT_MEAN) == 0 || strcmp(name, CHECKPOINT_ADAPTER) == 0 ||
	       strcmp(name, CHECKPOINT_ADAPTER_CONFIG) == 0;
}

/* 1 when they differ; -1 with err. */
static int diff_file(const char *a, const char *b, const char *name, struct err *err)
{
	if (is_optional(name) && (!file_exists(a) || !file_exists(b))) {
		bool in_one = file_exists(a) || file_exists(b);
		if (in_one)
			printf("%s: one of them has none\n", name);
		return in_one;
	}
	return strstr(name, ".safetensors") ? diff_safetensors(a, b, err)
					    : diff_text(a, b, name, err);
}

static int command_diff(const char *a, const char *b)
{
	static const char *const names[] = {
		CHECKPOINT_WEIGHTS,       CHECKPOINT_OPTIMIZER, CHECKPOINT_MEAN,
		CHECKPOINT_ADAPTER,       "config.json",        CHECKPOINT_STATE,
		CHECKPOINT_ADAPTER_CONFIG
	};
	int different = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *x = path_join("%s/%s", a, names[i]), *y = path_join("%s/%s", b, names[i]);
		struct err err = { 0 };
		int rc = diff_file(x, y, names[i], &err);
		free(x);
		free(y);
		if (rc < 0)
			return command_failed(&err);
		different |= rc;
	}
	if (!different)
		printf("equal to the bit\n");
	return different ? EXIT_FAILED : EXIT_DONE;
}

int command_ckpt(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (argc == 3 && (strcmp(verb, "ls") == 0 || strcmp(verb, "verify") == 0)) {
		char *folder = model_path_checkpoints(argv[2]);
		int status = command_each(folder, verb[0] == 'v');
		free(folder);
		return status;
	}
	if (argc == 4 && strcmp(verb, "diff") == 0)
		return command_diff(argv[2], argv[3]);
	return command_usage("ckpt wants ls FOLDER, verify FOLDER, or diff CHECKPOINT CHECKPOINT");
}
