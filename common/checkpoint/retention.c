/* SPDX-License-Identifier: MIT */
/* retention.c - counts and adds up from the newest checkpoint on, and marks what may go. */
#include "common/checkpoint/retention.h"

#include "common/base/mem.h"

#include <stdlib.h>

bool retention_is_on(const struct retention *r)
{
	return r->keep_latest_k > 0 || r->max_bytes > 0;
}

static bool is_milestone(const struct retention *r, const struct checkpoint *c)
{
	return r->keep_every > 0 && c->step >= 0 && c->step % r->keep_every == 0;
}

/* What a relaunch would take. */
static bool is_good(const struct checkpoint *c)
{
	return c->is_valid && !c->is_suspect;
}

/* Which may go at all: a relaunch has better ones. */
static void find_free(const struct checkpoint_list *list,
		      bool (*needed)(void *arg, const struct checkpoint *c), void *arg,
		      bool *is_free)
{
	bool has_best = false;
	size_t good = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *c = &list->items[i];
		bool is_best = c->is_valid && c->is_best && !has_best;

		is_free[i] = c->is_valid && good >= RETENTION_LEAST && !is_best && !c->is_linked &&
			     !(needed && needed(arg, c));
		good += is_good(c);
		has_best |= is_best;
	}
}

static void choose_by_count(const struct retention *r, const struct checkpoint_list *list,
			    const bool *is_free, bool *goes)
{
	int64_t good = 0;

	for (size_t i = 0; i < list->count; i++) {
		goes[i] = is_free[i] && r->keep_latest_k > 0 && good >= r->keep_latest_k &&
			  !is_milestone(r, &list->items[i]);
		good += is_good(&list->items[i]);
	}
}

static int64_t bytes_that_stay(const struct checkpoint_list *list, const bool *goes)
{
	int64_t total = 0;

	for (size_t i = 0; i < list->count; i++)
		total += goes[i] ? 0 : list->items[i].bytes;
	return total;
}

static void choose_by_bytes(const struct retention *r, const struct checkpoint_list *list,
			    const bool *is_free, bool *goes)
{
	int64_t total = bytes_that_stay(list, goes);

	for (int milestones = 0; milestones < 2; milestones++) {
		for (size_t i = list->count; i-- > 0 && total > r->max_bytes;) {
			if (!is_free[i] || goes[i] ||
			    is_milestone(r, &list->items[i]) != milestones)
				continue;
			goes[i] = true;
			total -= list->items[i].bytes;
		}
	}
}

size_t retention_choose(const struct retention *r, const struct checkpoint_list *list,
			bool (*needed)(void *arg, const struct checkpoint *c), void *arg,
			bool *goes)
{
	bool *is_free = xcalloc(list->count + 1, sizeof(*is_free));
	size_t count = 0;

	find_free(list, needed, arg, is_free);
	choose_by_count(r, list, is_free, goes);
	if (r->max_bytes > 0)
		choose_by_bytes(r, list, is_free, goes);
	for (size_t i = 0; i < list->count; i++)
		count += goes[i];
	free(is_free);
	return count;
}
