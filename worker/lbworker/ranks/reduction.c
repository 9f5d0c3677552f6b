/* SPDX-License-Identifier: MIT */
/* reduction.c - a counter in binary: level k holds the sum of 2^k leaves while bit k of their
 * number is set, and a new leaf carries. */
#include "worker/lbworker/ranks/reduction.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/mem.h"

enum { LEVELS_MAX = 32 };

struct reduction {
	const struct backend *backend;
	struct device *device;
	int64_t width;
	float *level[LEVELS_MAX + 1]; /* the one of `width`: of all whole trees so far */
	int levels;
};

struct reduction *reduction_create(const struct backend *backend, struct device *device,
				   size_t count, int64_t width)
{
	struct reduction *r = xcalloc(1, sizeof(*r));

	*r = (struct reduction){ .backend = backend, .device = device, .width = width };
	for (int64_t leaves = 1; leaves < width; leaves *= 2)
		r->levels++;
	for (int i = 0; i <= r->levels; i++) {
		r->level[i] = backend->reserve(device, count * sizeof(float));
		if (r->level[i])
			continue;
		reduction_destroy(r);
		return NULL;
	}
	return r;
}

void reduction_destroy(struct reduction *r)
{
	for (int i = 0; r && i <= r->levels; i++)
		r->backend->free(r->device, r->level[i]);
	free(r);
}

static void copy(const struct reduction *r, float *to, const float *from, size_t count)
{
	r->backend->copy(r->device, to, from, count * sizeof(float));
}

void reduction_push(struct reduction *r, int64_t leaf, size_t at, float *gradient, size_t count)
{
	int64_t number = leaf % r->width;
	int level = 0;

	if (count == 0)
		return;
	for (; level < r->levels && (number >> level & 1); level++)
		r->backend->add(r->device, gradient, r->level[level] + at, count);
	if (level == r->levels && leaf >= r->width)
		r->backend->add(r->device, r->level[level] + at, gradient, count);
	else
		copy(r, r->level[level] + at, gradient, count);
}

void reduction_finish(struct reduction *r, int64_t leaves, size_t at, float *to, size_t count)
{
	int64_t rest = leaves % r->width;
	bool is_first = true;

	if (count == 0)
		return;
	for (int level = 0; level < r->levels; level++) {
		if (!(rest >> level & 1))
			continue;
		if (is_first)
			copy(r, to, r->level[level] + at, count);
		else
			r->backend->add(r->device, to, r->level[level] + at, count);
		is_first = false;
	}
	if (leaves < r->width)
		return;
	if (is_first)
		copy(r, to, r->level[r->levels] + at, count);
	else
		r->backend->add(r->device, to, r->level[r->levels] + at, count);
}
