/* SPDX-License-Identifier: MIT */
/* test_reconcile.c - the ladder of a submission and every way an attempt can end, as a table of
 * facts and the decision they must give. */
#include <signal.h>
#include <string.h>

#include "tests/unit/reconcile_facts.h"

static const struct job_status held_job = { .ref = { .job_id = 7 }, .phase = JOB_HELD };
static const struct job_status pending_job = { .ref = { .job_id = 7 }, .phase = JOB_PENDING };
static const struct job_status doomed_job = { .ref = { .job_id = 7 },
					      .phase = JOB_PENDING,
					      .reason = "DependencyNeverSatisfied" };
static const struct job_status doomed_and_cancelled = {
	.phase = JOB_ENDED,
	.cause = CAUSE_LAUNCH_FAIL,
	.reason = "DependencyNeverSatisfied",
};
static const struct job_status idle_beside_job = {
	.ref = { .job_id = 7 }, .phase = JOB_PENDING, .reason = "Resources", .idle_excluded = 1
};
static const struct job_status held_after_restart = { .ref = { .job_id = 7 },
						      .phase = JOB_HELD,
						      .controller_start = 5000 };
static const struct job_status running_job = { .ref = { .job_id = 7 }, .phase = JOB_RUNNING };
static const struct job_status requeued_job = { .ref = { .job_id = 7 },
						.phase = JOB_PENDING,
						.restart_count = 1 };
static const struct job_status failed_node = { .phase = JOB_ENDED, .cause = CAUSE_NODE_FAIL };
static const struct job_status done_job = { .phase = JOB_ENDED, .cause = CAUSE_COMPLETED };
static const struct job_status ending_job = { .phase = JOB_ENDING, .cause = CAUSE_TIMEOUT };
/* While it waited, under a controller that was started at 5000: it may have forgotten that it had
 * given the job nodes, and have cancelled it when a node gave up. */
#define CANCELLED_IN_LINE(SUBMITTED, ENDED) \
	{ \
		.ref = { .job_id = 7, .submit_time = (SUBMITTED) }, .phase = JOB_ENDED, \
		.cause = CAUSE_KILLED, .start_time = (ENDED), .end_time = (ENDED), \
		.controller_start = 5000, \
	}
static const struct job_status cancelled_after_restart = CANCELLED_IN_LINE(4000, 5002);
static const struct job_status cancelled_before_restart = CANCELLED_IN_LINE(4000, 4500);
static const struct job_status cancelled_long_after_restart = CANCELLED_IN_LINE(4000, 5600);
static const struct job_status submitted_after_restart = CANCELLED_IN_LINE(5001, 5002);
/* Slurm cancels what a node does not take, within moments of its start. */
static const struct job_status cancelled_on_its_node = {
	.phase = JOB_ENDED,
	.cause = CAUSE_KILLED,
	.nodes = "n1",
	.start_time = 5000,
	.end_time = 5002,
};
static const struct job_status cancelled_and_leaving = { .phase = JOB_ENDING,
							 .cause = CAUSE_KILLED,
							 .nodes = "n1",
							 .start_time = 5000,
							 .end_time = 5001 };
static const struct job_status cancelled_late = {
	.phase = JOB_ENDED,
	.cause = CAUSE_KILLED,
	.nodes = "n1",
	.start_time = 5000,
	.end_time = 5600,
};

