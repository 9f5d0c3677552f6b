/* SPDX-License-Identifier: MIT */
/* heartbeats.c - nodes of a launch that are not heard any more: a fact for what is decided next. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/lbrun/decide/judge.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"

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
