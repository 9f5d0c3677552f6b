/* SPDX-License-Identifier: MIT */
/* choice.c - the newest whole checkpoint that is not suspect, or why there is none to take. */
#include "worker/lbrun/checkpoint/choice.h"

/* Nothing here was ever whole. What this run itself did not finish is nothing to lose; what
 * somebody else left, or what was valid once, is. A run that says what makes them complete is
 * believed at once. */
static bool is_nothing_to_lose(const struct checkpoint_list *list, const struct handed *handed)
{
	bool is_all_unfinished = true;

	for (size_t i = 0; i < list->count; i++)
		is_all_unfinished &= list->items[i].is_unfinished;
	if (handed->has_had)
		return false;
	return !handed->is_first || is_all_unfinished;
}

int64_t checkpoint_choose(const struct checkpoint_list *list, const struct handed *handed)
{
	int64_t newest_suspect = -1;

	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *c = &list->items[i];

		if (!c->is_checked || !c->is_valid)
			continue;
		if (!c->is_suspect)
			return (int64_t)i;
		if (newest_suspect < 0)
			newest_suspect = (int64_t)i;
	}
	if (newest_suspect >= 0)
		return newest_suspect;
	return list->count == 0 || is_nothing_to_lose(list, handed) ? CHOICE_SCRATCH
								    : CHOICE_REFUSED;
}
