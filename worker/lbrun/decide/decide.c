/* SPDX-License-Identifier: MIT */
/* decide.c - from facts to the next step, in the order in which an attempt goes through them. */
#include "worker/lbrun/decide/decide.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "worker/lbrun/decide/judge.h"

static struct next step(enum next_kind kind)
{
	return (struct next){ .kind = kind };
}

static struct next wait_until(int64_t at_ms)
{
	return (struct next){ .kind = NEXT_WAIT, .at_ms = at_ms };
}

/* Only news can change the answer. */
static struct next wait_for_news(void)
{
	return wait_until(INT64_MAX);
}

static struct next step_at(enum next_kind kind, int64_t at_ms, int64_t now_ms)
{
	return now_ms >= at_ms ? step(kind) : wait_until(at_ms);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct next clear(int signo)
{
	struct next next = step(NEXT_CLEAR);

	next.signo = signo;
	return next;
}

/* Again and again, until a count finds nobody. */
static struct next clear_in_turn(const struct shepherd_facts *f, int signo, int64_t now_ms)
{
	int64_t due_ms = f->cleared_ms + CLEAR_EVERY_MS;

	return now_ms >= due_ms ? clear(signo) : wait_until(due_ms);
}

/* --- who has the run -------------------------------------------------------------------------- */

static bool is_fenced(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	return f->newest_claim > policy->params->number;
}

bool shepherd_may_remember(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	return !is_fenced(f, policy);
}

static struct next without_claim(const struct shepherd_facts *f,
				 const struct shepherd_policy *policy)
{
	if (f->claim == CLAIM_NONE && !is_fenced(f, policy))
		return step(NEXT_CLAIM);
	return step(NEXT_TURN_AWAY);
}

/* --- who wants it to end ---------------------------------------------------------------------- */

/* What is left of the launch waits for what never comes, or ends with its leases. */
static bool is_node_lost(const struct shepherd_facts *f)
{
	return (f->lost_node[0] || f->cut_off) && f->launch.is_open;
}

/* The strongest reason. A warning is a script's own affair: it gets the signal itself. */
static enum stop_why wanted_end(const struct shepherd_facts *f,
				const struct shepherd_policy *policy)
{
	if (is_fenced(f, policy))
		return STOP_FENCED;
	if (f->order > ORDER_RUN)
		return STOP_ORDERED;
	if (f->signalled)
		return STOP_SIGNALLED;
	if (f->is_warned && !policy->params->is_script)
		return STOP_WARNED;
	return is_node_lost(f) ? STOP_NODE : STOP_NOT;
}

static struct next heed(const struct shepherd_facts *f, enum stop_why why, bool at_once)
{
	struct next next = step(NEXT_HEED);
	bool is_announced = why == STOP_SIGNALLED && f->stop.why == STOP_WARNED;

	next.why = why;
	next.at_once = at_once;
	next.is_news = (why > f->stop.why && !is_announced) ||
		       (why == STOP_ORDERED && f->order > f->heeded);
	return next;
}

/* What was heeded already, or is weaker, changes nothing. */
static bool is_to_heed(const struct shepherd_facts *f, const struct shepherd_policy *policy,
		       int64_t now_ms, struct next *out)
{
	enum stop_why why = wanted_end(f, policy);
	bool at_once = why == STOP_FENCED || f->order == ORDER_KILL_NOW ||
		       f->signalled == SIGQUIT || is_node_lost(f);
	bool is_stronger = why > f->stop.why || (why == STOP_ORDERED && f->order > f->heeded);
	bool is_sooner = at_once && f->stop.due_ms[STEP_KILL] > now_ms;

	if (why == STOP_NOT || !(is_stronger || is_sooner))
		return false;
	*out = heed(f, why, at_once);
	return true;
}

/* --- no trainer runs -------------------------------------------------------------------------- */

static struct next give_up(enum cause cause, const char *text)
{
	struct next next = step(NEXT_GIVE_UP);

	next.ending = (struct ending){ .cause = cause, .exit_code = -1 };
	snprintf(next.ending.text, sizeof(next.ending.text), "%.190s", text);
	return next;
}

static struct next give_up_as_asked(const struct shepherd_facts *f)
{
	struct next next = step(NEXT_GIVE_UP);

