/* SPDX-License-Identifier: MIT */
/* reconcile.c - the ladder of a submission and the ways an attempt ends, as rules; the first that
 * applies decides. */
#include "daemon/engine/decide/reconcile.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/attempt_end.h"
#include "daemon/engine/decide/decision.h"
#include "daemon/engine/decide/doomed.h"
#include "daemon/engine/decide/moving.h"
#include "daemon/engine/decide/relaunch.h"

static struct decision move(enum run_state to, enum cause cause, const char *text)
{
	return (struct decision){
		.kind = DECISION_MOVE, .to = to, .cause = cause, .exit_code = -1, .text = text
	};
}

/* Has the scheduler said, later than `since_ms`, that it does not know the job? */
static bool missing_since(const struct facts *f, int64_t since_ms)
{
	return f->seen == NULL && f->poll_ms > since_ms;
}

/* A call whose answer was "not now" may be made again after RECHECK_MS. */
static bool call_due(const struct call *call, int64_t now_ms, int64_t *at_ms)
{
	if (call->state == CALL_NONE)
		return true;
	if (call->state == CALL_OPEN) {
		*at_ms = INT64_MAX;
		return false;
	}
	*at_ms = call->reply_ms + RECHECK_MS;
	return now_ms >= *at_ms;
}

static struct decision call_or_wait(enum decision_kind kind, const struct facts *f,
				    const struct call *call, int64_t now_ms)
{
	int64_t at_ms = 0;

	return call_due(call, now_ms, &at_ms) ? decide(kind, f) : wait_until(at_ms);
}

/* --- ending an attempt ------------------------------------------------------------------------ */

/* Also when a hold was taken back before the attempt had ended: it was told to end, and does. */
static bool must_end(const struct facts *f)
{
	return f->wanted != ORDER_RUN || f->state == RUN_STOPPING;
}

/* Until when lbrun's record of a job that is over is waited for, and what its spool holds besides.
 * While Slurm still ends it, lbrun may still be at work; on a node that failed there is nobody to
 * wait for. */
static int64_t record_due_ms(const struct facts *f)
{
	bool may_work = f->a->claimed && f->seen->phase == JOB_ENDING &&
			f->seen->cause != CAUSE_NODE_FAIL;
	int64_t due_ms = f->a->ended_ms + (may_work ? ENDING_MS : EXIT_GRACE_MS);
	int64_t told_ms = f->a->has_exit ? f->a->exit_seen_ms + EXIT_GRACE_MS : 0;

	return told_ms > due_ms ? told_ms : due_ms;
}

static bool is_over(const struct facts *f)
{
	return f->seen && f->seen->phase >= JOB_ENDING;
}

/* lbrun's record counts for more than the scheduler's word also where its spool cannot be read. */
static bool has_record(const struct facts *f, int64_t now_ms)
{
	return f->exited ||
	       (is_over(f) && f->a->has_exit && !f->a->has_more && now_ms >= record_due_ms(f));
}

/* A person wants the end, and the attempt still stands. */
static struct decision stop_running(const struct facts *f, const struct policy *policy,
				    int64_t now_ms)
{
	bool now = f->wanted == ORDER_KILL_NOW;
	int64_t grace_ms = f->wanted <= ORDER_STOP ? policy->stop_grace_ms : policy->kill_grace_ms;
	int64_t cancel_ms;

	if (f->a->signalled == 0 || f->wanted > f->a->ordered) {
		struct decision d = decide(DECISION_SIGNAL, f);

		d.signo = now ? SIGQUIT : SIGTERM;
		return d;
	}
	cancel_ms = f->a->signal.made_ms + (now ? QUIT_GRACE_MS : grace_ms + RECHECK_MS);
	if (now_ms < cancel_ms)
		return wait_until(cancel_ms);
	return call_or_wait(DECISION_CANCEL, f, &f->a->cancel, now_ms);
}

