/* SPDX-License-Identifier: MIT */
/* test_shepherd.c - lbrun's next step as a table of facts, and what the end of a launch amounts
 * to. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbrun/decide/decide.h"
#include "worker/lbrun/decide/judge.h"

enum {
	NOW = 10 * 1000 * 1000,
	A_MINUTE_AGO = NOW - 60 * 1000,
	GRACE_MS = 9000,
	STOP_GRACE_MS = 300000
};

#define EXITED(code) ((code) << 8)
#define KILLED_BY(signo) (signo)

static const struct attempt_params params = {
	.run = (char[]){ "r" },
	.number = 5,
	.in_place = 3,
	.without_progress = 0,
	.max_without_progress = 3,
	.kill_grace_ms = GRACE_MS,
	.stop_grace_ms = STOP_GRACE_MS,
	.warn_ms = 240000,
};
enum { LEASE_MS = 18750 };
static const struct shepherd_policy policy = { .params = &params,
					       .in_slurm = true,
					       .lease_ms = LEASE_MS };
enum { CHECK_MS = 90000, LEFT_MS = DEFAULT_KILL_WAIT_MS + LEFT_OVER_MS };
static const struct attempt_params checking = {
	.run = (char[]){ "r" },
	.number = 5,
	.in_place = 3,
	.max_without_progress = 3,
	.kill_grace_ms = GRACE_MS,
	.stop_grace_ms = STOP_GRACE_MS,
	.warn_ms = 240000,
	.preflight_ms = CHECK_MS,
	.preflight_tries = 3,
};
static const struct shepherd_policy checks = { .params = &checking, .in_slurm = true };
static const struct handed known = {
	.has_had = true, .has_steps = true, .first_told = -1, .best_told = -1
};

/* The macros give the usual facts; a case overrides what makes it special. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* clang-format off */
#define NEVER INT64_MAX
#define NOT_ASKED {.due_ms = {NEVER, NEVER, NEVER, NEVER}, .scheduler_grace_ms = 25000}
/* Asked to end, and each step taken but SIGKILL, which is due at `kill`. */
#define ASKED(reason, kill) {.why = (reason), .due_ms = {NEVER, 0, 0, (kill)}, \
			     .done = {false, true, true, false}, .grace_ms = GRACE_MS}
#define UNCLAIMED \
	.looked_ms = INT64_MIN, .full_ms = INT64_MIN, .cleared_ms = INT64_MIN / 2, .stop_text = "asked", \
	.tried_ms = INT64_MIN / 2, .kill_again_ms = NEVER, .hung_at_ms = NEVER, .trouble = "trouble", \
	.handed = &known, .found = -1, .found_step = -1, .newest_step = -1, .stop = NOT_ASKED
#define CLAIMED UNCLAIMED, .claim = CLAIM_OURS, .claimed_ms = A_MINUTE_AGO, .looked_ms = NOW - 1
#define SEARCHED CLAIMED, .looking = LOOKING_DONE, .found = 1, .found_step = 100, .newest_step = 100
#define LAUNCHED CLAIMED, .launch = {.number = 1, .is_open = true, .left = -1, .begun_ms = A_MINUTE_AGO, \
				     .has_checkpoint = true, .from_step = 100, .step_to_beat = 100, \
				     .step_saved = -1, .first_told = -1, .step_told = -1}
#define ENDED(status) LAUNCHED, .launch.has_ended = true, .launch.ended_ms = NOW - 100, \
		      .launch.wait_status = (status)
#define CLEARED(status) ENDED(status), .launch.left = 0
#define HEARD(status) CLEARED(status), .launch.is_drained = true, .has_last_look = true
#define PAUSED CLAIMED, .launch.number = 1, .relaunch_ms = NOW - 1, .room_until_ms = NOW + 30000
#define OVER CLAIMED, .is_over = true
#define CLOSED OVER, .is_closed = true, .closed_ms = NOW - 5000

