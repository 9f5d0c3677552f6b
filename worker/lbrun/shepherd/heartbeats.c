/* SPDX-License-Identifier: MIT */
/* heartbeats.c - nodes of a launch that are not heard any more: a fact for what is decided next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/checkpoint/set_aside.h"
#include "worker/lbrun/decide/judge.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"

enum { CLOCKS_DIFFER_MS = 2000 }; /* at most, of nodes and their file server */

void heartbeats_start(struct shepherd *s)
{
	struct meeting here;
	struct err why = { 0 };

	s->listener.fd = -1;
	if (!s->policy.is_srun || launcher_nodes() < 2 || s->params.watch.node_ms <= 0)
		return;
	meeting_choose(&here, 0);
	if (listener_start(&s->listener, here.host, s->node, s->params.watch.node_ms, &why) < 0)
		log_warn("no heartbeats between the nodes: %s", why.text);
}

static void on_lost(struct shepherd *s, const char *node)
{
	char text[200];

	if (s->facts.lost_node[0] || s->facts.cut_off || !s->facts.launch.is_open)
		return;
	if (!node[0]) {
		s->facts.cut_off = "no other node was heard for watch.node_timeout, all since the "
				   "same moment: none of them is blamed";
		return;
	}
	launch_node_lost(&s->facts, node);
	snprintf(text, sizeof(text), "not heard for %.0f s",
		 (double)s->params.watch.node_ms / 1000);
	trainer_protocol_node_lost(s, node, text);
}

/* Nothing of it runs any more, on whatever node: srun has nobody left to wait for. */
static void on_over(struct shepherd *s)
{
	s->facts.launch.is_quiet = true;
	if (s->facts.lost_node[0] && s->facts.kill_again_ms != INT64_MAX)
		s->facts.kill_again_ms = clock_mono_ms();
}

/* This node was frozen, or all of the job was: lbd may have given the run to another attempt. */
static void on_slept(struct shepherd *s)
{
	orders_look(s, clock_mono_ms());
	if (shepherd_may_remember(&s->facts, &s->policy))
		listener_trust(&s->listener);
}

/* Ranks that hold a lease stop, and end, for nobody answers them: better at once, and told. */
static void on_deaf(struct shepherd *s)
{
	struct launch *l = &s->facts.launch;

	output_say(&s->output,
		   "the process that hears heartbeats has ended: there are none any more");
	if (l->is_open && !l->has_ended && l->is_heard)
		s->facts.cut_off = "lbrun's process for heartbeats has ended";
}

void heartbeats_news(struct shepherd *s)
{
	bool was_there = s->listener.fd >= 0;
	struct listener_news news;

	while (listener_heard(&s->listener, &news)) {
		if (news.launch != s->facts.launch.number)
			continue;
		s->facts.launch.is_heard |= news.kind == NEWS_HEARD;
		if (news.kind == NEWS_LOST)
			on_lost(s, news.node);
		if (news.kind == NEWS_OVER)
			on_over(s);
		if (news.kind == NEWS_SLEPT)
			on_slept(s);
	}
	if (was_there && s->listener.fd < 0)
		on_deaf(s);
}

/* Is the node all that keeps it from going on? A run that is over needs no spare. */
static bool would_go_on(const struct shepherd *s)
{
	struct shepherd_facts with = s->facts;

	with.launch.is_replaced = true;
	return launch_judge(&with, &s->policy, clock_mono_ms()).goes_on;
}

void heartbeats_replace(struct shepherd *s)
{
	struct launch *l = &s->facts.launch;

	if (!s->allocation.nodes || launch_has_sound_nodes(&s->facts, &s->policy) ||
	    !would_go_on(s) || !spare_take_place(s, l->node))
		return;
	l->is_replaced = true;
	s->facts.was_node_lost = true;
}

/* Wall clock: what was written behind it is not that launch's. Its ranks have ended, or are silent
 * for longer than clocks differ. */
static int64_t lost_at_ms(const struct shepherd *s)
{
	const struct launch *l = &s->facts.launch;

	return l->number == 0 ? s->claim.time_ms - CLOCKS_DIFFER_MS
			      : clock_wall_ms() - (clock_mono_ms() - l->ended_ms);
}

/* Refused by the search, not touched since, and written before the launch that lost a node was
 * over: others may keep theirs in the same folder. What cannot be read may be whole. */
static bool is_torn(void *arg, struct checkpoint_list *list, size_t index)
{
	const struct shepherd *s = arg;
	const struct checkpoint *c = &list->items[index];
	struct look look = { 0 };
	struct stat st;

	checkpoint_check(s->rules, list, index, &look);
	return !c->is_valid && !c->is_unreadable && search_was_bad(&s->search, c) &&
	       stat(c->path, &st) == 0 && c->time_ms < lost_at_ms(s) &&
	       (int64_t)st.st_mtim.tv_sec * 1000 < lost_at_ms(s);
}

/* Where steps are told; those that are whole, or older, stay. What a person chose to start from
 * says nothing of the others. */
void heartbeats_set_aside(struct shepherd *s)
{
	bool is_chosen = s->facts.launch.number == 0 && strcmp(s->params.resume, "latest") != 0;
	int64_t moved, step = s->search.newest_step;
	char *aside;
	struct err why = { 0 };

	if (!s->facts.was_node_lost || s->policy.finds_own || is_chosen ||
	    (s->search.found == 1 && step < 0))
		return;
	aside = path_join("%s/set-aside-%lld.%lld", s->params.checkpoint_dir,
			  (long long)s->params.number, (long long)s->facts.launch.number);
	moved = checkpoints_set_aside(s->params.checkpoint_dir, s->rules, step, is_torn, s, aside,
				      &why);
	if (moved < 0)
		output_say(&s->output, "%s", why.text);
	else if (moved > 0)
		output_say(&s->output,
			   "%lld unfinished checkpoint%s of a launch that lost a node: moved to %s",
			   (long long)moved, moved == 1 ? "" : "s", aside);
	s->facts.was_node_lost = moved < 0;
	free(aside);
}