static struct decision stop_job(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	if (f->state != RUN_STOPPING)
		return move(RUN_STOPPING, CAUSE_NONE, "asked to end");
	if (has_record(f, now_ms))
		return f->a->exit.cause == CAUSE_COMPLETED
			       ? end_by_record(f)
			       : attempt_end(CAUSE_KILLED, f->a->exit.text);
	if (is_over(f)) {
		/* its lbrun may be about to write its record; what it says is worth a moment */
		if (f->a->claimed && now_ms < record_due_ms(f))
			return wait_until(record_due_ms(f));
		return f->a->has_more ? wait_for_news() : attempt_end(CAUSE_KILLED, f->seen->state);
	}
	if (missing_since(f, f->a->watching_since_ms) && !f->a->claimed)
		return attempt_end(CAUSE_KILLED, "the scheduler does not know the job");
	if (missing_since(f, f->a->watching_since_ms) && now_ms > f->a->heard_ms + LOST_MS)
		return attempt_end(CAUSE_KILLED,
				   "the scheduler does not know the job, and it is silent");
	if (f->a->claimed)
		return stop_running(f, policy, now_ms);
	return call_or_wait(DECISION_CANCEL, f, &f->a->cancel, now_ms);
}

/* --- one function per attempt state ----------------------------------------------------------- */

static struct decision after_attempt(const struct facts *f, const struct policy *policy)
{
	/* While lbd was away a hold came and went: what it interrupted goes on. */
	bool was_held = f->a->cause == CAUSE_KILLED && f->a->has_exit &&
			f->a->exit.switched == ORDER_HOLD;
	struct relaunch_facts r = {
		.cause = f->a->cause,
		.exit_code = f->a->exit_code,
		.blame_run = f->a->blame_run,
		.is_final = f->a->is_final,
		.token = f->a->job.token,
		.ever_trained = f->ever_trained,
		.in_vain = f->in_vain,
		.failures = f->failures,
	};
	struct relaunch next = relaunch_decide(&r, policy);
	struct decision d = move(next.to, f->a->cause, next.text);

	if (was_held)
		return move(RUN_HELD, f->a->cause, "it was on hold by a switch");
	d.backoff_ms = next.backoff_ms;
	return d;
}

/* The attempt that has just ended has done the work: orders come too late. A run that is about to
 * have another one (it was restarted) is not done. */
static bool is_done(const struct facts *f)
{
	return f->has_attempt && f->a->cause == CAUSE_COMPLETED && f->state != RUN_CREATED &&
	       f->state != RUN_BACKOFF && f->state != RUN_HELD;
}

/* A run that has begun once has waited for those before it. */
static struct decision begin(const struct facts *f)
{
	if (f->has_attempt || f->dependencies == DEPENDENCIES_MET)
		return decide(DECISION_NEW_ATTEMPT, f);
	if (f->dependencies == DEPENDENCIES_PENDING)
		return wait_for_news();
	return move(RUN_FAILED, CAUSE_LAUNCH_FAIL, f->dependencies_text);
}

/* There is no attempt, or the newest has ended. */
static struct decision without_attempt(const struct facts *f, const struct policy *policy,
				       int64_t now_ms)
{
	if (f->wanted > ORDER_HOLD && !is_done(f))
		return move(RUN_KILLED, CAUSE_KILLED, "ended on a person's order");
	if (f->wanted == ORDER_HOLD && !is_done(f) && f->state != RUN_HELD)
		return move(RUN_HELD, f->a->cause, "put on hold");
	/* a file that does not count any more may go without a word */
	if (f->wanted == ORDER_HOLD && !is_done(f))
		return f->by_switch && !f->switches_known ? wait_until(now_ms + RECHECK_MS)
							  : wait_for_news();
	switch (f->state) {
	case RUN_CREATED:
		return begin(f);
	case RUN_BACKOFF:
		if (f->backoff_left_ms > 0)
			return wait_until(now_ms + f->backoff_left_ms);
		return decide(DECISION_NEW_ATTEMPT, f);
	case RUN_HELD:
		return move(RUN_CREATED, CAUSE_NONE, "released");
	case RUN_STOPPING:
		if (!is_done(f))
			return move(RUN_HELD, f->a->cause,
				    "released while it was being put on hold");
		return after_attempt(f, policy);
	default:
		return after_attempt(f, policy);
	}
}

/* With nodes excluded that may be why, unless lbd itself did not ask: the next attempt is tried
 * with one less. */
static struct decision end_by_refusal(const struct facts *f)
{
	struct decision d = attempt_end(CAUSE_LAUNCH_FAIL, f->a->call_text);