static const struct {
	const char *when;
	struct shepherd_facts facts;
	enum next_kind kind;
	int64_t detail;		/* WAIT: until; HEED: why; CLEAR: signal; FINISH, GIVE_UP: cause; LOOK: is_last */
} cases[] = {
	/* who has the run */
	{"as it begins", {UNCLAIMED}, NEXT_CLAIM, 0},
	{"a newer attempt has the run", {UNCLAIMED, .newest_claim = 6}, NEXT_TURN_AWAY, 0},
	{"an older one has a claim", {UNCLAIMED, .newest_claim = 4}, NEXT_CLAIM, 0},
	{"another lbrun has this attempt", {UNCLAIMED, .claim = CLAIM_TAKEN}, NEXT_TURN_AWAY, 0},
	{"it could not be claimed", {UNCLAIMED, .claim = CLAIM_FAILED}, NEXT_TURN_AWAY, 0},
	{"claimed", {CLAIMED, .looked_ms = INT64_MIN}, NEXT_LOOK, false},
	{"claimed, and alone", {CLAIMED}, NEXT_SEARCH, 0},
	{"an older one may live", {CLAIMED, .claimed_ms = NOW - 50, .older_may_live = true},
	 NEXT_WAIT, NOW - 1 + OLDER_LOOK_MS},
	{"an older one may still live",
	 {CLAIMED, .claimed_ms = NOW - 500, .looked_ms = NOW - OLDER_LOOK_MS, .older_may_live = true},
	 NEXT_LOOK, false},
	{"an older one was given its time",
	 {CLAIMED, .claimed_ms = NOW - OLDER_WAIT_MS, .older_may_live = true}, NEXT_SEARCH, 0},
	{"ranks that an older one left may run",
	 {CLAIMED, .claimed_ms = NOW - LEASE_MS + 1, .older_left_ranks = true}, NEXT_WAIT, NOW - 1 + OLDER_LOOK_MS},
	{"their leases are over",
	 {CLAIMED, .claimed_ms = NOW - LEASE_MS, .older_left_ranks = true}, NEXT_SEARCH, 0},
	{"a relaunch waits for nobody", {PAUSED, .older_may_live = true, .claimed_ms = NOW - 50},
	 NEXT_SEARCH, 0},
	{"fenced before it began", {CLAIMED, .newest_claim = 6}, NEXT_HEED, STOP_FENCED},
	{"fenced, and heeded", {CLAIMED, .newest_claim = 6, .stop = ASKED(STOP_FENCED, NOW)},
	 NEXT_GIVE_UP, CAUSE_LOST},
	{"fenced while the trainer runs", {LAUNCHED, .newest_claim = 6}, NEXT_HEED, STOP_FENCED},
	{"fenced, whatever else was wanted",
	 {LAUNCHED, .newest_claim = 6, .order = ORDER_STOP, .heeded = ORDER_STOP,
	  .stop = ASKED(STOP_ORDERED, NOW + STOP_GRACE_MS)}, NEXT_HEED, STOP_FENCED},

	/* the check of the nodes: preflight.enabled where there is a check_text */
#define CHECKED CLAIMED, .check_kill_ms = NEVER, .check_text = "n2: slow product"
	{"its nodes are to be checked", {CHECKED}, NEXT_CHECK, 0},
	{"an older one is waited for before that",
	 {CHECKED, .claimed_ms = NOW - 50, .older_may_live = true}, NEXT_WAIT, NOW - 1 + OLDER_LOOK_MS},
	{"they are checked", {CHECKED, .check = CHECK_BUSY, .check_began_ms = NOW - 1}, NEXT_WAIT,
	 NOW - 1 + CHECK_MS},
	{"that takes too long", {CHECKED, .check = CHECK_BUSY, .check_began_ms = NOW - CHECK_MS},
	 NEXT_CHECK_KILL, 0},
	{"it was told to end", {CHECKED, .check = CHECK_BUSY, .check_kill_ms = NOW + 9}, NEXT_WAIT, NOW + 9},
	{"it does not", {CHECKED, .check = CHECK_BUSY, .check_kill_ms = NOW}, NEXT_CHECK_KILL, 0},
	{"ordered to end meanwhile", {CHECKED, .check = CHECK_BUSY, .order = ORDER_KILL}, NEXT_HEED,
	 STOP_ORDERED},
	{"and heeded", {CHECKED, .check = CHECK_BUSY, .order = ORDER_KILL, .heeded = ORDER_KILL,
			.stop = ASKED(STOP_ORDERED, NOW + 1)}, NEXT_GIVE_UP, CAUSE_KILLED},
	{"they are well", {CHECKED, .check = CHECK_WELL}, NEXT_SEARCH, 0},
	{"one is broken", {CHECKED, .check = CHECK_BROKEN}, NEXT_GIVE_UP, CAUSE_LAUNCH_FAIL},
	{"so it was twice before", {CHECKED, .checks_failed = 2}, NEXT_CHECK, 0},
	{"so it was too often before", {CHECKED, .checks_failed = 3}, NEXT_CHECK_SKIP, 0},
	{"a relaunch in place has the same nodes", {PAUSED, .check_text = "", .check = CHECK_WELL}, NEXT_SEARCH, 0},
	{"a spare has come in", {PAUSED, .check_text = ""}, NEXT_CHECK, 0},

	/* from the search to the launch */
	{"the search is at work", {CLAIMED, .looking = LOOKING_BUSY}, NEXT_WAIT, NEVER},
	{"ordered to end meanwhile", {CLAIMED, .looking = LOOKING_BUSY, .order = ORDER_KILL},
	 NEXT_HEED, STOP_ORDERED},
	{"and heeded", {CLAIMED, .looking = LOOKING_BUSY, .order = ORDER_KILL, .heeded = ORDER_KILL,
			.stop = ASKED(STOP_ORDERED, NOW + 1)}, NEXT_GIVE_UP, CAUSE_KILLED},
	{"it cannot search", {CLAIMED, .looking = LOOKING_FAILED}, NEXT_GIVE_UP, CAUSE_CRASH},
	{"none of the checkpoints is whole", {SEARCHED, .found = -1}, NEXT_GIVE_UP, CAUSE_ERROR},
	{"the search died", {SEARCHED, .found = FOUND_UNKNOWN}, NEXT_SEARCH_LOST, 0},
	{"it died again and again", {SEARCHED, .found = FOUND_UNKNOWN, .searches_lost = SEARCH_TRIES - 1},
	 NEXT_GIVE_UP, CAUSE_CRASH},
	{"found", {SEARCHED}, NEXT_LOOK, true},
	{"there is none", {SEARCHED, .found = 0}, NEXT_LOOK, true},
	{"found, and looked", {SEARCHED, .has_last_look = true}, NEXT_HAND_OVER, 0},
	{"written down", {SEARCHED, .has_last_look = true, .is_handed_over = true}, NEXT_LAUNCH, 0},
	{"ordered to end at the last moment",
	 {SEARCHED, .has_last_look = true, .is_handed_over = true, .order = ORDER_STOP},
	 NEXT_HEED, STOP_ORDERED},
	{"fenced at the last moment",
	 {SEARCHED, .has_last_look = true, .is_handed_over = true, .newest_claim = 9},
	 NEXT_HEED, STOP_FENCED},

	/* the trainer runs */
	{"all is well", {LAUNCHED}, NEXT_WAIT, NEVER},
	{"it got further", {LAUNCHED, .launch.has_come_further = true}, NEXT_TRUST, 0},
	{"it got further from nothing",
	 {LAUNCHED, .launch.has_come_further = true, .launch.has_checkpoint = false}, NEXT_WAIT, NEVER},
	{"and that is noted", {LAUNCHED, .launch.has_come_further = true, .launch.is_trusted = true},
	 NEXT_WAIT, NEVER},
	{"a save is wanted", {LAUNCHED, .wants_save = true}, NEXT_SAVE, 0},
	{"stacks are wanted", {LAUNCHED, .wants_stacks = true}, NEXT_STACKS, 0},
	{"stacks are being written", {LAUNCHED, .wants_stacks = true, .stacks = STACKS_BUSY},
	 NEXT_WAIT, NEVER},
	{"it will hang", {LAUNCHED, .hung_at_ms = NOW + 5}, NEXT_WAIT, NOW + 5},
	{"it hangs", {LAUNCHED, .hung_at_ms = NOW}, NEXT_STACKS, 0},
	{"its stacks are being written", {LAUNCHED, .hung_at_ms = NOW, .stacks = STACKS_BUSY},
	 NEXT_WAIT, NEVER},
	{"its stacks are written", {LAUNCHED, .hung_at_ms = NOW, .stacks = STACKS_DONE},
	 NEXT_HEED, STOP_HUNG},
	{"it hangs, and is to end already",
	 {LAUNCHED, .hung_at_ms = NOW, .is_warned = true, .stop = ASKED(STOP_WARNED, NEVER)},
	 NEXT_WAIT, NEVER},

	{"srun ends it because of a rank", {LAUNCHED, .launch.srun_ends_ms = NOW}, NEXT_WAIT, NOW + LEFT_MS},
	{"and others go on", {LAUNCHED, .launch.srun_ends_ms = NOW - LEFT_MS}, NEXT_HEED, STOP_LEFT_OVER},
	{"they are told", {LAUNCHED, .launch.srun_ends_ms = NOW - LEFT_MS, .stop = ASKED(STOP_LEFT_OVER, NOW)},
	 NEXT_KILL, 0},
	{"and it is to end already",
	 {LAUNCHED, .launch.srun_ends_ms = NOW - LEFT_MS, .is_warned = true, .stop = ASKED(STOP_WARNED, NEVER)},
	 NEXT_WAIT, NEVER},

	{"its ranks were started again", {LAUNCHED, .launch.has_begun_again = true}, NEXT_HEED, STOP_LEFT_OVER},
	{"it asked for a requeue", {LAUNCHED, .launch.is_requeue_asked = true}, NEXT_HEED, STOP_REQUEUED},
	{"and is to end already",
	 {LAUNCHED, .launch.is_requeue_asked = true, .stop = ASKED(STOP_REQUEUED, NOW + 7)}, NEXT_WAIT, NOW + 7},

	{"a node is lost", {LAUNCHED, .lost_node = "n2"}, NEXT_HEED, STOP_NODE},
	{"a node is lost while it is to end well",
	 {LAUNCHED, .lost_node = "n2", .order = ORDER_STOP, .heeded = ORDER_STOP,
	  .stop = ASKED(STOP_ORDERED, NOW + STOP_GRACE_MS)}, NEXT_HEED, STOP_ORDERED},
	{"and heeded", {LAUNCHED, .lost_node = "n2", .stop = ASKED(STOP_NODE, NOW)}, NEXT_KILL, 0},
	{"nobody is heard", {LAUNCHED, .cut_off = "all silent"}, NEXT_HEED, STOP_NODE},
	{"a node was lost", {PAUSED, .lost_node = "n2"}, NEXT_SEARCH, 0},

	/* orders, warnings, signals */
	{"stop", {LAUNCHED, .order = ORDER_STOP}, NEXT_HEED, STOP_ORDERED},
	{"stop, and heeded", {LAUNCHED, .order = ORDER_STOP, .heeded = ORDER_STOP,
			      .stop = ASKED(STOP_ORDERED, NOW + 7)}, NEXT_WAIT, NOW + 7},
	{"kill after stop", {LAUNCHED, .order = ORDER_KILL, .heeded = ORDER_STOP,
			     .stop = ASKED(STOP_ORDERED, NOW + 7)}, NEXT_HEED, STOP_ORDERED},
	{"warned", {LAUNCHED, .is_warned = true}, NEXT_HEED, STOP_WARNED},
	{"SIGTERM", {LAUNCHED, .signalled = SIGTERM}, NEXT_HEED, STOP_SIGNALLED},
	{"SIGTERM that is lbd's", {LAUNCHED, .signalled = SIGTERM, .order = ORDER_KILL}, NEXT_HEED,
	 STOP_ORDERED},
	{"SIGQUIT after an order", {LAUNCHED, .signalled = SIGQUIT, .order = ORDER_STOP,
				    .heeded = ORDER_STOP, .stop = ASKED(STOP_ORDERED, NOW + 7)},
	 NEXT_HEED, STOP_ORDERED},
	{"SIGQUIT, and heeded", {LAUNCHED, .signalled = SIGQUIT, .stop = ASKED(STOP_SIGNALLED, NOW)},
	 NEXT_KILL, 0},
	{"its grace is over", {LAUNCHED, .order = ORDER_KILL, .heeded = ORDER_KILL,
			       .stop = ASKED(STOP_ORDERED, NOW)}, NEXT_KILL, 0},
	{"SIGKILL was not enough", {LAUNCHED, .kill_again_ms = NOW}, NEXT_CLEAR, SIGKILL},

	/* it ended */
	{"its first process ended", {ENDED(EXITED(0))}, NEXT_CLEAR, SIGKILL},
	{"something is left", {ENDED(EXITED(0)), .launch.left = 2, .cleared_ms = NOW - CLEAR_EVERY_MS},
	 NEXT_CLEAR, SIGKILL},
	{"something is left, and was just killed", {ENDED(EXITED(0)), .launch.left = 2, .cleared_ms = NOW},
	 NEXT_WAIT, NOW + CLEAR_EVERY_MS},
	{"a shell ended before its trainer",
	 {ENDED(KILLED_BY(SIGTERM)), .order = ORDER_KILL, .heeded = ORDER_KILL,
	  .stop = ASKED(STOP_ORDERED, NOW + 50)}, NEXT_CLEAR, 0},
	{"a SIGTERM that may be ours, too", {ENDED(KILLED_BY(SIGTERM))}, NEXT_WAIT,
	 NOW - 100 + OUR_TERM_MS},
	{"the same as an exit status", {ENDED(EXITED(128 + SIGTERM))}, NEXT_WAIT, NOW - 100 + OUR_TERM_MS},
	{"any end behind the SIGCONT that Slurm sends before it",
	 {ENDED(EXITED(0)), .continued_ms = NOW - 101}, NEXT_WAIT, NOW - 100 + OUR_TERM_MS},
	{"long behind one", {ENDED(EXITED(0)), .continued_ms = NOW - 100 - CONT_MS}, NEXT_CLEAR, SIGKILL},
	{"it came to us", {ENDED(KILLED_BY(SIGTERM)), .signalled = SIGTERM}, NEXT_HEED, STOP_SIGNALLED},
	{"it did not", {ENDED(KILLED_BY(SIGTERM)), .launch.ended_ms = NOW - OUR_TERM_MS},
	 NEXT_CLEAR, SIGKILL},
	{"nothing is left", {CLEARED(EXITED(0))}, NEXT_DRAIN, 0},
	{"all was heard", {CLEARED(EXITED(0)), .launch.is_drained = true}, NEXT_LOOK, true},
	{"heard and looked", {HEARD(EXITED(0))}, NEXT_FINISH, CAUSE_COMPLETED},
	{"the order was visible only now", {HEARD(EXITED(0)), .order = ORDER_KILL}, NEXT_HEED, STOP_ORDERED},
	{"ended as ordered", {HEARD(EXITED(0)), .order = ORDER_KILL, .heeded = ORDER_KILL,
			      .stop = ASKED(STOP_ORDERED, NOW)}, NEXT_FINISH, CAUSE_KILLED},
	{"it said that it got further before it died",
	 {HEARD(EXITED(1)), .launch.has_come_further = true}, NEXT_TRUST, 0},

	/* between two launches */
	{"a pause", {PAUSED, .relaunch_ms = NOW + 8}, NEXT_WAIT, NOW + 8},
	{"the disk is full", {PAUSED, .is_full = true}, NEXT_WAIT, NOW + RELAUNCH_PAUSE_MS},
	{"the disk stays full", {PAUSED, .is_full = true, .room_until_ms = NOW}, NEXT_SEARCH, 0},
	{"SIGTERM in the pause", {PAUSED, .relaunch_ms = NOW + 8, .signalled = SIGTERM}, NEXT_HEED,
	 STOP_SIGNALLED},

	/* the end */
	{"a search was under way", {OVER, .launch.left = -1}, NEXT_CLEAR, SIGKILL},
	{"over", {OVER}, NEXT_CLOSE, 0},
	{"old checkpoints go", {OVER, .is_pruning = true, .launch.ended_ms = NOW - 1}, NEXT_WAIT,
	 NOW - 1 + LAST_PRUNE_MS},
	{"they take too long", {OVER, .is_pruning = true, .launch.ended_ms = NOW - LAST_PRUNE_MS},
	 NEXT_CLOSE, 0},
	{"or somebody waits", {OVER, .is_pruning = true, .launch.ended_ms = NOW,
			       .signalled = SIGTERM}, NEXT_CLOSE, 0},
	{"all is written", {CLOSED}, NEXT_RECORD, 0},
	{"lines wait for the disk", {CLOSED, .is_unwritten = true}, NEXT_SYNC, 0},
	{"they waited a moment ago", {CLOSED, .is_unwritten = true, .tried_ms = NOW - 1}, NEXT_WAIT,
	 NOW - 1 + TRY_EVERY_MS},
	{"they wait for long", {CLOSED, .is_unwritten = true, .closed_ms = NOW - LAST_WORDS_MS}, NEXT_SYNC, 0},
	{"somebody waits for our end",
	 {CLOSED, .is_unwritten = true, .closed_ms = NOW - LAST_WORDS_MS, .signalled = SIGTERM},
	 NEXT_RECORD, 0},
	{"nobody does, but it takes too long",
	 {CLOSED, .is_unwritten = true, .closed_ms = NOW - OWN_END_MS}, NEXT_RECORD, 0},
	{"the record could not be written", {CLOSED, .has_tried = true, .tried_ms = NOW}, NEXT_WAIT,
	 NOW + TRY_EVERY_MS},
	{"nor ever", {CLOSED, .has_tried = true, .tried_ms = NOW - 1, .closed_ms = NOW - OWN_END_MS},
	 NEXT_LEAVE, 0},
	{"the record is written", {CLOSED, .is_recorded = true}, NEXT_LEAVE, 0},
};

