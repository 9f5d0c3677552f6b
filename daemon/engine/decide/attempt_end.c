/* SPDX-License-Identifier: MIT */
/* attempt_end.c - how an attempt ended, by lbrun's own record, by the scheduler, or by
 * accounting. */
#include "daemon/engine/decide/attempt_end.h"

#include <string.h>

#include "daemon/engine/decide/canceller.h"
#include "daemon/engine/decide/decision.h"

struct decision attempt_end(enum cause cause, const char *text)
{
	return (struct decision){
		.kind = DECISION_END, .cause = cause, .exit_code = -1, .text = text
	};
}

/* Did a person cancel the job, so that the run is over for good? lbd did not. */
static bool is_users_cancel(const struct facts *f)
{
	const struct recalled *r = &f->a->recalled;
	struct cancelled c = {
		.had_nodes = r->had_nodes,
		.claimed = f->a->claimed,
		.start_time = r->start_time,
		.end_time = r->end_time,
		.has_uid = r->has_canceller,
		.uid = r->canceller,
		.node_uid = f->node_uid,
		.just_heard = f->a->ended_ms < f->heard_since_ms + 1000 * LAUNCH_WINDOW_S,
	};

	if (f->seen) {
		c.had_nodes = job_nodes(f->seen)[0] != '\0';
		c.submit_time = f->seen->ref.submit_time;
		c.start_time = f->seen->start_time;
		c.controller_start = f->seen->controller_start;
		c.end_time = f->seen->end_time;
	}
	return canceller_is_user(&c);
}

static const char nobodys_cancel[] =
	"Slurm cancelled the job, and nobody is known to have wanted that";
static const char not_begun[] = "Slurm cancelled the job before its script began: mostly its node "
				"could not start it, as its prolog failed";

/* The scheduler's word for the end, but that a cancellation counts as a person's only with
 * proof. */
static enum cause scheduler_cause(const struct facts *f)
{
	enum cause cause = f->seen ? f->seen->cause : f->a->recalled.cause;
	bool is_of_some = !f->seen && f->a->recalled.is_more; /* of an array's tasks */

	return cause == CAUSE_KILLED && (is_of_some || !is_users_cancel(f)) ? CAUSE_LOST : cause;
}

bool is_nobodys_cancel(const struct facts *f)
{
	enum cause cause = f->seen ? f->seen->cause : f->a->recalled.cause;

	return cause == CAUSE_KILLED && scheduler_cause(f) != CAUSE_KILLED;
}

/* Of a node's failure that was none. */
static bool has_lost_partition(const struct facts *f)
{
	return f->seen && f->seen->cause == CAUSE_NODE_FAIL &&
	       strcmp(f->seen->reason, "PartitionDown") == 0;
}

static const char no_partition[] =
	"Slurm ended the job because its partition was removed, which it calls a node's failure";

struct decision end_by_record(const struct facts *f)
{
	enum cause cause = f->a->exit.cause;
	enum cause other = scheduler_cause(f);
	bool scheduler_knows = cause == CAUSE_LOST && other != CAUSE_COMPLETED &&
			       other != CAUSE_NONE;
	struct decision d;

	if (scheduler_knows)
		cause = other;
	/* whatever had failed before: people do not cancel an array to have it run again */
	if (f->is_array && other == CAUSE_KILLED && cause != CAUSE_COMPLETED)
		return attempt_end(CAUSE_KILLED, "the array was cancelled in Slurm");
	d = attempt_end(cause, cause == CAUSE_LOST && is_nobodys_cancel(f) ? nobodys_cancel
									   : f->a->exit.text);
	d.exit_code = f->a->exit.exit_code;
	d.signal = f->a->exit.signal;
	d.blame_run = !scheduler_knows && !f->a->exit.is_node;
	d.is_final = f->a->exit.is_final;
	if (scheduler_knows && has_lost_partition(f)) {
		d.blame_run = true;
		d.text = no_partition;
	}
	return d;
}

/* Only lbrun can say that a run is completed: a job that ended well without its record never got as
 * far as a trainer, or nobody knows how far. */
static struct decision end_by_word(const struct facts *f, const char *state)
{
	static const char silent[] = "lbrun, which watches the trainer in its job, was killed or "
				     "died before it could write down why";
	static const char wordless[] = "a task left no word: it died, or was cancelled in Slurm "
				       "while no lbd could see that";
	enum cause cause = scheduler_cause(f);

	if (f->a->claimed && (cause == CAUSE_CRASH || cause == CAUSE_ERROR))
		state = f->is_array ? wordless : silent;
	if (f->is_array && cause == CAUSE_COMPLETED)
		state = wordless;
	if (is_nobodys_cancel(f))
		state = f->a->claimed ? nobodys_cancel : not_begun;
	if (cause == CAUSE_COMPLETED || cause == CAUSE_NONE || is_nobodys_cancel(f))
		cause = f->a->claimed ? CAUSE_LOST : CAUSE_LAUNCH_FAIL;
	return attempt_end(cause, state);
}

/* Slurm's word for most of what goes wrong on the node before the script begins. */
static const char not_launched[] =
	"FAILED (JobLaunchFailure): the node could not begin the batch script; mostly the folder "
	"of its output file (--output, --error) is not there";

static const char *scheduler_word(const struct facts *f)
{
	const struct job_status *seen = f->seen;

	if (f->a->claimed || seen->cause != CAUSE_LAUNCH_FAIL)
		return seen->state;
	if (strcmp(seen->state, "FAILED") == 0 && strcmp(seen->reason, "JobLaunchFailure") == 0)
		return not_launched;
	/* lbd's own scheduler has a sentence; Slurm's reasons are words */
	return strchr(seen->reason, ' ') ? seen->reason : seen->state;
}

struct decision end_by_scheduler(const struct facts *f)
{
	struct decision d = end_by_word(f,
					has_lost_partition(f) ? no_partition : scheduler_word(f));

	d.blame_run = has_lost_partition(f);
	d.exit_code = f->seen->exit_code;
	d.signal = f->seen->signal;
	return d;
}

struct decision end_by_accounting(const struct facts *f)
{
	struct decision d = end_by_word(f, f->a->recalled.state);

	d.exit_code = f->a->recalled.exit_code;
	d.signal = f->a->recalled.signal;
	return d;
}

/* --- the node of lbrun ------------------------------------------------------------------------ */

static struct decision end_host(const struct facts *f, int64_t at_ms, const char *text,
				int64_t now_ms)
{
	struct decision d = attempt_end(CAUSE_NODE_FAIL, text);

	d.is_host = true;
	d.job = f->a->job;
	return now_ms < at_ms ? wait_until(at_ms) : d;
}

struct decision end_lost_host(const struct facts *f, int64_t silent_ms, int64_t now_ms)
{
	return end_host(f, silent_ms + ENDING_MS,
			"the job lost the node of its lbrun, and kept its other nodes", now_ms);
}

/* An lbrun that lives hears that its ranks end, and writes that down: after all a moment is for its
 * file system. One that was silent for other reasons ends by the claim of the next attempt. */
struct decision end_unheard_host(const struct facts *f, int64_t silent_ms, int64_t now_ms)
{
	const struct host_unheard *u = &f->a->unheard;
	int64_t told_ms = u->since_ms + EXIT_GRACE_MS, at_ms = silent_ms + u->limit_ms;

	return end_host(f, told_ms > at_ms ? told_ms : at_ms, u->text, now_ms);
}