/* clang-format off */
static const struct {
	const char *when;
	struct known known;
	enum decision_kind kind;
	int detail; /* as detail_of() */
} cases[] = {
	/* a new run */
	{ "created", { .f.state = RUN_CREATED }, DECISION_NEW_ATTEMPT, 0 },
	{ "killed before it began", { .f.state = RUN_CREATED, .f.wanted = ORDER_KILL },
	  DECISION_MOVE, RUN_KILLED },
	{ "final", { .f.state = RUN_FAILED }, DECISION_WAIT, 0 },

	/* runs that follow runs */
	{ "behind another", { .f.state = RUN_CREATED, .f.dependencies = DEPENDENCIES_PENDING }, DECISION_WAIT, 0 },
	{ "behind one that did not complete", { .f.state = RUN_CREATED, .f.dependencies = DEPENDENCIES_BROKEN,
	  .f.dependencies_text = "run.after_ok: a is failed" }, DECISION_MOVE, RUN_FAILED },
	{ "killed while it waits", { .f.state = RUN_CREATED, .f.dependencies = DEPENDENCIES_PENDING, .f.wanted = ORDER_KILL },
	  DECISION_MOVE, RUN_KILLED },
	{ "held while it waits", { .f.state = RUN_CREATED, .f.dependencies = DEPENDENCIES_PENDING, .f.wanted = ORDER_HOLD },
	  DECISION_MOVE, RUN_HELD },
	{ "a run that has begun once waits no more", { ATTEMPT(RUN_CREATED, ATTEMPT_ENDED),
	  .a.cause = CAUSE_ERROR, .f.dependencies = DEPENDENCIES_PENDING }, DECISION_NEW_ATTEMPT, 0 },

	/* a job that lost the node of its lbrun, and has others */
	{ "the node of its lbrun left the job", { RUNNING, .f.seen = &running_job, .f.lost_host = true },
	  DECISION_END, CAUSE_NODE_FAIL },
	{ "its lbrun spoke a moment ago", { RUNNING, .f.seen = &running_job, .f.lost_host = true,
	  .a.heard_ms = NOW - 1 }, DECISION_WAIT, 0 },
	{ "or said how it ended", { RUNNING, .f.seen = &running_job, .f.lost_host = true, .f.exited = true,
	  .a.exit.cause = CAUSE_ERROR }, DECISION_END, CAUSE_ERROR },

	/* a job whose other nodes do not hear that node */
	{ "the others say so", { RUNNING, .f.seen = &running_job, UNHEARD(NOW - EXIT_GRACE_MS) }, DECISION_END,
	  CAUSE_NODE_FAIL },
	{ "a moment ago", { RUNNING, .f.seen = &running_job, UNHEARD(NOW - EXIT_GRACE_MS + 1) }, DECISION_WAIT, 0 },
	{ "and lbrun spoke a moment ago", { RUNNING, .f.seen = &running_job, UNHEARD(NOW - EXIT_GRACE_MS),
	  .a.heard_ms = NOW - LIMIT_MS + 1 }, DECISION_WAIT, 0 },
	{ "lbrun has said how it ended", { RUNNING, .f.seen = &running_job, UNHEARD(NOW - EXIT_GRACE_MS),
	  .f.exited = true, .a.has_exit = true, .a.exit.cause = CAUSE_ERROR }, DECISION_END, CAUSE_ERROR },
	{ "the job was cancelled for that, and lbd died before it had said so", { RUNNING, .f.seen = &cancelled_job,
	  .a.ended_ms = NOW, UNHEARD(NOW - EXIT_GRACE_MS) }, DECISION_END, CAUSE_NODE_FAIL },
	{ "it is to end", { STOPPING, .f.seen = &running_job, UNHEARD(NOW - EXIT_GRACE_MS), .a.has_exit = false },
	  DECISION_SIGNAL, 15 },

	/* switch files: recorded first, whatever else is due */
	{ "created, switched off", { .f.state = RUN_CREATED, .f.switched = ORDER_KILL }, DECISION_OBEY,
	  ORDER_KILL },
	{ "created, held by a switch", { .f.state = RUN_CREATED, .f.switched = ORDER_HOLD }, DECISION_OBEY,
	  ORDER_HOLD },
	{ "about to be submitted", { SUBMITTING, .a.fresh = true, .f.switched = ORDER_KILL },
	  DECISION_OBEY, ORDER_KILL },
	{ "about to be released", { HELD, .f.seen = &held_job, .f.switched = ORDER_STOP }, DECISION_OBEY,
	  ORDER_STOP },
	{ "waiting in the queue", { QUEUED, .f.seen = &pending_job, .f.switched = ORDER_KILL },
	  DECISION_OBEY, ORDER_KILL },
	{ "running", { RUNNING, .f.seen = &running_job, .f.switched = ORDER_KILL }, DECISION_OBEY,
	  ORDER_KILL },
	{ "backing off", { ATTEMPT(RUN_BACKOFF, ATTEMPT_ENDED), .a.cause = CAUSE_CRASH,
			   .f.backoff_left_ms = 60000, .f.switched = ORDER_KILL }, DECISION_OBEY,
			   ORDER_KILL },
	{ "on hold", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD, .f.switched = ORDER_KILL },
	  DECISION_OBEY, ORDER_KILL },
	{ "a stop becomes a kill", { STOPPING, .f.wanted = ORDER_STOP, .f.switched = ORDER_KILL },
	  DECISION_OBEY, ORDER_KILL },
	{ "a weaker switch changes nothing", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD,
					       .f.switched = ORDER_HOLD }, DECISION_WAIT, 0 },
	{ "nor one after the end", { .f.state = RUN_COMPLETED, .f.switched = ORDER_KILL },
	  DECISION_WAIT, 0 },
	{ "recorded once", { .f.state = RUN_CREATED, .f.wanted = ORDER_KILL, .f.switched = ORDER_KILL },
	  DECISION_MOVE, RUN_KILLED },
	{ "a kill stands when its switch is gone", { .f.state = RUN_CREATED, .f.wanted = ORDER_KILL,
	    .f.by_switch = true, .f.switches_known = true }, DECISION_MOVE, RUN_KILLED },
	{ "a hold ends with its switch", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD, .f.by_switch = true,
					   .f.switches_known = true }, DECISION_OBEY, ORDER_RUN },
	{ "but not while nobody can look", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD,
					     .f.by_switch = true }, DECISION_WAIT, 0 },
	{ "nor one by command", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD, .f.switches_known = true },
	  DECISION_WAIT, 0 },

	{ "held by a switch while lbd was away, and let go",
	  { ENDED(CAUSE_KILLED), .a.has_exit = true, .a.exit.switched = ORDER_HOLD }, DECISION_MOVE, RUN_HELD },
	{ "killed by a switch while lbd was away",
	  { ENDED(CAUSE_KILLED), .a.has_exit = true, .a.exit.switched = ORDER_KILL }, DECISION_MOVE, RUN_KILLED },

	/* submission */
	{ "a fresh intent", { SUBMITTING, .a.fresh = true }, DECISION_SUBMIT, 0 },
	{ "a fresh intent, killed", { SUBMITTING, .a.fresh = true, .f.wanted = ORDER_KILL },
	  DECISION_END, CAUSE_KILLED },
	{ "submit open", { SUBMITTING, .a.fresh = true, .a.submit = { CALL_OPEN, NOW, 0 } },
	  DECISION_WAIT, 0 },
	{ "submit open, killed",
	  { SUBMITTING, .a.fresh = true, .f.wanted = ORDER_KILL, .a.submit = { CALL_OPEN, NOW, 0 } },
	  DECISION_WAIT, 0 },
	{ "accepted", { SUBMITTING, .a.fresh = true, .a.submit = { CALL_OK, 0, NOW } },
	  DECISION_ADOPT, 0 },
	{ "refused", { SUBMITTING, .a.fresh = true, .a.submit = { CALL_REFUSED, 0, NOW }, .a.call_text = "no" },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "refused, and it was taken before: in people's hands",
	  { SUBMITTING, .f.was_taken = true, .a.submit = { CALL_REFUSED, 0, NOW } }, DECISION_WAIT, 0 },
	{ "… so it is asked for again",
	  { SUBMITTING, .f.was_taken = true, .a.submit = { CALL_REFUSED, 0, A_MINUTE_AGO } }, DECISION_SUBMIT, 0 },
	{ "… until somebody wants its end",
	  { SUBMITTING, .f.was_taken = true, .f.wanted = ORDER_KILL, .a.submit = { CALL_REFUSED, 0, NOW } },
	  DECISION_END, CAUSE_KILLED },
	{ "… first without the nodes that it keeps away from",
	  { SUBMITTING, .f.was_taken = true, .f.excludes = true, .a.submit = { CALL_REFUSED, 0, NOW } },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "refused by its own files, for good",
	  { SUBMITTING, .f.was_taken = true, .a.is_unfit = true, .a.submit = { CALL_REFUSED, 0, NOW } },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "down, just now", { SUBMITTING, .a.fresh = true, .a.submit = { CALL_DOWN, 0, NOW } },
	  DECISION_WAIT, 0 },
	{ "down, a while ago",
	  { SUBMITTING, .a.fresh = true, .a.submit = { CALL_DOWN, 0, A_MINUTE_AGO } },
	  DECISION_SUBMIT, 0 },
	{ "down for long: more seldom", { SUBMITTING, .a.fresh = true, .a.watching_since_ms = LONG_AGO,
	    .a.submit = { CALL_DOWN, 0, NOW - RECHECK_MS } }, DECISION_WAIT, 0 },
	{ "… but each minute", { SUBMITTING, .a.fresh = true, .a.watching_since_ms = LONG_AGO,
	    .a.submit = { CALL_DOWN, 0, NOW - RECHECK_LONG_MS } }, DECISION_SUBMIT, 0 },
	{ "in people's hands for long: likewise", { SUBMITTING, .f.was_taken = true,
	    .a.watching_since_ms = LONG_AGO, .a.submit = { CALL_REFUSED, 0, NOW - RECHECK_MS } },
	  DECISION_WAIT, 0 },
	{ "unclear, asked too early",
	  { SUBMITTING, .a.fresh = true, .a.submit = { CALL_UNCLEAR, 0, NOW - 10 } },
	  DECISION_WAIT, 0 },
	{ "unclear, and never seen",
	  { SUBMITTING, .a.fresh = true, .a.submit = { CALL_UNCLEAR, 0, A_MINUTE_AGO } },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "unclear, but there it is",
	  { SUBMITTING, .a.fresh = true, .f.seen = &held_job, .a.submit = { CALL_UNCLEAR, 0, NOW } },
	  DECISION_ADOPT, 0 },
	{ "an earlier lbd's intent, not polled yet", { SUBMITTING, .f.poll_ms = 0 },
	  DECISION_WAIT, 0 },
	{ "an earlier lbd's intent, in the queue", { SUBMITTING, .f.seen = &held_job },
	  DECISION_ADOPT, 0 },
	{ "an earlier lbd's intent, nowhere", { SUBMITTING }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "an earlier lbd's intent, nowhere, killed", { SUBMITTING, .f.wanted = ORDER_KILL },
	  DECISION_END, CAUSE_KILLED },

	/* held */
	{ "held", { HELD, .f.seen = &held_job }, DECISION_RELEASE, 0 },
	{ "held, and never to be started", { HELD, .f.seen = &held_job, .a.is_unfit = true, .a.call_text = "no" },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "held, not polled yet", { HELD, .f.poll_ms = 0 }, DECISION_RELEASE, 0 },
	{ "held, killed", { HELD, .f.seen = &held_job, .f.wanted = ORDER_KILL },
	  DECISION_MOVE, RUN_STOPPING },
	{ "held, release open",
	  { HELD, .f.seen = &held_job, .a.release = { CALL_OPEN, NOW, 0 } }, DECISION_WAIT, 0 },
	{ "released", { HELD, .a.release = { CALL_OK, 0, NOW } }, DECISION_RELEASED, 0 },
	{ "released by an earlier lbd", { HELD, .f.seen = &running_job }, DECISION_RELEASED, 0 },
	{ "released by an earlier lbd, run and forgotten", { HELD, .a.claimed = true, .f.exited = true },
	  DECISION_RELEASED, 0 },
	{ "accepted, then forgotten", { HELD }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "gone when it was to be released: it may have ended",
	  { HELD, .a.release = { CALL_GONE, NOW - 9, NOW } }, DECISION_WAIT, 0 },
	{ "gone then, and not there since",
	  { HELD, .a.release = { CALL_GONE, NOW - 9, NOW - 5 } }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "cancelled by its owner while held", { HELD, .f.seen = &cancelled_job },
	  DECISION_END, CAUSE_KILLED },

	/* queued and running */
	{ "pending", { QUEUED, .f.seen = &pending_job }, DECISION_WAIT, 0 },
	{ "held, under a controller that was started since: its release was forgotten",
	  { QUEUED, .f.seen = &held_after_restart, .a.job.submit_time = 4999 }, DECISION_RELEASE, 0 },
	{ "held, under the one that took it", { QUEUED, .f.seen = &held_after_restart, .a.job.submit_time = 5001 },
	  DECISION_WAIT, 0 },
	{ "moments after its release", { QUEUED, .f.seen = &held_after_restart, .a.job.submit_time = 5001,
	  .a.fresh = true, .a.release = { CALL_OK, NOW - 9, NOW - 5 } }, DECISION_WAIT, 0 },
	{ "held, but that was before its release",
	  { QUEUED, .f.seen = &held_after_restart, .a.release = { CALL_OK, NOW - 5, NOW } },
	  DECISION_WAIT, 0 },
	{ "requeued before its lbrun began", { QUEUED, .f.seen = &requeued_job }, DECISION_WAIT, 0 },
	{ "requeued, its record is due",
	  { RUNNING, .f.seen = &requeued_job, .a.ended_ms = NOW - ENDING_MS + 1 }, DECISION_WAIT, 0 },
	{ "requeued, without a record",
	  { RUNNING, .f.seen = &requeued_job, .a.ended_ms = NOW - ENDING_MS }, DECISION_END,
	  CAUSE_PREEMPTED },
	{ "requeued, told to end by a signal",
	  { RUNNING, .f.seen = &requeued_job, .a.ended_ms = NOW, .f.exited = true, .a.exit.cause = CAUSE_LOST },
	  DECISION_END, CAUSE_PREEMPTED },
	{ "requeued, but it was done",
	  { RUNNING, .f.seen = &requeued_job, .a.ended_ms = NOW, .f.exited = true,
	    .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },
	{ "waits again, never requeued, and its lbrun was ended: its start is forgotten",
	  { RUNNING, .f.seen = &held_job, .a.ended_ms = NOW, .f.exited = true, .a.exit.cause = CAUSE_LOST },
	  DECISION_END, CAUSE_PREEMPTED },
	{ "the same, and its record is due",
	  { RUNNING, .f.seen = &pending_job, .a.ended_ms = NOW - ENDING_MS + 1 }, DECISION_WAIT, 0 },
	{ "the same, without a record", { RUNNING, .f.seen = &held_job, .a.ended_ms = NOW - ENDING_MS },
	  DECISION_END, CAUSE_PREEMPTED },
	{ "waits, said a poll from before the claim", { RUNNING, .f.seen = &pending_job },
	  DECISION_WAIT, 0 },
	{ "held by somebody else", { QUEUED, .f.seen = &held_after_restart, .a.was_waiting = true },
	  DECISION_WAIT, 0 },
	{ "an array of which some tasks had begun, and its release is forgotten",
	  { RUNNING, .f.is_array = true, .f.seen = &held_after_restart }, DECISION_RELEASE, 0 },
	{ "what is left of it was held by somebody else",
	  { RUNNING, .f.is_array = true, .f.seen = &held_after_restart, .a.was_waiting = true },
	  DECISION_WAIT, 0 },
	{ "started, says the scheduler", { QUEUED, .f.seen = &running_job }, DECISION_START, 0 },
	{ "started, says the claim", { QUEUED, .f.seen = &pending_job, .a.claimed = true },
	  DECISION_START, 0 },
	{ "lost before it started", { QUEUED }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "not seen, but the poll is too old", { QUEUED, .f.poll_ms = A_MINUTE_AGO - 1 },
	  DECISION_WAIT, 0 },
	{ "running", { RUNNING, .f.seen = &running_job }, DECISION_WAIT, 0 },
	{ "lbrun said why",
	  { RUNNING, .f.seen = &running_job, .f.exited = true, .a.exit.cause = CAUSE_CRASH },
	  DECISION_END, CAUSE_CRASH },
	{ "lbrun does not know, the scheduler does",
	  { RUNNING, .f.seen = &failed_node, .f.exited = true, .a.exit.cause = CAUSE_LOST },
	  DECISION_END, CAUSE_NODE_FAIL },
	{ "lbrun does not know, the scheduler not yet",
	  { RUNNING, .f.seen = &running_job, .f.exited = true, .a.exit.cause = CAUSE_LOST },
	  DECISION_WAIT, 0 },
	{ "over just now, no record yet", { RUNNING, .f.seen = &failed_node, .a.ended_ms = NOW },
	  DECISION_WAIT, 0 },
	{ "over for a while, no record",
	  { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_NODE_FAIL },
	{ "over for a while, its spool is not read to the end yet",
	  { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO, .a.has_more = true }, DECISION_WAIT, 0 },
	{ "nor its record heeded before that",
	  { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO, .a.has_more = true, .a.has_exit = true,
	    .a.exit.cause = CAUSE_COMPLETED }, DECISION_WAIT, 0 },
	{ "its record is there, its spool cannot be read",
	  { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO, .a.has_exit = true,
	    .a.exit_seen_ms = NOW - EXIT_GRACE_MS, .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },
	{ "which may be for a moment",
	  { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO, .a.has_exit = true,
	    .a.exit_seen_ms = NOW - EXIT_GRACE_MS + 1, .a.exit.cause = CAUSE_COMPLETED }, DECISION_WAIT, 0 },
	{ "it ended well, and lbrun never began",
	  { QUEUED, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "cancelled while it waited: a person's scancel",
	  { QUEUED, .f.seen = &cancelled_job, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_KILLED },
	{ "cancelled as it waited, moments after the controller came back: its node may have given up",
	  { QUEUED, .f.seen = &cancelled_after_restart, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "… before a restart that came later: the one before it is not known",
	  { QUEUED, .f.seen = &cancelled_before_restart, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "… long after: a person's scancel",
	  { QUEUED, .f.seen = &cancelled_long_after_restart, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_KILLED },
	{ "… by one that was not heard for as long: it may have stood still",
	  { QUEUED, .f.seen = &cancelled_long_after_restart, .a.ended_ms = A_MINUTE_AGO,
	    .f.heard_since_ms = A_MINUTE_AGO - 1000 }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "… of a job that this controller has always known: a person's scancel",
	  { QUEUED, .f.seen = &submitted_after_restart, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_KILLED },
	{ "… by a person, as accounting tells",
	  { QUEUED, .f.seen = &cancelled_after_restart, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_KILLED, -1, 0, "CANCELLED",
	    .has_canceller = true, .canceller = 1000 } }, DECISION_END, CAUSE_KILLED },
	{ "cancelled on its node before lbrun began: slurmd could not launch it",
	  { QUEUED, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "cancelled on its node after a while, and lbrun never began",
	  { QUEUED, .f.seen = &cancelled_late, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "cancelled under an lbrun that ran for long: a person's scancel",
	  { RUNNING, .f.seen = &cancelled_late, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_KILLED },
	{ "cancelled moments after its start: slurmd had it already, perhaps",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO },
	  DECISION_END, CAUSE_LOST },
	{ "the same, and lbrun was told to end",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.exited = true,
	    .a.exit.cause = CAUSE_LOST }, DECISION_END, CAUSE_LOST },
	{ "the same, and lbrun knows of a person's order",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.exited = true,
	    .a.exit.cause = CAUSE_KILLED }, DECISION_END, CAUSE_KILLED },
	{ "the same, and somebody may know who it was",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true },
	  DECISION_RECALL, 0 },
	{ "… who has not heard of it yet",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { CALL_GONE, NOW - 9, NOW - 1 } }, DECISION_WAIT, 0 },
	{ "… and is asked again",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { CALL_GONE, 1, NOW - RECHECK_MS } }, DECISION_RECALL, 0 },
	{ "… but not for ever",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = NOW - WHO_MS, .f.may_recall = true,
	    .a.recall = { CALL_GONE, 1, NOW - RECHECK_MS } }, DECISION_END, CAUSE_LOST },
	{ "… and cannot be asked",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { CALL_DOWN, 1, NOW } }, DECISION_END, CAUSE_LOST },
	{ "it was a person, by the uid",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED",
	    .has_canceller = true, .canceller = 1000 } }, DECISION_END, CAUSE_KILLED },
	{ "a person, before lbrun began",
	  { QUEUED, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_KILLED, -1, 0, "CANCELLED",
	    .has_canceller = true, .canceller = 1000 } }, DECISION_END, CAUSE_KILLED },
	{ "it was root, as whom slurmd runs",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED",
	    .has_canceller = true, .canceller = 0 } }, DECISION_END, CAUSE_LOST },
	{ "it was who slurmd runs as",
	  { RUNNING, .f.seen = &cancelled_on_its_node, .a.ended_ms = A_MINUTE_AGO, .f.may_recall = true,
	    .f.node_uid = 1000, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED", .has_canceller = true,
	    .canceller = 1000 } }, DECISION_END, CAUSE_LOST },
	{ "forgotten, of an array, and only some tasks are remembered: a person cancelled those",
	  { RUNNING, .f.is_array = true, .f.may_recall = true, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED", .had_nodes = true,
	    .has_canceller = true, .canceller = 1000, .is_more = true } }, DECISION_END, CAUSE_LOST },
	{ "forgotten, remembered as cancelled moments after its start",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED", .had_nodes = true, .start_time = 5,
	    .end_time = 6 } }, DECISION_END, CAUSE_LOST },
	{ "forgotten, remembered as cancelled after a while",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_KILLED, -1, 15, "CANCELLED", .had_nodes = true, .start_time = 5,
	    .end_time = 5000 } }, DECISION_END, CAUSE_KILLED },
	{ "an array of which some task has no end of its own, and accounting may know",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true, .f.may_recall = true }, DECISION_RECALL, 0 },
	{ "… which has not heard of all tasks yet",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true, .f.may_recall = true,
	    .a.recall = { CALL_OK, 1, NOW - RECHECK_MS }, .a.recalled = { .cause = CAUSE_ERROR, .is_more = true } },
	  DECISION_RECALL, 0 },
	{ "… which has",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true, .f.may_recall = true,
	    .a.recall = { CALL_OK, 1, NOW - RECHECK_MS }, .a.recalled = { .cause = CAUSE_ERROR } },
	  DECISION_END, CAUSE_ERROR },
	{ "… and which cannot be asked",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true, .f.may_recall = true,
	    .a.recall = { CALL_DOWN, 1, NOW } }, DECISION_END, CAUSE_ERROR },
	{ "an array of which all tasks tell why they ended",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.exit.cause = CAUSE_ERROR, .f.may_recall = true }, DECISION_END, CAUSE_ERROR },
	{ "an array whose tasks leave their nodes, cancelled: one that waited will tell by whom",
	  { RUNNING, .f.seen = &cancelled_and_leaving, .a.ended_ms = NOW, .f.is_array = true, .f.exited = true,
	    .a.claimed = true, .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true }, DECISION_WAIT, 0 },
	{ "… and which do not leave them",
	  { RUNNING, .f.seen = &cancelled_and_leaving, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.exited = true,
	    .a.claimed = true, .a.exit.cause = CAUSE_ERROR, .a.exit.is_unclear = true }, DECISION_END, CAUSE_ERROR },
	{ "an array without a record, which may come",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = NOW, .f.is_array = true, .f.may_recall = true },
	  DECISION_WAIT, 0 },
	{ "… and does not",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO, .f.is_array = true, .f.may_recall = true },
	  DECISION_RECALL, 0 },
	{ "it ended well, and lbrun did not say so",
	  { RUNNING, .f.seen = &done_job, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_LOST },
	{ "its time is up, lbrun is at work still",
	  { RUNNING, .f.seen = &ending_job, .a.ended_ms = NOW - 10000 }, DECISION_WAIT, 0 },
	{ "its time is up, and lbrun never said so",
	  { RUNNING, .f.seen = &ending_job, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_TIMEOUT },
	{ "forgotten, but it was heard of a minute ago", { RUNNING }, DECISION_WAIT, 0 },
	{ "forgotten, and there is somebody to ask", { RUNNING, .f.may_recall = true },
	  DECISION_RECALL, 0 },
	{ "forgotten, and asked", { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OPEN } },
	  DECISION_WAIT, 0 },
	{ "forgotten, remembered",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_NODE_FAIL, -1, 0, "NODE_FAIL" } }, DECISION_END, CAUSE_NODE_FAIL },
	{ "forgotten, remembered, but heard of just now",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OK }, .a.heard_ms = NOW - 1,
	    .a.recalled = { CAUSE_NODE_FAIL, -1, 0, "NODE_FAIL" } }, DECISION_WAIT, 0 },
	{ "forgotten, said to have ended well without a record",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OK },
	    .a.recalled = { CAUSE_COMPLETED, 0, 0, "COMPLETED" } }, DECISION_END, CAUSE_LOST },
	{ "forgotten by all, a moment ago",
	  { RUNNING, .f.may_recall = true, .a.recall = { CALL_GONE, NOW - 5, NOW } }, DECISION_WAIT, 0 },
	{ "forgotten by all, a while ago: accounting may have been late",
	  { RUNNING, .f.may_recall = true, .a.recall = { CALL_GONE, 0, NOW - RECALL_MS } },
	  DECISION_RECALL, 0 },
	{ "forgotten by all and silent",
	  { RUNNING, .f.may_recall = true, .a.recall = { CALL_DOWN, 0, LONG_AGO },
	    .a.watching_since_ms = LONG_AGO, .a.heard_ms = LONG_AGO }, DECISION_END, CAUSE_LOST },
	{ "forgotten, never an answer, and silent",
	  { RUNNING, .f.may_recall = true, .a.recall = { .state = CALL_OPEN },
	    .a.watching_since_ms = LONG_AGO, .a.heard_ms = LONG_AGO }, DECISION_END, CAUSE_LOST },
	{ "lbrun does not know, the scheduler forgot, and nobody is to be asked",
	  { RUNNING, .f.exited = true, .a.exit.cause = CAUSE_LOST }, DECISION_END, CAUSE_LOST },
	{ "lbrun does not know, the scheduler forgot",
	  { RUNNING, .f.may_recall = true, .f.exited = true, .a.exit.cause = CAUSE_LOST },
	  DECISION_RECALL, 0 },
	{ "lbrun does not know, the scheduler forgot, accounting knows",
	  { RUNNING, .f.may_recall = true, .f.exited = true, .a.exit.cause = CAUSE_LOST,
	    .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_PREEMPTED, -1, 0, "PREEMPTED" } },
	  DECISION_END, CAUSE_PREEMPTED },
	{ "lbrun does not know, nor does anybody",
	  { RUNNING, .f.may_recall = true, .f.exited = true, .a.exit.cause = CAUSE_LOST,
	    .a.recall = { CALL_GONE, NOW, NOW } }, DECISION_END, CAUSE_LOST },
	{ "forgotten and silent",
	  { RUNNING, .a.watching_since_ms = LONG_AGO, .a.heard_ms = LONG_AGO }, DECISION_END, CAUSE_LOST },

	{ "forgotten and silent, its record is there, its spool cannot be read",
	  { RUNNING, .a.watching_since_ms = LONG_AGO, .a.heard_ms = LONG_AGO, .a.has_exit = true,
	    .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },
	{ "the same, and accounting knows the job",
	  { RUNNING, .a.watching_since_ms = LONG_AGO, .a.heard_ms = LONG_AGO, .a.has_exit = true,
	    .f.may_recall = true, .a.recall = { .state = CALL_OK }, .a.recalled = { CAUSE_NODE_FAIL, -1, 0, "NODE_FAIL" },
	    .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },

	/* node memory must not wall a job in */
	{ "no node is left, for what was excluded",
	  { QUEUED, .f.seen = &job_without_node, .f.excludes = true }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "no node is left, and nothing was excluded", { QUEUED, .f.seen = &job_without_node },
	  DECISION_WAIT, 0 },
	{ "idle nodes are excluded, and it has not waited for long",
	  { QUEUED, .f.seen = &idle_beside_job, .f.excludes = true, .f.patience_ms = 60001 }, DECISION_WAIT, 0 },
	{ "idle nodes are excluded, and it has",
	  { QUEUED, .f.seen = &idle_beside_job, .f.excludes = true, .a.watching_since_ms = NOW - 5000, .f.patience_ms = 5000 },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "idle nodes are excluded by its owner",
	  { QUEUED, .f.seen = &idle_beside_job, .a.watching_since_ms = NOW - 5000, .f.patience_ms = 5000 }, DECISION_WAIT, 0 },
	{ "pending for long, and nothing that it avoids is idle",
	  { QUEUED, .f.seen = &pending_job, .f.excludes = true, .a.watching_since_ms = NOW - 5000, .f.patience_ms = 5000 },
	  DECISION_WAIT, 0 },
	{ "pending, with nodes excluded", { QUEUED, .f.seen = &pending_job, .f.excludes = true },
	  DECISION_WAIT, 0 },

	/* a dependency that failed: the verdict stays */
	{ "it depends on what failed", { QUEUED, .f.seen = &doomed_job }, DECISION_END,
	  CAUSE_LAUNCH_FAIL },
	{ "it depended on what failed, and Slurm cancelled it for that",
	  { QUEUED, .f.seen = &doomed_and_cancelled, .a.ended_ms = A_MINUTE_AGO }, DECISION_END,
	  CAUSE_LAUNCH_FAIL },
	{ "the same, while it is held", { HELD, .f.seen = &doomed_job }, DECISION_END,
	  CAUSE_LAUNCH_FAIL },
	{ "the last task of an array does, the others have run",
	  { RUNNING, .f.seen = &doomed_job, .a.claim_seen_ms = A_MINUTE_AGO }, DECISION_END,
	  CAUSE_LAUNCH_FAIL },
	{ "that was said before it began", { RUNNING, .f.seen = &doomed_job, .a.claim_seen_ms = NOW },
	  DECISION_WAIT, 0 },
	{ "the attempt that never could start has ended",
	  { ENDED(CAUSE_LAUNCH_FAIL), .a.blame_run = true, .a.is_final = true }, DECISION_MOVE, RUN_FAILED },

	/* orders */
	{ "killed while pending", { QUEUED, .f.wanted = ORDER_KILL, .f.seen = &pending_job },
	  DECISION_MOVE, RUN_STOPPING },
	{ "stopping a pending job",
	  { ATTEMPT(RUN_STOPPING, ATTEMPT_QUEUED), .f.wanted = ORDER_KILL, .f.seen = &pending_job },
	  DECISION_CANCEL, 0 },
	{ "stopping politely", { STOPPING, .f.seen = &running_job }, DECISION_SIGNAL, SIGTERM },
	{ "stopping at once", { STOPPING, .f.wanted = ORDER_KILL_NOW, .f.seen = &running_job },
	  DECISION_SIGNAL, SIGQUIT },
	{ "asked politely, now at once",
	  { STOPPING, .f.wanted = ORDER_KILL_NOW, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, NOW, NOW } }, DECISION_SIGNAL, SIGQUIT },
	{ "waiting for its grace",
	  { STOPPING, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, NOW - 1000, NOW } }, DECISION_WAIT, 0 },
	{ "its grace is over",
	  { STOPPING, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, A_MINUTE_AGO, A_MINUTE_AGO } }, DECISION_CANCEL, 0 },
	{ "killed, lbrun's word", { STOPPING, .f.exited = true, .a.exit.cause = CAUSE_ERROR },
	  DECISION_END, CAUSE_KILLED },
	{ "it was done before the order came",
	  { STOPPING, .f.exited = true, .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },
	{ "killed, the scheduler's word",
	  { STOPPING, .f.seen = &cancelled_job, .a.ended_ms = A_MINUTE_AGO }, DECISION_END, CAUSE_KILLED },
	{ "killed, and done before, its spool cannot be read",
	  { STOPPING, .f.seen = &cancelled_job, .a.ended_ms = A_MINUTE_AGO, .a.has_exit = true,
	    .a.exit.cause = CAUSE_COMPLETED }, DECISION_END, CAUSE_COMPLETED },
	{ "killed, its spool is not read to the end yet",
	  { STOPPING, .f.seen = &cancelled_job, .a.ended_ms = A_MINUTE_AGO, .a.has_more = true }, DECISION_WAIT, 0 },
	{ "gone",
	  { ATTEMPT(RUN_STOPPING, ATTEMPT_QUEUED), .f.wanted = ORDER_KILL }, DECISION_END, CAUSE_KILLED },
	{ "killed in back-off",
	  { ENDED(CAUSE_CRASH), .f.state = RUN_BACKOFF, .f.wanted = ORDER_KILL, .f.backoff_left_ms = 99 },
	  DECISION_MOVE, RUN_KILLED },

	/* hold and release */
	{ "held before it began", { .f.state = RUN_CREATED, .f.wanted = ORDER_HOLD },
	  DECISION_MOVE, RUN_HELD },
	{ "on hold", { .f.state = RUN_HELD, .f.wanted = ORDER_HOLD }, DECISION_WAIT, 0 },
	{ "released", { .f.state = RUN_HELD }, DECISION_MOVE, RUN_CREATED },
	{ "on hold, killed", { .f.state = RUN_HELD, .f.wanted = ORDER_KILL }, DECISION_MOVE, RUN_KILLED },
	{ "hold in back-off",
	  { ENDED(CAUSE_CRASH), .f.state = RUN_BACKOFF, .f.wanted = ORDER_HOLD, .f.backoff_left_ms = 99 },
	  DECISION_MOVE, RUN_HELD },
	{ "hold while pending", { QUEUED, .f.wanted = ORDER_HOLD, .f.seen = &pending_job },
	  DECISION_MOVE, RUN_STOPPING },
	{ "hold while running", { RUNNING, .f.wanted = ORDER_HOLD, .f.seen = &running_job },
	  DECISION_MOVE, RUN_STOPPING },
	{ "holding, politely", { HOLDING, .f.seen = &running_job }, DECISION_SIGNAL, SIGTERM },
	{ "a checkpoint may take longer than a kill",
	  { HOLDING, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, A_MINUTE_AGO, A_MINUTE_AGO } }, DECISION_WAIT, 0 },
	{ "holding, then killed: the shorter grace begins",
	  { HOLDING, .f.wanted = ORDER_KILL, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, A_MINUTE_AGO, A_MINUTE_AGO } }, DECISION_SIGNAL, SIGTERM },
	{ "its attempt has ended", { ENDED(CAUSE_KILLED), .f.state = RUN_STOPPING, .f.wanted = ORDER_HOLD },
	  DECISION_MOVE, RUN_HELD },
	{ "it was done before the hold came",
	  { ENDED(CAUSE_COMPLETED), .f.state = RUN_STOPPING, .f.wanted = ORDER_HOLD },
	  DECISION_MOVE, RUN_COMPLETED },
	{ "released too early: it was told to end, and does",
	  { HOLDING, .f.wanted = ORDER_RUN, .f.seen = &running_job, .a.signalled = SIGTERM,
	    .a.signal = { CALL_OK, NOW - 1000, NOW } }, DECISION_WAIT, 0 },
	{ "released too early, an earlier lbd's hold",
	  { HOLDING, .f.wanted = ORDER_RUN, .f.seen = &running_job }, DECISION_SIGNAL, SIGTERM },
	{ "released too early, now ended", { ENDED(CAUSE_KILLED), .f.state = RUN_STOPPING },
	  DECISION_MOVE, RUN_HELD },
	{ "a completed run, restarted, then killed",
	  { ENDED(CAUSE_COMPLETED), .f.state = RUN_CREATED, .f.wanted = ORDER_KILL },
	  DECISION_MOVE, RUN_KILLED },

	/* after an attempt */
	{ "completed", { ENDED(CAUSE_COMPLETED) }, DECISION_MOVE, RUN_COMPLETED },
	{ "completed all the same", { ENDED(CAUSE_COMPLETED), .f.wanted = ORDER_KILL },
	  DECISION_MOVE, RUN_COMPLETED },
	{ "crashed", { ENDED(CAUSE_CRASH), .f.failures = 1 }, DECISION_MOVE, RUN_BACKOFF },
	{ "crashed too often", { ENDED(CAUSE_CRASH), .f.failures = 3 }, DECISION_MOVE, RUN_FAILED },
	{ "timeouts never count", { ENDED(CAUSE_TIMEOUT), .f.failures = 2 },
	  DECISION_MOVE, RUN_BACKOFF },
	{ "a timeout after its launches had used the budget up: not the timeout's fault",
	  { ENDED(CAUSE_TIMEOUT), .f.failures = 3 }, DECISION_MOVE, RUN_BACKOFF },
	{ "preempted after its launches had used the budget up",
	  { ENDED(CAUSE_PREEMPTED), .f.failures = 7 }, DECISION_MOVE, RUN_BACKOFF },
	{ "a crash after that", { ENDED(CAUSE_CRASH), .f.failures = 4 }, DECISION_MOVE, RUN_FAILED },
	{ "never started, after others had used the budget up",
	  { ENDED(CAUSE_LAUNCH_FAIL), .f.failures = 3, .f.in_vain = 1 }, DECISION_MOVE, RUN_BACKOFF },
	{ "an exit code that means never",
	  { ENDED(CAUSE_ERROR), .a.exit_code = 42 }, DECISION_MOVE, RUN_FAILED },
	{ "no valid checkpoint: only a person can help",
	  { ENDED(CAUSE_ERROR), .a.blame_run = true, .a.is_final = true }, DECISION_MOVE, RUN_FAILED },
	{ "killed", { ENDED(CAUSE_KILLED) }, DECISION_MOVE, RUN_KILLED },
	{ "it never started, and that is its own fault",
	  { ENDED(CAUSE_LAUNCH_FAIL), .f.ever_trained = false, .a.blame_run = true, .f.failures = 1 },
	  DECISION_MOVE, RUN_FAILED },
	{ "the scheduler lost it", { ENDED(CAUSE_LAUNCH_FAIL), .f.in_vain = 1 },
	  DECISION_MOVE, RUN_BACKOFF },
	{ "in back-off", { ENDED(CAUSE_CRASH), .f.state = RUN_BACKOFF, .f.backoff_left_ms = 500 },
	  DECISION_WAIT, 0 },
	{ "back-off is over", { ENDED(CAUSE_CRASH), .f.state = RUN_BACKOFF }, DECISION_NEW_ATTEMPT, 0 },
};
/* clang-format on */