/* clang-format on */

static int64_t detail_of(const struct next *next)
{
	switch (next->kind) {
	case NEXT_WAIT:
		return next->at_ms;
	case NEXT_HEED:
		return next->why;
	case NEXT_CLEAR:
		return next->signo;
	case NEXT_LOOK:
		return next->is_last;
	case NEXT_FINISH:
	case NEXT_GIVE_UP:
		return next->ending.cause;
	default:
		return 0;
	}
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct next next = shepherd_decide(
			&cases[i].facts, cases[i].facts.check_text ? &checks : &policy, NOW);

		if (next.kind != cases[i].kind || detail_of(&next) != cases[i].detail)
			fail_msg("%s: %s %lld", cases[i].when, next_name(next.kind),
				 (long long)detail_of(&next));
	}
}

/* What is done must change the answer: no step is asked for twice in a row, whatever the facts. */
static void test_no_step_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct shepherd_policy *by = cases[i].facts.check_text ? &checks : &policy;
		struct shepherd_facts f = cases[i].facts;
		struct next first = shepherd_decide(&f, by, NOW), second;

		if (first.kind == NEXT_WAIT || first.kind == NEXT_CLAIM ||
		    first.kind == NEXT_TURN_AWAY || first.kind == NEXT_LEAVE)
			continue;
		shepherd_note(&f, by, &first, NOW);
		f.stacks = first.kind == NEXT_STACKS ? STACKS_BUSY : f.stacks;
		second = shepherd_decide(&f, by, NOW);
		if (second.kind == first.kind && detail_of(&second) == detail_of(&first))
			fail_msg("%s: %s again", cases[i].when, next_name(first.kind));
	}
}

