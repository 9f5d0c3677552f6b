/* SPDX-License-Identifier: MIT */
/* node.c - numbers small enough that every product and sum of them is exact, so that one wrong bit
 * shows. */
#include "worker/lbworker/check/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"

enum { SIDE = 384, ROUNDS = 4, MIB = 1 << 20, MEASURE_US = 200 * 1000 };

struct work {
	const struct backend *be;
	struct device *dev;
	const struct check_options *options;
	struct check_result *out;
	const char *which; /* of several devices; "" */
};

static void fail(struct work *w, const char *what, const char *why)
{
	if (w->out->fault[0] == '\0')
		snprintf(w->out->fault, sizeof(w->out->fault), "%s%s: %.150s", w->which, what, why);
}

/* The slowest of several devices counts. */
static void took(struct work *w, enum check_speed which, double speed)
{
	double *known = &w->out->speed[which];

	if (*known <= 0 || speed < *known)
		*known = speed;
}

static bool is_well(const struct work *w)
{
	return w->out->fault[0] == '\0';
}

static void finish(struct work *w, const char *what)
{
	char why[BACKEND_TEXT_BYTES];

	if (w->be->finish(w->dev, why))
		fail(w, what, why);
}

/* A device that has failed gives none either, and says why. */
static void fail_alloc(struct work *w, const char *what, const char *why)
{
	finish(w, what);
	fail(w, what, why);
}

/* --- memory ----------------------------------------------------------------------------------- */

static uint32_t pattern(size_t i)
{
	return (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 7);
}

/* All of it is written, copied within the device, and read. */
static void check_memory(struct work *w)
{
	size_t bytes = w->options->memory_mib * MIB, count = bytes / sizeof(uint32_t), wrong = 0;
	uint32_t *host = xmalloc(bytes);
	void *from = w->be->alloc(w->dev, bytes, "check"),
	     *to = w->be->alloc(w->dev, bytes, "check");

	for (size_t i = 0; i < count; i++)
		host[i] = pattern(i);
	if (!from || !to)
		fail_alloc(w, "memory", "what a small model takes could not be allocated");
	else {
		w->be->upload(w->dev, from, host, bytes);
		finish(w, "memory");
		double best_s = 1e9, until_us = clock_mono_us() + MEASURE_US;
		for (int i = 0; i < ROUNDS || clock_mono_us() < until_us; i++) {
			double start_us = clock_mono_us();
			w->be->copy(w->dev, to, from, bytes);
			finish(w, "memory");
			double seconds = (clock_mono_us() - start_us) * 1e-6;
			best_s = seconds < best_s ? seconds : best_s;
		}
		memset(host, 0, bytes);
		w->be->download(w->dev, host, to, bytes);
		finish(w, "memory");
		took(w, CHECK_MEMORY, 2 * (double)bytes / best_s * 1e-9);
	}
	for (size_t i = 0; is_well(w) && i < count; i++)
		wrong += host[i] != pattern(i);
	if (wrong > 0) {
		char text[96];
		snprintf(text, sizeof(text), "%zu of %zu words came back changed", wrong, count);
		fail(w, "memory", text);
	}
	w->be->free(w->dev, from);
	w->be->free(w->dev, to);
	free(host);
}

/* --- a product -------------------------------------------------------------------------------- */

/* Rows of the left one repeat after so many, and columns of the right one: so do those of the
 * product. */
enum { LEFT_PERIOD = 9, RIGHT_PERIOD = 7 };

static int left_of(size_t i, size_t k)
{
	return (int)((i * 7 + k * 3) % LEFT_PERIOD) - 4;
}

static int right_of(size_t k, size_t j)
{
	return (int)((k * 5 + j * 11) % RIGHT_PERIOD) - 3;
}

static void fill(float *a, float *b)
{
	for (size_t i = 0; i < SIDE; i++)
		for (size_t k = 0; k < SIDE; k++) {
			a[i * SIDE + k] = (float)left_of(i, k);
			b[i * SIDE + k] = (float)right_of(i, k);
		}
}

static int sum_of(size_t i, size_t j)
{
	int sum = 0;

	for (size_t k = 0; k < SIDE; k++)
		sum += left_of(i, k) * right_of(k, j);
	return sum;
}

/* Sums of integers beside what the device made. */
static void compare(struct work *w, const float *c)
{
	int sums[LEFT_PERIOD][RIGHT_PERIOD];

	for (size_t i = 0; i < LEFT_PERIOD; i++)
		for (size_t j = 0; j < RIGHT_PERIOD; j++)
			sums[i][j] = sum_of(i, j);
	for (size_t i = 0; i < SIDE; i++)
		for (size_t j = 0; j < SIDE; j++) {
			int sum = sums[i % LEFT_PERIOD][j % RIGHT_PERIOD];
			if (c[i * SIDE + j] == (float)sum)
				continue;
			char text[96];
			snprintf(text, sizeof(text), "element %zu, %zu is %g, not %d", i, j,
				 (double)c[i * SIDE + j], sum);
			fail(w, "product", text);
			return;
		}
}