static void every_case(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decision d = decide(&cases[i].known);

		if (d.kind != cases[i].kind || detail_of(&d) != cases[i].detail)
			fail_msg("%s: %s %d, expected %s %d", cases[i].when, decision_name(d.kind),
				 detail_of(&d), decision_name(cases[i].kind), cases[i].detail);
	}
}

/* A kill always wins: whatever the facts, no decision brings a killed run nearer to a new
 * trainer. */
static void a_kill_always_wins(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct known k = cases[i].known;
		struct decision d;

		k.f.wanted = ORDER_KILL_NOW;
		d = decide(&k);
		if (d.kind == DECISION_NEW_ATTEMPT || d.kind == DECISION_SUBMIT ||
		    d.kind == DECISION_RELEASE || (d.kind == DECISION_MOVE && d.to == RUN_BACKOFF))
			fail_msg("%s, killed: %s", cases[i].when, decision_name(d.kind));
	}
}

/* Whatever the facts: nothing is done before a stronger switch is recorded. */
static void a_switch_comes_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct known k = cases[i].known;
		struct decision d;

		k.f.switched = ORDER_KILL;
		d = decide(&k);
		if (!run_state_is_final(k.f.state) && k.f.wanted < ORDER_KILL &&
		    (d.kind != DECISION_OBEY || d.order != ORDER_KILL))
			fail_msg("%s, switched off: %s", cases[i].when, decision_name(d.kind));
	}
}