/* --- what the end of a launch amounts to ------------------------------------------------------ */

static const struct attempt_params rolling = {
	.run = (char[]){ "r" },
	.number = 5,
	.in_place = 3,
	.max_without_progress = 3,
	.rollback = 2,
};
static const struct shepherd_policy rolls = { .params = &rolling };
static const struct shepherd_policy by_srun = { .params = &params,
						.is_srun = true,
						.in_slurm = true };
static const struct shepherd_policy own = { .params = &params, .finds_own = true };
static const struct handed gone_back = { .has_had = true, .has_rolled_back = true };
static const struct handed told_before = { .first_told = 1, .best_told = 50 };
static const struct handed tells_nothing = { .has_had = true };

/* clang-format off */
#define CRASHED HEARD(KILLED_BY(SIGSEGV))

static const struct {
	const char *when;
	struct shepherd_facts facts;
	const struct shepherd_policy *policy;
	const char *flags;	/* Progress, Counts, Blames, Rolls back, Goes on, Final */
} ends[] = {
	{"it crashed at once", {CRASHED}, &policy, " CB G "},
	{"it crashed from nothing", {CRASHED, .launch.has_checkpoint = false}, &policy, " C  G "},
	{"it got further", {CRASHED, .launch.has_come_further = true, .launch.is_trusted = true},
	 &policy, " C  G "},
	{"it saved", {CRASHED, .launch.has_come_further = true, .launch.is_trusted = true,
		      .launch.has_saved = true}, &policy, "PC  G "},
	{"it completed", {HEARD(EXITED(0))}, &policy, " C    "},
	{"its third failure", {CRASHED, .failures = 2}, &policy, " CB   "},
	{"its first after progress", {CRASHED, .failures = 0, .has_progressed = true}, &policy, " CB G "},
	{"nobody's fault: killed by an order", {HEARD(KILLED_BY(SIGTERM)), .order = ORDER_KILL,
						.stop = ASKED(STOP_ORDERED, NOW)}, &policy, " C    "},
	{"the time limit", {HEARD(EXITED(1)), .is_warned = true, .stop = ASKED(STOP_SIGNALLED, NOW)},
	 &policy, " C    "},
	{"hung", {HEARD(KILLED_BY(SIGKILL)), .stop = ASKED(STOP_HUNG, NOW)}, &policy, " CB G "},
	{"ranks were left over", {HEARD(EXITED(143)), .launch.srun_ends_ms = NOW - LEFT_MS,
				  .stop = ASKED(STOP_LEFT_OVER, NOW)}, &by_srun, " CB G "},
	{"they were, and may be yet", {HEARD(KILLED_BY(SIGKILL)), .launch.srun_ends_ms = NOW - LEFT_MS,
				       .stop = ASKED(STOP_LEFT_OVER, NOW)}, &by_srun, " CB   "},
	{"a node was lost", {HEARD(KILLED_BY(SIGKILL)), .lost_node = "n2", .launch.node = "n2",
			     .launch.is_node_broken = true, .stop = ASKED(STOP_NODE, NOW)}, &by_srun, "      "},
	{"a spare took its place, and nothing of it runs any more",
	 {HEARD(KILLED_BY(SIGKILL)), .lost_node = "n2", .launch.node = "n2", .launch.is_node_broken = true,
	  .launch.is_replaced = true, .launch.is_quiet = true, .stop = ASKED(STOP_NODE, NOW)}, &by_srun, "    G "},
	{"a spare took its place, but ranks may live",
	 {HEARD(KILLED_BY(SIGKILL)), .lost_node = "n2", .launch.node = "n2", .launch.is_node_broken = true,
	  .launch.is_replaced = true, .stop = ASKED(STOP_NODE, NOW)}, &by_srun, "      "},
	{"a spare took its place, and srun ended by itself: ranks may live",
	 {HEARD(EXITED(1)), .lost_node = "n2", .launch.node = "n2", .launch.is_node_broken = true,
	  .launch.is_replaced = true, .stop = ASKED(STOP_NODE, NOW)}, &by_srun, "      "},
	{"nobody was heard any more: Slurm knows of which nodes",
	 {HEARD(EXITED(1)), .cut_off = "all silent", .launch.is_quiet = true, .stop = ASKED(STOP_NODE, NOW)},
	 &by_srun, "      "},
	{"srun could not reach a node", {HEARD(EXITED(1)), .launch.node = "n2", .launch.is_node_broken = true,
					 .launch.unreached_ms = NOW}, &by_srun, "      "},
	{"and a spare took its place", {HEARD(EXITED(1)), .launch.node = "n2", .launch.is_node_broken = true,
					.launch.unreached_ms = NOW, .launch.is_replaced = true}, &by_srun, "    G "},
	{"a GPU broke, and a spare took its node's place",
	 {CRASHED, .launch.node = "n1", .launch.is_node_broken = true, .launch.is_replaced = true}, &policy, " CB G "},
	{"the disk was full a moment ago", {CRASHED, .full_ms = NOW - 10}, &policy, "    G "},
	{"the disk is full", {CRASHED, .is_full = true, .full_ms = NOW - 10}, &policy, "    G "},
	{"the disk was full long ago", {CRASHED, .full_ms = A_MINUTE_AGO - 1}, &policy, " CB G "},
	{"it tells no steps, and lived for long",
	 {CRASHED, .handed = &tells_nothing, .launch.begun_ms = NOW - SOON_MS}, &policy, " C  G "},
	{"it tells no steps, and died soon", {CRASHED, .handed = &tells_nothing}, &policy, " CB G "},
	{"an srun that was killed", {CRASHED}, &by_srun, " CB   "},
	{"an srun that ended", {HEARD(EXITED(1))}, &by_srun, " CB G "},
	{"steps that could not be ended", {CRASHED, .launch.has_steps = true}, &policy, " CB   "},
	{"its node is broken", {CRASHED, .launch.node = "n1", .launch.is_node_broken = true}, &policy,
	 " CB   "},
	{"the same node twice", {CRASHED, .launch.node = "n1", .node_before = "n1"}, &policy, " CB   "},
	{"another node", {CRASHED, .launch.node = "n1", .node_before = "n2"}, &policy, " CB G "},
	{"the same node, and no other to be had", {CRASHED, .launch.node = "n1", .node_before = "n1"}, &own,
	 " CB G "},
	{"it found its own checkpoints",
	 {CRASHED, .handed = &told_before, .launch.first_told = 51, .launch.step_told = 60}, &own, "PC  G "},
	{"it began anew", {CRASHED, .handed = &told_before, .launch.first_told = 1,
			   .launch.step_told = 40, .launch.has_checkpoint = false}, &own, " C  G "},
	{"diverged", {HEARD(EXITED(1)), .launch.said_diverged = true}, &rolls, " C RG "},
	{"diverged again", {HEARD(EXITED(1)), .launch.said_diverged = true, .handed = &gone_back}, &rolls,
	 " C   F"},
	{"diverged, and nobody rolls back", {HEARD(EXITED(1)), .launch.said_diverged = true}, &policy,
	 " C    "},
	{"there is nothing to run", {HEARD(0), .launch.cannot_start = true}, &policy, " C    "},
};

