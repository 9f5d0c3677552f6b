/* SPDX-License-Identifier: MIT */
/* note.c - what a step, and what the trainer tells, change in the facts. Pure as well: both shells
 * share it. */
#include <stdio.h>

#include "worker/lbrun/decide/decide.h"

void shepherd_begin(struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	*f = (struct shepherd_facts){
		.looked_ms = INT64_MIN,
		.full_ms = INT64_MIN,
		.held_until_ms = INT64_MIN,
		.cleared_ms = INT64_MIN / 2,
		.tried_ms = INT64_MIN / 2,
		.kill_again_ms = INT64_MAX,
		.check_kill_ms = INT64_MAX,
		.hung_at_ms = INT64_MAX,
		.found = -1,
		.found_step = -1,
		.newest_step = -1,
		.stop_text = "",
		.trouble = "",
		.check_text = "",
	};
	stopping_init(&f->stop, policy->params->kill_wait_ms);
}

/* --- what was decided ------------------------------------------------------------------------- */

/* Writing a checkpoint may take longer than a killed trainer is given. */
static int64_t grace_ms(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			enum stop_why why)
{
	/* Half of what is left is for the last checkpoint, the rest for a trainer that obeys
	 * SIGTERM alone. */
	if (why == STOP_WARNED)
		return policy->params->warn_ms / 2;
	return f->order == ORDER_STOP ? policy->params->stop_grace_ms
				      : policy->params->kill_grace_ms;
}

/* What hangs does not listen, nor what has lost a rank. */
static void note_heeded(struct shepherd_facts *f, const struct shepherd_policy *policy,
			const struct next *next, int64_t now_ms)
{
	f->heeded = f->order;
	stopping_request(&f->stop, next->why, now_ms, grace_ms(f, policy, next->why),
			 next->why > STOP_HUNG && f->listens);
	if (next->at_once)
		stopping_request_now(&f->stop, next->why, now_ms);
}

static void note_launch(struct shepherd_facts *f, int64_t now_ms)
{
	f->launch = (struct launch){
		.number = f->launch.number + 1,
		.is_open = true,
		.left = -1,
		.reports = f->launch.reports,
		.is_first = f->is_first_launch,
		.has_checkpoint = f->found == 1,
		.from_step = f->found_step,
		.step_to_beat = f->newest_step,
		.step_saved = -1,
		.first_told = -1,
		.step_told = -1,
		.target_told = -1,
		.ooms_at_start = -1,
		.ooms = -1,
		.begun_ms = now_ms,
	};
	f->looking = LOOKING_IDLE;
	f->is_handed_over = f->has_last_look = false;
	f->wants_save = f->wants_stacks = false;
	f->lost_node[0] = '\0';
	f->cut_off = NULL;
	f->kill_again_ms = INT64_MAX;
}

/* A hang was the launch's, not the attempt's; so was a node, or a rank. */
static void note_finish(struct shepherd_facts *f, const struct shepherd_policy *policy,
			const struct next *next, int64_t now_ms)
{
	f->ending = next->ending;
	f->launch.is_open = false;
	f->failures = next->made_progress ? 0 : f->failures + next->counts;
	f->has_progressed |= next->made_progress;
	snprintf(f->node_before, sizeof(f->node_before), "%s", f->launch.node);
	f->relaunch_ms = now_ms + (next->made_progress ? 0 : RELAUNCH_PAUSE_MS);
	f->room_until_ms = now_ms + ROOM_WAIT_MS;
	f->has_last_look = false;
	f->is_over = !next->goes_on;
	if (f->stop.why <= STOP_NODE)
		stopping_init(&f->stop, policy->params->kill_wait_ms);
}

