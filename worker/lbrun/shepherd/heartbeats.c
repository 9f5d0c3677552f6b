/* SPDX-License-Identifier: MIT */
/* heartbeats.c - nodes of a launch that are not heard any more: a fact for what is decided next. */
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
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
	if (listener_start(&s->listener, here.host, s->params.watch.node_ms, &why) < 0)
		log_warn("no heartbeats between the nodes: %s", why.text);
}

static void on_lost(struct shepherd *s, const char *node)
{
	char text[200];

	if (s->facts.lost_node[0] || !s->facts.launch.is_open)
		return;
	snprintf(s->facts.lost_node, sizeof(s->facts.lost_node), "%s", node);
	snprintf(text, sizeof(text), "not heard for %.0f s",
		 (double)s->params.watch.node_ms / 1000);
	trainer_protocol_node_lost(s, node, text);
}

void heartbeats_news(struct shepherd *s)
{
	struct listener_news news;

	while (listener_heard(&s->listener, &news)) {
		if (news.launch != s->facts.launch.number)
			continue;
		if (news.kind == NEWS_LOST)
			on_lost(s, news.node);
		else if (s->facts.lost_node[0] && s->facts.kill_again_ms != INT64_MAX)
			s->facts.kill_again_ms = clock_mono_ms();
	}
}