/* For long enough that something else which runs there is no slow device: the best counts. */
static double time_product(struct work *w, const struct gemm *g)
{
	double best_s = 1e9, until_us = clock_mono_us() + MEASURE_US;

	for (int i = 0; i < ROUNDS || clock_mono_us() < until_us; i++) {
		double start_us = clock_mono_us();
		w->be->gemm(w->dev, g);
		finish(w, "product");
		double seconds = (clock_mono_us() - start_us) * 1e-6;
		best_s = seconds < best_s ? seconds : best_s;
	}
	return best_s;
}

static void check_product(struct work *w)
{
	const size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
	float *host = xmalloc(2 * bytes), *a = host, *b = host + SIDE * SIDE;
	float *at[3];

	fill(a, b);
	for (int i = 0; i < 3; i++)
		at[i] = w->be->alloc(w->dev, bytes, "check");
	if (!at[0] || !at[1] || !at[2])
		fail_alloc(w, "product", "no memory for it");
	else {
		const struct gemm g = { .m = SIDE,
					.n = SIDE,
					.k = SIDE,
					.a = at[0],
					.b = at[1],
					.c = at[2],
					.lda = SIDE,
					.ldb = SIDE,
					.ldc = SIDE,
					.alpha = 1 };
		w->be->upload(w->dev, at[0], a, bytes);
		w->be->upload(w->dev, at[1], b, bytes);
		took(w, CHECK_PRODUCT, 2.0 * SIDE * SIDE * SIDE / time_product(w, &g) * 1e-9);
		w->be->download(w->dev, host, at[2], bytes);
		finish(w, "product");
		if (is_well(w))
			compare(w, host);
	}
	for (int i = 0; i < 3; i++)
		w->be->free(w->dev, at[i]);
	free(host);
}

/* --- the disk --------------------------------------------------------------------------------- */

static void fail_errno(struct work *w, const char *path)
{
	char text[160];

	snprintf(text, sizeof(text), "%.110s: %s", path, strerror(errno));
	fail(w, "disk", text);
}

/* A call that took less than it was given leaves errno as it was. */
static bool is_whole(ssize_t bytes, int why)
{
	if (bytes >= 0)
		errno = why;
	return bytes == MIB;
}

static void write_all(struct work *w, int fd, const char *path, const char *block)
{
	double start_us = clock_mono_us();

	for (size_t i = 0; i < w->options->disk_mib && is_well(w); i++)
		if (!is_whole(write(fd, block, MIB), ENOSPC))
			fail_errno(w, path);
	if (is_well(w) && fsync(fd))
		fail_errno(w, path);
	w->out->speed[CHECK_DISK] = (double)w->options->disk_mib * MIB /
				    (clock_mono_us() - start_us) * 1e-3;
}

static void read_all(struct work *w, int fd, const char *path, const char *block)
{
	char *back = xmalloc(MIB);

	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* from the disk, where that can be */
	for (size_t i = 0; i < w->options->disk_mib && is_well(w); i++) {
		if (!is_whole(pread(fd, back, MIB, (off_t)(i * MIB)), EIO))
			fail_errno(w, path);
		else if (memcmp(back, block, MIB) != 0)
			fail(w, "disk", "what was read is not what was written");
	}
	free(back);
}

void check_disk(const struct check_options *options, struct check_result *out)
{
	struct work all = { .options = options, .out = out, .which = "" }, *w = &all;
	char path[4096];
	char *block = xmalloc(MIB);

	for (size_t i = 0; i < MIB / sizeof(uint32_t); i++)
		((uint32_t *)(void *)block)[i] = pattern(i);
	snprintf(path, sizeof(path), "%s/.check.XXXXXX", w->options->folder);
	int fd = mkstemp(path);
	if (fd < 0)
		fail_errno(w, w->options->folder);
	else {
		unlink(path);
		write_all(w, fd, path, block);
		if (is_well(w))
			read_all(w, fd, path, block);
		close(fd);
	}
	free(block);
}

/* ---------------------------------------------------------------------------------------------- */

void check_device(const struct opened *opened, const char *which,
		  const struct check_options *options, struct check_result *out)
{
	struct work w = { opened->backend, opened->device, options, out, which };

	snprintf(out->device, sizeof(out->device), "%.63s", opened->backend->name);
	check_memory(&w);
	if (is_well(&w))
		check_product(&w);
}