	d.has_no_eligible_node = f->excludes && !f->a->is_unfit;
	d.blame_run = !d.has_no_eligible_node;
	return d;
}

/* What stands in the way now of a run that was taken before, a reservation that is over or a
 * partition that is gone, is for people to put right, and until they do the run waits with the
 * scheduler's words; unless restart.policy says how often is enough. */
static bool may_be_taken_again(const struct facts *f, const struct policy *policy)
{
	return f->was_taken && f->state == RUN_SUBMITTING && !f->excludes && !f->a->is_unfit &&
	       (!policy->rules || policy->rules[CAUSE_LAUNCH_FAIL] == SPEC_RULE_AUTO);
}

/* What is not taken now, for a limit say, may not be for days, and each question is an error in the
 * scheduler's log: the longer it lasts, the more seldom. */
static struct decision submit_again(const struct facts *f, int64_t least_ms, int64_t now_ms)
{
	const struct call *c = &f->a->submit;
	int64_t pause_ms = (c->reply_ms - f->a->watching_since_ms) / 10;

	if (pause_ms > RECHECK_LONG_MS)
		pause_ms = RECHECK_LONG_MS;
	if (pause_ms < least_ms)
		pause_ms = least_ms;
	return now_ms < c->reply_ms + pause_ms ? wait_until(c->reply_ms + pause_ms)
					       : decide(DECISION_SUBMIT, f);
}

static struct decision ask_again(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	int64_t first_ms = policy->backoff_first_ms;

	if (f->wanted != ORDER_RUN)
		return attempt_end(CAUSE_KILLED, "before it was submitted");
	return submit_again(f, first_ms > RECHECK_MS ? first_ms : RECHECK_MS, now_ms);
}

/* The token is in the ledger; whether the scheduler knows it is the question. */
static struct decision intent(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	int64_t since_ms = f->a->submit.state == CALL_UNCLEAR ? f->a->submit.reply_ms
							      : f->a->watching_since_ms;
	struct decision d = decide(DECISION_ADOPT, f);

	if (f->seen) {
		d.job = f->seen->ref;
		return d;
	}
	switch (f->a->submit.state) {
	case CALL_OPEN:
		return wait_for_news();
	case CALL_OK:
		d.job = f->a->submitted;
		return d;
	case CALL_REFUSED:
		return may_be_taken_again(f, policy) ? ask_again(f, policy, now_ms)
						     : end_by_refusal(f);
	default:
		break;
	}
	if (f->a->submit.state == CALL_DOWN || (f->a->submit.state == CALL_NONE && f->a->fresh)) {
		if (f->wanted != ORDER_RUN)
			return attempt_end(CAUSE_KILLED, "before it was submitted");
		return f->a->submit.state == CALL_DOWN ? submit_again(f, RECHECK_MS, now_ms)
						       : decide(DECISION_SUBMIT, f);
	}
	/* Unclear, here or in the life of an earlier lbd. The job is held, so a late one can do no
	 * harm: it is cancelled on sight, and a new token takes over. */
	if (!missing_since(f, since_ms + SETTLE_MS))
		return wait_for_news();
	return attempt_end(f->wanted == ORDER_RUN ? CAUSE_LAUNCH_FAIL : CAUSE_KILLED,
			   "the submission never arrived");
}

static struct decision held(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	if (must_end(f))
		return stop_job(f, policy, now_ms);
	/* The claim proves that an earlier lbd released it, whatever became of the job since. */
	if (f->a->release.state == CALL_OK || f->a->claimed)
		return decide(DECISION_RELEASED, f);
	if (is_never_to_start(f))
		return end_doomed();
	if (f->seen && f->seen->phase >= JOB_ENDING)
		return end_by_scheduler(f);
	if (f->a->is_unfit) /* the job, still held, is cancelled as a ghost */
		return end_by_refusal(f);
	if (f->seen && f->seen->phase != JOB_HELD && f->a->release.state != CALL_OPEN)
		return decide(DECISION_RELEASED, f);
	if (missing_since(f, f->a->watching_since_ms + SETTLE_MS) && may_be_doomed(f))
		return end_maybe_doomed(f);
	/* That, too, it says of a job that ended meanwhile: how, the next poll tells. */
	if (f->a->release.state == CALL_GONE && !missing_since(f, f->a->release.reply_ms))
		return wait_for_news();
	if (f->a->release.state == CALL_GONE)
		return attempt_end(CAUSE_LAUNCH_FAIL, "the scheduler lost the job it had accepted");
	if (missing_since(f, f->a->watching_since_ms + SETTLE_MS))
		return attempt_end(CAUSE_LAUNCH_FAIL, "the scheduler lost the job it had accepted");
	return call_or_wait(DECISION_RELEASE, f, &f->a->release, now_ms);
}