	ending_without_trainer(stop_reason(f), f->goes_on, f->stop_text, &next.ending);
	return next;
}

/* Never from step 0 where there are checkpoints and none is whole: a person must look. */
static struct next refuse_to_start(void)
{
	struct next next = give_up(CAUSE_ERROR, "");

	next.ending.is_final = true;
	return next;
}

static struct next last_look(void)
{
	struct next next = step(NEXT_LOOK);

	next.is_last = true;
	return next;
}

/* The machine has no process left, say: no word against the run, which is tried in another job. */
static struct next cannot_search(const struct shepherd_facts *f)
{
	char text[240];

	snprintf(text, sizeof(text), "no checkpoint could be looked for: %.150s", f->trouble);
	return give_up(CAUSE_CRASH, text);
}

/* Here, and at last in another job. */
static struct next search_again(const struct shepherd_facts *f)
{
	return f->searches_lost + 1 < SEARCH_TRIES ? step(NEXT_SEARCH_LOST) : cannot_search(f);
}

static struct next after_search(const struct shepherd_facts *f)
{
	if (f->looking == LOOKING_FAILED)
		return cannot_search(f);
	if (f->found == FOUND_UNKNOWN)
		return search_again(f);
	if (f->found < 0)
		return refuse_to_start();
	if (!f->has_last_look)
		return last_look();
	return step(f->is_handed_over ? NEXT_LAUNCH : NEXT_HAND_OVER);
}

/* An older attempt may still be about to see our claim, and to end; ranks that it has left on nodes
 * that nobody reaches stop with their leases. */
static bool is_older_awaited(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			     int64_t now_ms)
{
	int64_t waited_ms = now_ms - f->claimed_ms;

	return f->launch.number == 0 && ((f->older_may_live && waited_ms < OLDER_WAIT_MS) ||
					 (f->older_left_ranks && waited_ms < policy->lease_ms));
}

/* Another allocation may be better: the nodes are to blame, not the run. */
static struct next refuse_nodes(const struct shepherd_facts *f)
{
	struct next next = give_up(CAUSE_LAUNCH_FAIL, f->check_text);

	next.ending.is_node = true;
	return next;
}

/* Once, unless a spare has come in since: a launch in place has the same nodes. */
static struct next check_nodes(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			       int64_t now_ms)
{
	int64_t until_ms = f->check_began_ms + policy->params->preflight_ms;

	if (f->check == CHECK_BROKEN)
		return refuse_nodes(f);
	if (f->check == CHECK_BUSY)
		return step_at(NEXT_CHECK_KILL,
			       f->check_kill_ms == INT64_MAX ? until_ms : f->check_kill_ms, now_ms);
	if (f->checks_failed >= policy->params->preflight_tries)
		return step(NEXT_CHECK_SKIP);
	return step(NEXT_CHECK);
}

static struct next without_trainer(const struct shepherd_facts *f,
				   const struct shepherd_policy *policy, int64_t now_ms)
{
	if (f->looked_ms == INT64_MIN)
		return step(NEXT_LOOK);
	if (f->stop.why != STOP_NOT)
		return give_up_as_asked(f);
	if (f->looking == LOOKING_BUSY)
		return wait_for_news();
	if (f->looking != LOOKING_IDLE)
		return after_search(f);
	if (is_older_awaited(f, policy, now_ms))
		return step_at(NEXT_LOOK, f->looked_ms + OLDER_LOOK_MS, now_ms);
	if (f->check != CHECK_WELL && policy->params->preflight_ms > 0)
		return check_nodes(f, policy, now_ms);
	/* A trainer that is started on a full disk would mostly die of it, too. */
	if (f->is_full && now_ms < f->room_until_ms)
		return wait_until(earlier(f->room_until_ms, now_ms + RELAUNCH_PAUSE_MS));
	return step_at(NEXT_SEARCH, later(f->relaunch_ms, f->held_until_ms), now_ms);
}

/* --- a trainer runs --------------------------------------------------------------------------- */

static struct next on_hang(const struct shepherd_facts *f)
{
	struct next next = step(NEXT_STACKS);