/* Every move of the run that reconcile asks for is one that the table of states allows. */
static void moves_are_legal(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decision d = decide(&cases[i].known);

		if (d.kind == DECISION_MOVE && !run_state_may_follow(cases[i].known.f.state, d.to))
			fail_msg("%s: %s to %s", cases[i].when,
				 run_state_name(cases[i].known.f.state), run_state_name(d.to));
	}
}

static void a_wait_is_never_in_the_past(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decision d = decide(&cases[i].known);

		if (d.kind == DECISION_WAIT && d.at_ms <= NOW)
			fail_msg("%s: a busy loop", cases[i].when);
	}
}

static void an_end_without_a_record_is_told_as_such(void **state)
{
	static const struct job_status killed = {
		.phase = JOB_ENDED, .cause = CAUSE_CRASH, .signal = 9, .state = "FAILED"
	};
	struct known known = { RUNNING, .f.seen = &killed, .a.ended_ms = A_MINUTE_AGO };
	struct decision d = decide(&known);

	(void)state;
	assert_int_equal(d.kind, DECISION_END);
	assert_int_equal(d.cause, CAUSE_CRASH);
	assert_non_null(strstr(d.text, "lbrun"));
	known.a.claimed = false;
	assert_string_equal(decide(&known).text, "FAILED");
}