/* With what is left the scheduler can never start it, and then even holds it; or not now, while
 * nodes stand idle that it keeps away from. A node that is mistrusted is better than none for
 * hours. */
static bool has_no_eligible_node(const struct facts *f, int64_t now_ms)
{
	bool may_be = f->excludes && f->a->state == ATTEMPT_QUEUED && f->seen &&
		      (f->seen->phase == JOB_PENDING || f->seen->phase == JOB_HELD);
	bool waits_long = now_ms >= f->a->watching_since_ms + f->patience_ms;

	return may_be && (strcmp(f->seen->reason, "BadConstraints") == 0 ||
			  (waits_long && f->seen->idle_excluded > 0));
}

/* The job, still pending, is cancelled as a ghost; the next attempt keeps away from one node
 * less. */
static struct decision end_no_eligible_node(const struct facts *f)
{
	struct decision d = attempt_end(CAUSE_LAUNCH_FAIL,
					f->seen->idle_excluded > 0
						? "it waited while nodes to be avoided are idle"
						: "no node is left outside of those to be avoided");

	d.has_no_eligible_node = true;
	return d;
}

/* A run that has trained does with fewer nodes when not all of them become free: some are lost, or
 * others have them. The same request is not made twice. */
static bool may_ask_for_fewer(const struct facts *f, const struct policy *policy)
{
	static const char *const reasons[] = { "Resources", "Priority", "ReqNodeNotAvail",
					       "NodeDown" };

	if (!policy->may_do_with_fewer || f->asks_fewer || !f->ever_trained || !f->seen ||
	    f->a->state != ATTEMPT_QUEUED || f->a->claimed || f->seen->phase != JOB_PENDING)
		return false;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(f->seen->reason, reasons[i]) == 0)
			return true;
	return false;
}

/* The job, still pending, is cancelled as a ghost. */
static struct decision fewer(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	bool waits_for_own = f->a->was_moved && policy->fewer_after_ms < GROW_SETTLE_MS;
	int64_t at_ms = f->a->watching_since_ms +
			(waits_for_own ? GROW_SETTLE_MS : policy->fewer_after_ms);
	struct decision d = attempt_end(
		CAUSE_LAUNCH_FAIL,
		"too few nodes became free; the next attempt takes fewer, down to "
		"restart.min_nodes");

	d.is_short = true;
	return now_ms < at_ms ? wait_until(at_ms) : d;
}

/* Slurm forgets what it had not saved when it died, a release, too; of an array tasks may have
 * begun in that moment, others are held ever after. Where the controller is the one that took the
 * job, or the job was seen to wait after its release, somebody else holds it, and it stays so. */
static bool is_release_forgotten(const struct facts *f)
{
	bool may_be = f->a->state == ATTEMPT_QUEUED || f->is_array;

	return may_be && f->seen && f->seen->phase == JOB_HELD && !f->a->was_waiting &&
	       f->seen->controller_start >= f->a->job.submit_time &&
	       f->a->release.state != CALL_REFUSED && f->poll_ms > f->a->watching_since_ms &&
	       f->poll_ms > f->a->release.reply_ms;
}

/* Its lbrun has begun, and it waits again: an administrator requeued it, or the controller died
 * before it had saved the start, and tells the node to end what it runs as soon as the node speaks
 * to it. Its next start would find the claim taken and end at once; a new attempt need not wait for
 * that. */
static bool is_back_in_line(const struct facts *f)
{
	return f->a->claimed && f->seen && f->seen->phase < JOB_RUNNING && f->a->ended_ms > 0;
}

static struct decision back_in_line(const struct facts *f, int64_t now_ms)
{
	if (!f->exited && now_ms < f->a->ended_ms + ENDING_MS)
		return wait_until(f->a->ended_ms + ENDING_MS);
	return attempt_end(
		CAUSE_PREEMPTED,
		f->seen->restart_count > 0
			? "somebody requeued the job"
			: "Slurm's controller died, and forgot that it had started the job");
}

