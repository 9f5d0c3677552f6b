/* SPDX-License-Identifier: MIT */
/* torn.c - unfinished checkpoints of launches that are over are moved away, where they do harm:
 * ranks of a lost node may still write to them; and a trainer that looks for the newest one itself
 * takes such a one, each time, and dies of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/paths.h"
#include "common/checkpoint/set_aside.h"
#include "worker/lbrun/decide/judge.h"
#include "worker/lbrun/shepherd/shepherd.h"

enum { CLOCKS_DIFFER_MS = 2000 }; /* at most, of nodes and their file server */

/* Wall clock: what was written behind it is not that launch's. Its ranks have ended, or are silent
 * for longer than clocks differ. */
static int64_t over_at_ms(const struct shepherd *s)
{
	const struct launch *l = &s->facts.launch;

	return l->number == 0 ? s->claim.time_ms - CLOCKS_DIFFER_MS
			      : clock_wall_ms() - (clock_mono_ms() - l->ended_ms);
}

/* Refused by the search, not touched since, and written before the launch before was over: others
 * may keep theirs in the same folder. What cannot be read may be whole. */
static bool is_torn(void *arg, struct checkpoint_list *list, size_t index)
{
	const struct shepherd *s = arg;
	const struct checkpoint *c = &list->items[index];
	struct look look = { 0 };
	struct stat st;

	checkpoint_check(s->rules, list, index, &look);
	return !c->is_valid && !c->is_unreadable && search_was_bad(&s->search, c) &&
	       stat(c->path, &st) == 0 && c->time_ms < over_at_ms(s) &&
	       (int64_t)st.st_mtim.tv_sec * 1000 < over_at_ms(s);
}

/* NULL: none. Where no checkpoint is whole the run stops, and a person looks at what there is. */
static const char *why_move(const struct shepherd *s)
{
	bool is_whole_before = s->search.found == 1 && s->search.newest_step >= 0;

	if (s->facts.was_node_lost)
		return "of a launch that lost a node";
	if (launch_gets_nowhere(&s->facts, &s->policy) && is_whole_before)
		return "newer than the newest whole one, of which a trainer may die that looks for "
		       "the newest itself";
	return NULL;
}

/* Where steps are told; those that are whole, or older, stay. What a person chose to start from
 * says nothing of the others. */
void torn_set_aside(struct shepherd *s)
{
	bool is_chosen = s->facts.launch.number == 0 && strcmp(s->params.resume, "latest") != 0;
	int64_t moved, step = s->search.newest_step;
	const char *why = why_move(s);
	char *aside;
	struct err err = { 0 };

	if (!why || s->policy.finds_own || is_chosen || (s->search.found == 1 && step < 0))
		return;
	aside = path_join("%s/set-aside-%lld.%lld", s->params.checkpoint_dir,
			  (long long)s->params.number, (long long)s->facts.launch.number);
	moved = checkpoints_set_aside(s->params.checkpoint_dir, s->rules, step, is_torn, s, aside,
				      &err);
	if (moved < 0)
		output_say(&s->output, "%s", err.text);
	else if (moved > 0)
		output_say(&s->output, "%lld unfinished checkpoint%s %s: moved to %s",
			   (long long)moved, moved == 1 ? "" : "s", why, aside);
	s->facts.was_node_lost &= moved < 0;
	free(aside);
}