	next.is_hang = true;
	if (f->stacks == STACKS_BUSY)
		return wait_for_news();
	return f->stacks == STACKS_NONE ? next : heed(f, STOP_HUNG, false);
}

/* When ranks that srun has said it ends are left over; INT64_MAX = it has not. */
static int64_t left_over_ms(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	int64_t kill_wait_ms = policy->params->kill_wait_ms;

	if (f->launch.srun_ends_ms == 0)
		return INT64_MAX;
	return f->launch.srun_ends_ms + (kill_wait_ms > 0 ? kill_wait_ms : DEFAULT_KILL_WAIT_MS) +
	       LEFT_OVER_MS;
}

static struct next running(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			   int64_t now_ms)
{
	static const enum next_kind kinds[STEP_COUNT] = {
		[STEP_ASK] = NEXT_ASK,
		[STEP_TERM] = NEXT_TERM,
		[STEP_KILL] = NEXT_KILL,
	};
	enum stop_step due = stopping_due(&f->stop, now_ms);
	int64_t next_ms = earlier(stopping_next_ms(&f->stop), f->kill_again_ms);

	if (due != STEP_NONE)
		return step(kinds[due]);
	if (now_ms >= f->kill_again_ms)
		return clear(SIGKILL);
	if (f->wants_save)
		return step(NEXT_SAVE);
	if (f->wants_stacks && f->stacks != STACKS_BUSY)
		return step(NEXT_STACKS);
	if (f->stop.why != STOP_NOT)
		return wait_until(next_ms);
	if (now_ms >= left_over_ms(f, policy))
		return heed(f, STOP_LEFT_OVER, false);
	if (f->launch.has_begun_again) /* before it saves over what is newer */
		return heed(f, STOP_LEFT_OVER, true);
	if (f->launch.is_requeue_asked)
		return heed(f, STOP_REQUEUED, false);
	next_ms = earlier(next_ms, left_over_ms(f, policy));
	return now_ms >= f->hung_at_ms ? on_hang(f) : wait_until(earlier(next_ms, f->hung_at_ms));
}

/* --- it has ended ----------------------------------------------------------------------------- */

/* Its SIGTERM was perhaps for all of the job: then it comes to us, too, and was no crash. What a
 * script has started may get it first, so that the script goes on, to a status of 0. */
static bool may_be_told(const struct shepherd_facts *f, int64_t now_ms)
{
	int status = f->launch.wait_status;
	bool is_terminated = (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
			     (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
	bool is_announced = f->continued_ms > 0 && f->launch.ended_ms < f->continued_ms + CONT_MS;

	return (is_terminated || is_announced) && f->stop.why == STOP_NOT &&
	       now_ms < f->launch.ended_ms + OUR_TERM_MS;
}

/* A shell in front of a trainer dies of the SIGTERM that the trainer itself may still obey. */
static bool has_grace_left(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			   int64_t now_ms)
{
	return f->stop.done[STEP_TERM] && !f->stop.done[STEP_KILL] &&
	       now_ms < f->stop.due_ms[STEP_KILL] &&
	       now_ms < f->launch.ended_ms + policy->params->kill_grace_ms;
}

static struct next ended(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			 int64_t now_ms)
{
	if (may_be_told(f, now_ms))
		return wait_until(f->launch.ended_ms + OUR_TERM_MS);
	if (f->launch.left != 0)
		return clear_in_turn(f, has_grace_left(f, policy, now_ms) ? 0 : SIGKILL, now_ms);
	if (!f->launch.is_drained)
		return step(NEXT_DRAIN);
	/* the order that ended it may have become visible only now */
	return f->has_last_look ? launch_judge(f, policy, now_ms) : last_look();
}

static struct next with_trainer(const struct shepherd_facts *f,
				const struct shepherd_policy *policy, int64_t now_ms)
{
	if (f->launch.has_checkpoint && f->launch.has_come_further && !f->launch.is_trusted)
		return step(NEXT_TRUST);
	return f->launch.has_ended ? ended(f, policy, now_ms) : running(f, policy, now_ms);
}

/* --- the end of the attempt ------------------------------------------------------------------- */

static bool is_asked(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	return f->stop.why != STOP_NOT || wanted_end(f, policy) != STOP_NOT;
}

/* Who asks lbrun to end will not wait for a full disk; who does not, may. */
static int64_t deadline_ms(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	return f->closed_ms + (is_asked(f, policy) ? LAST_WORDS_MS : OWN_END_MS);
}

/* While the attempt is still ours: behind exit.json another one may need what we remove. */
static bool awaits_pruning(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			   int64_t now_ms)
{
	return f->is_pruning && !is_asked(f, policy) && now_ms < f->launch.ended_ms + LAST_PRUNE_MS;
}

static bool is_at_once(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	return is_fenced(f, policy) || f->order == ORDER_KILL_NOW || f->signalled == SIGQUIT;
}

/* As long again as the trainer may take to end: a person waits. */
static int64_t ordered_until_ms(const struct shepherd_facts *f,
				const struct shepherd_policy *policy, int64_t ended_ms)
{
	bool runs = f->launch.is_open && !f->launch.has_ended;
	int64_t from_ms = runs ? f->stop.due_ms[STEP_KILL] : ended_ms;
	int64_t grace_ms = f->order == ORDER_STOP ? policy->params->stop_grace_ms
						  : policy->params->kill_grace_ms;

	return from_ms == INT64_MAX ? from_ms : from_ms + grace_ms;
}

int64_t shepherd_drain_until_ms(const struct shepherd_facts *f,
				const struct shepherd_policy *policy)
{
	int64_t ended_ms = f->launch.ended_ms > f->claimed_ms ? f->launch.ended_ms : f->claimed_ms;

	if (is_at_once(f, policy))
		return 0;
	if (f->signalled)
		return f->signalled_ms + f->stop.scheduler_grace_ms;
	if (f->order > ORDER_RUN)
		return ordered_until_ms(f, policy, ended_ms);
	return f->is_over && !f->is_warned ? ended_ms + LAST_DRAIN_MS : INT64_MAX;
}

static struct next close_down(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			      int64_t now_ms)
{
	int64_t until_ms = deadline_ms(f, policy), try_ms = f->tried_ms + TRY_EVERY_MS;

	if (f->launch.left != 0)
		return clear_in_turn(f, SIGKILL, now_ms);
	if (!f->is_closed && f->is_draining && now_ms < shepherd_drain_until_ms(f, policy))
		return wait_until(shepherd_drain_until_ms(f, policy));
	if (!f->is_closed && awaits_pruning(f, policy, now_ms))
		return wait_until(f->launch.ended_ms + LAST_PRUNE_MS);
	if (!f->is_closed)
		return step(NEXT_CLOSE);
	if (f->is_unwritten && now_ms < until_ms)
		return step_at(NEXT_SYNC, earlier(try_ms, until_ms), now_ms);
	if (f->is_recorded || (f->has_tried && now_ms >= until_ms))
		return step(NEXT_LEAVE);
	return f->has_tried ? step_at(NEXT_RECORD, earlier(try_ms, until_ms), now_ms)
			    : step(NEXT_RECORD);
}

/* ---------------------------------------------------------------------------------------------- */

struct next shepherd_decide(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			    int64_t now_ms)
{
	struct next next;

	if (f->claim != CLAIM_OURS)
		return without_claim(f, policy);
	if (f->is_over)
		return close_down(f, policy, now_ms);
	if (is_to_heed(f, policy, now_ms, &next))
		return next;
	if (f->launch.is_open)
		return with_trainer(f, policy, now_ms);
	return without_trainer(f, policy, now_ms);
}

const char *next_name(enum next_kind kind)
{
	static const char *const names[NEXT_COUNT] = {
		[NEXT_WAIT] = "wait",
		[NEXT_TURN_AWAY] = "turn_away",
		[NEXT_CLAIM] = "claim",
		[NEXT_LOOK] = "look",
		[NEXT_HEED] = "heed",
		[NEXT_CHECK] = "check",
		[NEXT_CHECK_SKIP] = "check_skip",
		[NEXT_CHECK_KILL] = "check_kill",
		[NEXT_SEARCH] = "search",
		[NEXT_SEARCH_LOST] = "search_lost",
		[NEXT_HAND_OVER] = "hand_over",
		[NEXT_LAUNCH] = "launch",
		[NEXT_TRUST] = "trust",
		[NEXT_SAVE] = "save",
		[NEXT_STACKS] = "stacks",
		[NEXT_ASK] = "ask",
		[NEXT_TERM] = "term",
		[NEXT_KILL] = "kill",
		[NEXT_CLEAR] = "clear",
		[NEXT_DRAIN] = "drain",
		[NEXT_FINISH] = "finish",
		[NEXT_GIVE_UP] = "give_up",
		[NEXT_CLOSE] = "close",
		[NEXT_SYNC] = "sync",
		[NEXT_RECORD] = "record",
		[NEXT_LEAVE] = "leave",
	};

	return names[kind];
}
