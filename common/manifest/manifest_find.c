/* SPDX-License-Identifier: MIT */
/* manifest_find.c - the newest checkpoint of ours that holds. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/manifest/manifest.h"

struct steps {
	int64_t *items;
	size_t count, cap;
};

/* Only the one spelling that writers use: what else lies there (.tmp-, .bad-, notes of people) is
 * no candidate. */
static int64_t step_of(const char *name)
{
	char canonical[40];
	int64_t step = 0;
	size_t len = strlen(name);

	if (strncmp(name, "step-", 5) != 0 || len < 13 || len > 23)
		return -1;
	for (const char *c = name + 5; *c; c++) {
		if (*c < '0' || *c > '9')
			return -1;
		step = step * 10 + (*c - '0');
	}
	snprintf(canonical, sizeof(canonical), "step-%08lld", (long long)step);
	return strcmp(canonical, name) == 0 ? step : -1;
}

static void add_step(struct steps *steps, int64_t step)
{
	if (steps->count == steps->cap) {
		steps->cap = steps->cap ? 2 * steps->cap : 16;
		steps->items = xrealloc(steps->items, steps->cap * sizeof(steps->items[0]));
	}
	steps->items[steps->count++] = step;
}

static int list_steps(const char *parent, struct steps *steps, struct err *err)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "%s", parent);
	errno = 0;
	while ((entry = readdir(dir)) != NULL) {
		int64_t step = step_of(entry->d_name);

		if (step >= 0)
			add_step(steps, step);
		errno = 0;
	}
	/* A listing that broke off could hide the newest checkpoint. */
	if (errno != 0)
		rc = err_errno(err, "%s", parent);
	closedir(dir);
	if (steps->count > 0)
		qsort(steps->items, steps->count, sizeof(steps->items[0]), compare_int64_down);
	return rc;
}

static int check_candidate(const struct checkpoint_found *found, struct err *err)
{
	struct manifest m;
	int64_t step;

	if (manifest_verify(found->path, MANIFEST_DIGESTS, &m, err) < 0)
		return -1;
	step = m.step;
	manifest_clear(&m);
	if (step != found->step)
		return err_set(err, ERR_USAGE, "%s: its manifest is of step %lld", found->path,
			       (long long)step);
	return 0;
}

int checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
			    void (*on_bad)(const char *path, const struct err *why, void *arg),
			    void *arg, struct err *err)
{
	struct steps steps = { 0 };
	int rc = list_steps(parent, &steps, err);

	*out = (struct checkpoint_found){ .step = -1 };
	for (size_t i = 0; i < steps.count && rc == 0; i++) {
		struct err why = { 0 };
		int n;

		out->step = steps.items[i];
		n = snprintf(out->path, sizeof(out->path), "%s/step-%08lld", parent,
			     (long long)out->step);
		if (n < 0 || (size_t)n >= sizeof(out->path))
			rc = err_set(err, ERR_IO, "%.200s...: path too long", parent);
		else if (check_candidate(out, &why) == 0)
			rc = 1;
		else if (on_bad)
			on_bad(out->path, &why, arg);
	}
	if (rc == 0 && steps.count > 0)
		rc = err_set(err, ERR_IO, "%s: none of the %zu checkpoints is valid", parent,
			     steps.count);
	if (rc <= 0)
		*out = (struct checkpoint_found){ .step = -1 };
	free(steps.items);
	return rc;
}