static void a_cancel_of_nobodys_is_told_as_such(void **state)
{
	struct known begun = { RUNNING, .f.seen = &cancelled_on_its_node,
			       .a.ended_ms = A_MINUTE_AGO };
	struct known early = { QUEUED, .f.seen = &cancelled_on_its_node,
			       .a.ended_ms = A_MINUTE_AGO };

	(void)state;
	assert_non_null(strstr(decide(&begun).text, "nobody is known"));
	assert_non_null(strstr(decide(&early).text, "prolog"));
}

/* Slurm calls it a node's failure; the node did nothing. */
static void a_partition_that_is_gone_blames_no_node(void **state)
{
	static const struct job_status gone = { .phase = JOB_ENDED,
						.cause = CAUSE_NODE_FAIL,
						.reason = "PartitionDown" };
	struct known heard = { RUNNING, .f.seen = &gone, .f.exited = true,
			       .a.exit.cause = CAUSE_LOST };
	struct known silent = { RUNNING, .f.seen = &gone, .a.ended_ms = A_MINUTE_AGO };
	struct known failed = { RUNNING, .f.seen = &failed_node, .a.ended_ms = A_MINUTE_AGO };

	(void)state;
	assert_int_equal(decide(&heard).cause, CAUSE_NODE_FAIL);
	assert_true(decide(&heard).blame_run);
	assert_non_null(strstr(decide(&heard).text, "partition"));
	assert_true(decide(&silent).blame_run);
	assert_non_null(strstr(decide(&silent).text, "partition"));
	assert_false(decide(&failed).blame_run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case),
		cmocka_unit_test(a_kill_always_wins),
		cmocka_unit_test(a_switch_comes_first),
		cmocka_unit_test(moves_are_legal),
		cmocka_unit_test(a_wait_is_never_in_the_past),
		cmocka_unit_test(an_end_without_a_record_is_told_as_such),
		cmocka_unit_test(a_cancel_of_nobodys_is_told_as_such),
		cmocka_unit_test(a_partition_that_is_gone_blames_no_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