void shepherd_note(struct shepherd_facts *f, const struct shepherd_policy *policy,
		   const struct next *next, int64_t now_ms)
{
	switch (next->kind) {
	case NEXT_LOOK:
		f->looked_ms = now_ms;
		f->has_last_look |= next->is_last;
		break;
	case NEXT_HEED:
		note_heeded(f, policy, next, now_ms);
		break;
	case NEXT_CHECK:
		f->check = CHECK_BUSY;
		f->check_began_ms = now_ms;
		f->check_kill_ms = INT64_MAX;
		break;
	case NEXT_CHECK_SKIP:
		f->check = CHECK_WELL;
		break;
	case NEXT_CHECK_KILL:
		f->check_kill_ms = now_ms + CHECK_KILL_MS;
		break;
	case NEXT_SEARCH:
		f->looking = LOOKING_BUSY;
		f->has_last_look = false;
		break;
	case NEXT_SEARCH_LOST:
		f->searches_lost++;
		f->looking = LOOKING_IDLE;
		f->relaunch_ms = now_ms + RELAUNCH_PAUSE_MS;
		break;
	case NEXT_HAND_OVER:
		f->searches_lost = 0;
		f->is_handed_over = true;
		f->is_first_launch = f->handed->is_first;
		break;
	case NEXT_LAUNCH:
		note_launch(f, now_ms);
		break;
	case NEXT_TRUST:
		f->launch.is_trusted = true;
		break;
	case NEXT_SAVE:
		f->wants_save = false;
		break;
	case NEXT_STACKS:
		f->wants_stacks &= next->is_hang;
		break;
	case NEXT_ASK:
		stopping_took(&f->stop, STEP_ASK);
		break;
	case NEXT_TERM:
		stopping_took(&f->stop, STEP_TERM);
		break;
	case NEXT_KILL:
		stopping_took(&f->stop, STEP_KILL);
		f->kill_again_ms = now_ms + (policy->is_srun ? SRUN_KILL_MS : CLEAR_EVERY_MS);
		break;
	case NEXT_CLEAR:
		f->cleared_ms = now_ms;
		if (f->kill_again_ms <= now_ms)
			f->kill_again_ms = now_ms + CLEAR_EVERY_MS;
		break;
	case NEXT_DRAIN:
		f->launch.is_drained = true;
		f->has_last_look = false;
		break;
	case NEXT_FINISH:
		note_finish(f, policy, next, now_ms);
		break;
	case NEXT_GIVE_UP:
		f->ending = next->ending;
		f->is_over = true;
		f->launch.left = -1; /* a search may still be under way */
		break;
	case NEXT_CLOSE:
		f->is_closed = true;
		f->closed_ms = now_ms;
		break;
	case NEXT_RECORD:
		f->has_tried = true;
		f->tried_ms = now_ms;
		break;
	case NEXT_SYNC:
		f->tried_ms = now_ms;
		break;
	case NEXT_WAIT:
	case NEXT_TURN_AWAY:
	case NEXT_CLAIM:
	case NEXT_LEAVE:
	case NEXT_COUNT:
		break;
	}
}

/* --- what the trainer tells ------------------------------------------------------------------- */

void launch_ended(struct launch *l, int wait_status, int64_t now_ms)
{
	l->has_ended = true;
	l->wait_status = wait_status;
	l->ended_ms = now_ms;
	l->left = -1;
}

void launch_node_lost(struct shepherd_facts *f, const char *node)
{
	snprintf(f->lost_node, sizeof(f->lost_node), "%s", node);
	snprintf(f->launch.node, sizeof(f->launch.node), "%s", node);
	f->launch.is_node_broken = true;
}

void launch_told_step(struct launch *l, int64_t step, int64_t rank_end_ms, int64_t now_ms)
{
	if (step < 0)
		return;
	if (l->first_told < 0)
		l->first_told = step;
	if (step > l->step_told) {
		l->stride_told = l->step_told < 0 ? step : step - l->step_told;
		l->step_told = step;
		l->told_ms = now_ms;
	}
	/* a script that fails prints the last lines of its log again, mostly all at once: they end
	 * with the newest step, beyond the checkpoint or just at it */
	if (step > l->step_saved || (step == l->step_told && l->has_begun_again))
		l->has_begun_again = false;
	else
		l->has_begun_again |= rank_end_ms > l->told_ms - TOLD_LATE_MS;
	l->has_come_further |= step > l->from_step;
}

void launch_survives(struct launch *l, int64_t now_ms)
{
	if (now_ms - l->srun_ends_ms > UNREACHED_SURVIVED_MS)
		l->srun_ends_ms = 0;
	if (l->unreached_ms <= 0 || now_ms - l->unreached_ms <= UNREACHED_SURVIVED_MS)
		return;
	l->unreached_ms = 0;
	l->node[0] = '\0';
	l->is_node_broken = false;
}

bool launch_saved(struct launch *l, int64_t step, bool is_time)
{
	bool is_progress = step < 0 || step > l->step_to_beat;

	if (step > l->step_saved && !is_time)
		l->step_saved = step;
	l->has_saved |= is_progress;
	l->has_come_further |= step < 0 || step > l->from_step;
	return is_progress;
}
