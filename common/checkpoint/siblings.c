/* SPDX-License-Identifier: MIT */
/* siblings.c - the step of a checkpoint, by its name and by what lies beside it. */
#include "common/checkpoint/siblings.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/checkpoint/steps.h"

enum { SIBLINGS_MAX = 64, ENTRIES_MAX = 256 }; /* looked at */

struct candidates {
	const char *name;
	size_t places[STEP_CANDIDATES_MAX], count;
	bool differs[STEP_CANDIDATES_MAX], is_zero[STEP_CANDIDATES_MAX];
	/* of two numbers the one in front and the other, in each of them */
	struct pair {
		int64_t major, minor;
	} pairs[SIBLINGS_MAX];
	size_t pair_count;
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
	if (c->count == 2 && c->pair_count < SIBLINGS_MAX)
		c->pairs[c->pair_count++] =
			(struct pair){ strtoll(other + (at[0] < at[1] ? at[0] : at[1]), NULL, 10),
				       strtoll(other + (at[0] < at[1] ? at[1] : at[0]), NULL, 10) };
}

/* "net-2_125" behind "net-1_1875": steps that begin again with each epoch. Ranks are fewer than
 * steps. */
static bool begin_again(const struct candidates *c, bool *are_epochs_apart)
{
	bool do_begin = false;

	*are_epochs_apart = true;
	for (size_t i = 0; i < c->pair_count; i++) {
		if (c->pairs[i].minor <= c->pairs[i].major)
			return false;
		for (size_t k = 0; k < c->pair_count; k++) {
			do_begin |= c->pairs[k].major < c->pairs[i].major &&
				    c->pairs[k].minor > c->pairs[i].minor;
			*are_epochs_apart &= k == i || c->pairs[k].major != c->pairs[i].major;
		}
	}
	return do_begin;
}

/* Of the training: as many to an epoch as were seen. Where each is of another epoch that says
 * which is newer. */
static int64_t step_of_all(const struct candidates *c, bool are_epochs_apart)
{
	size_t in_front = c->places[0] < c->places[1] ? 0 : 1;
	int64_t major = value(c, in_front), most = 0, first = 1;

	for (size_t i = 0; i < c->pair_count; i++) {
		most = c->pairs[i].minor > most ? c->pairs[i].minor : most;
		first = c->pairs[i].major == 0 ? 0 : first;
	}
	return are_epochs_apart || most > INT64_MAX / 1000 / (major + 1)
		       ? major
		       : (major - first) * most + value(c, 1 - in_front);
}

/* "resnet50.pt", where "resnet50_epoch_3.pt" lies beside it: the name of all, and no step. */
static bool goes_on_to_step(const char *name, const char *other)
{
	const char *dot = strrchr(name, '.');
	size_t len = dot ? (size_t)(dot - name) : strlen(name);

	return strncmp(name, other, len) == 0 && strchr("_-.", other[len]) && other[len] &&
	       name_tells_step(other + len);
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

int64_t step_beside_siblings(const char *folder, const char *name, bool *is_in_epoch)
{
	struct candidates c = { .name = name };
	bool is_said = name_tells_step(name), is_of_all = false, are_apart, do_begin;
	const struct dirent *entry;
	DIR *dir;

	c.count = step_candidates(name, c.places);
	dir = c.count > 0 || !is_said ? opendir(folder) : NULL;
	for (int n = 0, alike = 0;
	     dir && n < ENTRIES_MAX && !is_of_all &&
	     (!is_said || (alike < SIBLINGS_MAX && (c.count == 2 || !c.differs[0]))) &&
	     (entry = readdir(dir));
	     n++) {
		size_t at[STEP_CANDIDATES_MAX] = { 0 };

		is_of_all = !is_said && goes_on_to_step(name, entry->d_name);
		if (c.count > 0 && alike < SIBLINGS_MAX && is_sibling(&c, entry->d_name, at)) {
			compare(&c, entry->d_name, at);
			alike++;
		}
	}
	if (dir)
		closedir(dir);
	do_begin = begin_again(&c, &are_apart);
	if (is_in_epoch)
		*is_in_epoch = do_begin;
	if (is_of_all)
		return -1;
	if (do_begin)
		return step_of_all(&c, are_apart);
	return choose(&c) > 0 ? value(&c, choose(&c)) : step_in_name(name);
}