/* clang-format on */

static void test_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct next end = launch_judge(&ends[i].facts, ends[i].policy, NOW);
		char flags[] = { end.made_progress ? 'P' : ' ',
				 end.counts ? 'C' : ' ',
				 end.blames ? 'B' : ' ',
				 end.rolls_back ? 'R' : ' ',
				 end.goes_on ? 'G' : ' ',
				 end.ending.is_final ? 'F' : ' ',
				 '\0' };

		if (strcmp(flags, ends[i].flags) != 0)
			fail_msg("%s: \"%s\" (%s)", ends[i].when, flags,
				 cause_name(end.ending.cause));
	}
}

/* A machine that has no process left says nothing of the run, which would fail for good. */
static void test_cannot_start(void **state)
{
	struct shepherd_facts f = { HEARD(0), .launch.cannot_start = true };

	(void)state;
	assert_int_equal(launch_judge(&f, &policy, NOW).ending.cause, CAUSE_LAUNCH_FAIL);
	f.launch.may_start_later = true;
	assert_int_equal(launch_judge(&f, &policy, NOW).ending.cause, CAUSE_CRASH);
}

/* A launch that makes steps for long after srun's word did not end by it. */
static void test_reached_after_all(void **state)
{
	struct shepherd_facts f = { HEARD(EXITED(1)), .launch.node = "n2",
				    .launch.is_node_broken = true, .launch.unreached_ms = NOW };

	(void)state;
	launch_survives(&f.launch, NOW + UNREACHED_SURVIVED_MS);
	assert_int_equal(launch_judge(&f, &by_srun, NOW).ending.cause, CAUSE_NODE_FAIL);
	launch_survives(&f.launch, NOW + UNREACHED_SURVIVED_MS + 1);
	assert_int_equal(launch_judge(&f, &by_srun, NOW).ending.cause, CAUSE_ERROR);
	assert_true(launch_has_sound_nodes(&f, &by_srun));
	f.launch.srun_ends_ms = NOW;
	launch_survives(&f.launch, NOW + UNREACHED_SURVIVED_MS);
	assert_int_equal(f.launch.srun_ends_ms, NOW);
	launch_survives(&f.launch, NOW + UNREACHED_SURVIVED_MS + 1);
	assert_int_equal(f.launch.srun_ends_ms, 0);
}

