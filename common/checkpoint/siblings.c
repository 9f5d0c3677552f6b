/* SPDX-License-Identifier: MIT */
/* siblings.c - the step of a checkpoint, by its name and by what lies beside it. */
#include "common/checkpoint/siblings.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/checkpoint/steps.h"

enum { SIBLINGS_MAX = 64 }; /* looked at */

struct candidates {
	const char *name;
	size_t places[STEP_CANDIDATES_MAX], count;
	bool differs[STEP_CANDIDATES_MAX], is_zero[STEP_CANDIDATES_MAX];
};

static int64_t value(const struct candidates *c, size_t i)
{
	return strtoll(c->name + c->places[i], NULL, 10);
}

/* Alike but for its numbers? at: where the numbers that count stand in it. */
static bool is_sibling(const struct candidates *c, const char *other,
		       size_t at[STEP_CANDIDATES_MAX])
{
	const char *name = c->name, *begin = other;

	while (*name) {
		for (size_t i = 0; i < c->count; i++) {
			if (name == c->name + c->places[i])
				at[i] = (size_t)(other - begin);
		}
		if ((text_digits(name) > 0) != (text_digits(other) > 0) ||
		    (text_digits(name) == 0 && *name != *other))
			return false;
		name += text_digits(name) > 0 ? text_digits(name) : 1;
		other += text_digits(other) > 0 ? text_digits(other) : 1;
	}
	return *other == '\0';
}

static void compare(struct candidates *c, const char *other, const size_t at[STEP_CANDIDATES_MAX])
{
	for (size_t i = 0; i < c->count; i++) {
		int64_t there = strtoll(other + at[i], NULL, 10);

		c->differs[i] |= there != value(c, i);
		c->is_zero[i] |= there == 0;
	}
}

/* What all have in common is a size, a seed, a fold. Behind the step there may be ranks, that are
 * counted from 0. */
static size_t choose(const struct candidates *c)
{
	size_t best = 0;

	for (size_t i = 1; i < c->count && !c->differs[0]; i++) {
		if (c->differs[i] && (c->places[i] < c->places[0] || !c->is_zero[i]) &&
		    (best == 0 || value(c, i) > value(c, best)))
			best = i;
	}
	return best;
}

int64_t step_beside_siblings(const char *folder, const char *name)
{
	struct candidates c = { .name = name };
	const struct dirent *entry;
	DIR *dir;

	c.count = step_candidates(name, c.places);
	dir = c.count > 0 ? opendir(folder) : NULL;
	for (int n = 0; dir && n < SIBLINGS_MAX && !c.differs[0] && (entry = readdir(dir));) {
		size_t at[STEP_CANDIDATES_MAX] = { 0 };

		if (is_sibling(&c, entry->d_name, at)) {
			compare(&c, entry->d_name, at);
			n++;
		}
	}
	if (dir)
		closedir(dir);
	return choose(&c) > 0 ? value(&c, choose(&c)) : step_in_name(name);
}