/* lbrun's record says why it ended, and not only Slurm can. */
static bool is_clear(const struct attempt_exit *exit)
{
	return exit->cause != CAUSE_LOST && !exit->is_unclear;
}

/* The scheduler does not say why a task of an array ended, and its lbrun does not know. */
static bool has_doubtful_task(const struct facts *f, int64_t now_ms)
{
	bool is_told = f->a->recall.state == CALL_OK && !f->a->recalled.is_more;

	return f->is_array && !is_told && (f->exited || now_ms >= record_due_ms(f));
}

/* Cancelled, and nothing proves that a person did it: accounting may know the name. It may not have
 * heard of it yet; that it cannot be asked is known at once. */
static bool may_know_who(const struct facts *f, int64_t now_ms, struct decision *d)
{
	int64_t until_ms = f->a->ended_ms + WHO_MS, again_ms = f->a->recall.reply_ms + RECHECK_MS;
	bool is_unclear = is_over(f) && (!f->exited || !is_clear(&f->a->exit));
	bool is_doubtful = is_unclear && (is_nobodys_cancel(f) ? !f->a->recalled.has_canceller
							       : has_doubtful_task(f, now_ms));

	if (!is_doubtful || !f->may_recall || now_ms >= until_ms ||
	    f->a->recall.state == CALL_DOWN || f->a->recall.state == CALL_REFUSED)
		return false;
	if (f->a->recall.state == CALL_OPEN)
		*d = wait_until(until_ms);
	else if (f->a->recall.state != CALL_NONE && now_ms < again_ms)
		*d = wait_until(again_ms < until_ms ? again_ms : until_ms);
	else
		*d = decide(DECISION_RECALL, f);
	return true;
}

/* Tasks of an array are about to leave their nodes, cancelled. Which record stands for all of them
 * is known behind that: of one that still waited there is proof that a person did it. */
static bool is_leaving(const struct facts *f, int64_t now_ms)
{
	return f->is_array && f->seen && f->seen->phase == JOB_ENDING && is_nobodys_cancel(f) &&
	       now_ms < f->a->ended_ms + ENDING_MS;
}

/* Claimed, and the scheduler knows it no longer; lbrun has left no word, or "lost". What accounting
 * says comes third, and is worth a moment; without it the job may still live where nobody sees
 * it. */
static struct decision forgotten(const struct facts *f, int64_t silent_ms, int64_t now_ms)
{
	int64_t ask_ms = f->a->recall.state == CALL_NONE ? now_ms
							 : f->a->recall.reply_ms + RECALL_MS;
	int64_t lost_ms = silent_ms + LOST_MS + 1;
	bool is_remembered = f->a->recalled.cause != CAUSE_NONE;

	if (is_remembered && f->exited)
		return end_by_record(f);
	if (is_remembered && now_ms >= silent_ms + EXIT_GRACE_MS)
		return f->a->has_exit ? end_by_record(f) : end_by_accounting(f);
	if (is_remembered)
		return wait_until(silent_ms + EXIT_GRACE_MS);
	if (f->may_recall && f->a->recall.state == CALL_OPEN && now_ms < lost_ms)
		return wait_until(lost_ms);
	if (f->may_recall && now_ms >= ask_ms && now_ms < lost_ms)
		return decide(DECISION_RECALL, f);
	if (f->exited || (f->a->has_exit && now_ms >= lost_ms))
		return end_by_record(f);
	if (now_ms >= lost_ms)
		return attempt_end(CAUSE_LOST,
				   "the scheduler does not know the job, and it is silent");
	return wait_until(f->may_recall && ask_ms < lost_ms ? ask_ms : lost_ms);
}

