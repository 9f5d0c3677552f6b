/* SPDX-License-Identifier: MIT */
/* stop.c - that this attempt shall end, in words: whoever wants it, it is told here. */
#include <stdio.h>

#include "common/base/failpoint.h"
#include "worker/lbrun/shepherd/shepherd.h"

static void describe(struct shepherd *s, const struct next *next, int64_t now_ms, char *out,
		     size_t size)
{
	switch (next->why) {
	case STOP_FENCED:
		snprintf(out, size, "fenced: attempt %lld has the run now",
			 (long long)s->facts.newest_claim);
		break;
	case STOP_ORDERED:
		snprintf(out, size, "%s", s->order_text);
		break;
	case STOP_SIGNALLED:
		snprintf(out, size, "ended by SIG%s without an order",
			 signal_word(s->facts.signalled));
		break;
	case STOP_WARNED:
		snprintf(out, size, "the job's time limit is near");
		break;
	case STOP_LEFT_OVER:
		if (s->facts.launch.has_begun_again)
			snprintf(out, size,
				 "its ranks were started again, behind the checkpoint of step %lld",
				 (long long)s->facts.launch.step_saved);
		else
			snprintf(out, size,
				 "srun ended the launch %.0f s ago, and some ranks go on",
				 (double)(now_ms - s->facts.launch.srun_ends_ms) / 1000);
		break;
	case STOP_REQUEUED:
		snprintf(out, size, "it asked for a requeue, and goes on in another job");
		break;
	case STOP_NODE:
		if (s->facts.cut_off)
			snprintf(out, size, "%s", s->facts.cut_off);
		else
			snprintf(out, size, "%s was not heard for %.0f s", s->facts.lost_node,
				 (double)s->params.watch.node_ms / 1000);
		break;
	default:
		watch_describe(&s->watch, now_ms, s->hang_text, sizeof(s->hang_text));
		snprintf(out, size, "hung: %s%s%s", s->hang_text, s->stacks.name[0] ? "; " : "",
			 s->stacks.name);
	}
}

void stop_heed(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	if (!next->is_news)
		return;
	failpoint(FP_STOP_SEEN, NULL);
	describe(s, next, now_ms, s->stop_text, sizeof(s->stop_text));
	output_say(&s->output, "ending the trainer: %s", s->stop_text);
	if (s->facts.launch.has_begun_again)
		journal_note(&s->journal, s->facts.launch.number, "ranks_again",
			     "%s; they are ended, to start from that", s->stop_text);
}

void stop_ordered(struct shepherd *s, enum run_order order, bool goes_on, const char *text)
{
	/* a person's stop behind one for this attempt alone is another */
	bool is_other = order == s->facts.order && s->facts.goes_on && !goes_on;

	if (order < s->facts.order || (order == s->facts.order && !is_other))
		return;
	s->facts.order = order;
	s->facts.goes_on = goes_on;
	snprintf(s->order_text, sizeof(s->order_text), "%s", text);
	if (is_other)
		snprintf(s->stop_text, sizeof(s->stop_text), "%s", text);
}