/* Steps behind a checkpoint mean that ranks were started again only where one has ended since the
 * newest. */
static void test_begun_again(void **state)
{
	struct launch l = { .first_told = -1, .step_told = -1, .step_saved = -1 };

	(void)state;
	launch_told_step(&l, 10, INT64_MIN, NOW);
	launch_told_step(&l, 1, NOW + 1, NOW + 2);
	assert_false(l.has_begun_again);
	launch_saved(&l, 8, false);
	launch_told_step(&l, 1, INT64_MIN, NOW + 3);
	launch_told_step(&l, 1, NOW - TOLD_LATE_MS, NOW + 3);
	launch_told_step(&l, 9, NOW + 1, NOW + 4);
	assert_false(l.has_begun_again);
	launch_told_step(&l, 11, NOW + 5, NOW + 6);
	launch_told_step(&l, 8, NOW + 5, NOW + 7);
	assert_true(l.has_begun_again);
	/* those were the last lines of a log */
	launch_told_step(&l, 11, NOW + 5, NOW + 7);
	assert_false(l.has_begun_again);
	/* also where a checkpoint was saved right before the end */
	launch_saved(&l, 11, false);
	launch_told_step(&l, 10, NOW + 5, NOW + 8);
	assert_true(l.has_begun_again);
	launch_told_step(&l, 11, NOW + 5, NOW + 8);
	assert_false(l.has_begun_again);
	/* one that tells few steps begins with the newest */
	launch_told_step(&l, 11, NOW + 5, NOW + 9);
	assert_true(l.has_begun_again);
}

/* What is named by its time alone says which is newer, and nothing of steps. */
static void test_saved_by_time(void **state)
{
	struct launch l = { .from_step = -1,
			    .step_to_beat = 20261128101400,
			    .first_told = -1,
			    .step_told = -1,
			    .step_saved = -1 };

	(void)state;
	launch_told_step(&l, 10, INT64_MIN, NOW);
	assert_true(l.has_come_further);
	assert_true(launch_saved(&l, 20261128101500, true));
	assert_false(launch_saved(&l, 20261128101300, true));
	launch_told_step(&l, 11, NOW + 1, NOW + 2);
	assert_false(l.has_begun_again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),         cmocka_unit_test(test_no_step_twice),
		cmocka_unit_test(test_ends),          cmocka_unit_test(test_reached_after_all),
		cmocka_unit_test(test_cannot_start),  cmocka_unit_test(test_begun_again),
		cmocka_unit_test(test_saved_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