/* Released, and not over as far as lbrun has said. */
static struct decision released(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	int64_t silent_ms = f->a->heard_ms > f->a->watching_since_ms ? f->a->heard_ms
								     : f->a->watching_since_ms;
	struct decision ask;

	if (f->a->state == ATTEMPT_QUEUED &&
	    (f->a->claimed || (f->seen && f->seen->phase == JOB_RUNNING)))
		return decide(DECISION_START, f);
	if (has_no_eligible_node(f, now_ms))
		return end_no_eligible_node(f);
	if (is_never_to_start(f))
		return end_doomed();
	if (f->a->unheard.since_ms > 0 && !f->a->has_exit)
		return end_unheard_host(f, silent_ms, now_ms);
	if (is_leaving(f, now_ms))
		return wait_until(f->a->ended_ms + ENDING_MS);
	if (may_know_who(f, now_ms, &ask))
		return ask;
	if (has_record(f, now_ms) && (is_clear(&f->a->exit) || is_over(f)))
		return end_by_record(f);
	if (is_over(f)) {
		if (now_ms < record_due_ms(f))
			return wait_until(record_due_ms(f));
		return f->a->has_more ? wait_for_news() : end_by_scheduler(f);
	}
	if (is_back_in_line(f))
		return back_in_line(f, now_ms);
	if (f->lost_host && f->a->claimed && f->seen)
		return end_lost_host(f, silent_ms, now_ms);
	if (f->a->is_let_go || is_release_forgotten(f))
		return call_or_wait(DECISION_RELEASE, f, &f->a->release, now_ms);
	if (f->seen && f->excludes && f->seen->idle_excluded > 0 && f->a->state == ATTEMPT_QUEUED &&
	    now_ms < f->a->watching_since_ms + f->patience_ms)
		return wait_until(f->a->watching_since_ms + f->patience_ms);
	if (may_ask_for_fewer(f, policy))
		return fewer(f, policy, now_ms);
	if (may_leave(f))
		return leave(f, policy, now_ms);
	if (may_grow(f, policy))
		return grow(f, policy, now_ms);
	if (f->seen || !missing_since(f, f->a->watching_since_ms))
		return wait_for_news();
	if (f->a->claimed)
		return forgotten(f, silent_ms, now_ms);
	if (missing_since(f, f->a->watching_since_ms + CONFIRM_MS) && may_be_doomed(f))
		return end_maybe_doomed(f);
	if (missing_since(f, f->a->watching_since_ms + CONFIRM_MS))
		return attempt_end(CAUSE_LAUNCH_FAIL,
				   "the scheduler lost the job before it started");
	return wait_until(now_ms + RECHECK_MS);
}

/* A switch is an order like any other: once seen it stands in the ledger, whatever becomes of the
 * file; only a hold ends with it. */
static bool may_obey(const struct facts *f, enum run_order *order)
{
	bool is_let_go = f->wanted == ORDER_HOLD && f->by_switch && f->switches_known &&
			 f->switched == ORDER_RUN;

	*order = f->switched;
	return f->switched > f->wanted || is_let_go;
}

struct decision reconcile(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	struct decision d = decide(DECISION_OBEY, f);

	if (run_state_is_final(f->state))
		return wait_for_news();
	if (may_obey(f, &d.order))
		return d;
	if (!f->has_attempt || f->a->state == ATTEMPT_ENDED)
		return without_attempt(f, policy, now_ms);
	switch (f->a->state) {
	case ATTEMPT_INTENT:
		return intent(f, policy, now_ms);
	case ATTEMPT_HELD:
		return held(f, policy, now_ms);
	default:
		return must_end(f) ? stop_job(f, policy, now_ms) : released(f, policy, now_ms);
	}
}

const char *decision_name(enum decision_kind kind)
{
	/* clang-format off */
	static const char *const names[DECISION_COUNT] = {
		[DECISION_WAIT] = "wait", [DECISION_OBEY] = "obey",
		[DECISION_NEW_ATTEMPT] = "new_attempt",
		[DECISION_SUBMIT] = "submit", [DECISION_ADOPT] = "adopt",
		[DECISION_RELEASE] = "release", [DECISION_RELEASED] = "released",
		[DECISION_START] = "start", [DECISION_SIGNAL] = "signal",
		[DECISION_CANCEL] = "cancel",
		[DECISION_RECALL] = "recall", [DECISION_ASK_ROOM] = "ask_room", [DECISION_GROW] = "grow",
		[DECISION_SAVE] = "save", [DECISION_LEAVE] = "leave",
		[DECISION_END] = "end", [DECISION_MOVE] = "move",
	};
	/* clang-format on */

	return names[kind];
}
