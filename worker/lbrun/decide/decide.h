/* SPDX-License-Identifier: MIT */
/* decide/ - the heart of lbrun, pure: from what is known to the next step, and nothing else.
 *
 * decide.h - what is the next step of this attempt?
 *
 *   shepherd_decide(facts, policy, now) → one step
 *
 * Pure: no I/O, no clock, no allocation. The shell (worker/lbrun/shepherd) writes what it hears
 * into the facts, asks, has the step noted, takes it, and asks again until the answer is NEXT_WAIT.
 * The simulator's lbrun (tests/sim/lbrun_model.c) is another shell around the same functions.
 *
 *   CLAIM ─▶ LOOK ─▶ (CHECK ─▶) SEARCH ─▶ LOOK ─▶ HAND_OVER ─▶ LAUNCH
 *                      ▲                               │
 *                      └── FINISH ◀── LOOK ◀── DRAIN ◀── CLEAR
 *                            └─▶ CLOSE ─▶ SYNC ─▶ RECORD ─▶ LEAVE
 *
 * The order is the promise: nothing is started before the claim is ours, the older attempts are
 * over and a last look at orders and newer claims was taken; nothing is started again before the
 * last process of the launch before is dead; exit.json comes last of all. */
#ifndef LBRUN_DECIDE_DECIDE_H
#define LBRUN_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/checkpoint/handed.h"
#include "common/run/attempt_params.h"
#include "worker/lbrun/end/ending.h"
#include "worker/lbrun/end/stopping.h"

enum {
	OLDER_WAIT_MS = 5 * 1000, /* an older lbrun looks for newer claims every 2 s */
	OLDER_LOOK_MS = 100,
	OUR_TERM_MS = 1000,  /* Slurm's SIGTERM to a whole job may reach us so long after others */
	CONT_MS = 5 * 1000,  /* and so long after the SIGCONT that it sends to all before */
	CLEAR_EVERY_MS = 10, /* between two passes over what is left */
	SRUN_KILL_MS = 3000, /* for srun to kill its step, on all nodes */
	RELAUNCH_PAUSE_MS = 1000,
	SEARCH_TRIES = 3,
	ROOM_WAIT_MS = 60 * 1000, /* for a disk that is full, before another launch */
	FULL_DISK_MS = 60 * 1000, /* so long a failed write may be why a trainer died */
	/* of a trainer that tells no steps: a failure this early is the start's */
	SOON_MS = 10 * 60 * 1000,
	TRY_EVERY_MS = 200,          /* to write what is still to be written at the end */
	LAST_WORDS_MS = 10 * 1000,   /* a full disk delays our end by this much at most, … */
	OWN_END_MS = 10 * 60 * 1000, /* … or by this where nobody has asked us to end */
	/* so long old checkpoints may take to go behind the last launch; the next attempt has them
	 * otherwise */
	LAST_PRUNE_MS = 60 * 1000,
	/* behind the scheduler's SIGKILL, until ranks that srun said it ends count as left over */
	LEFT_OVER_MS = 60 * 1000,
	DEFAULT_KILL_WAIT_MS = 30 * 1000, /* Slurm's default, where it is not known */
	LAST_DRAIN_MS = 60 * 60 * 1000,   /* and the node's stage, where nobody asks us to end */
	CHECK_KILL_MS = 3 * 1000,         /* between two tries to end a check of the nodes */
};

enum claim_state { CLAIM_NONE, CLAIM_OURS, CLAIM_TAKEN, CLAIM_FAILED };
enum looking { LOOKING_IDLE, LOOKING_BUSY, LOOKING_DONE, LOOKING_FAILED }; /* for a checkpoint */
/* The search died, or could not look: that says nothing of what is there. */
enum { FOUND_UNKNOWN = -2 };
enum stacks_state { STACKS_NONE, STACKS_BUSY, STACKS_DONE };
/* of the nodes, before they train ([preflight]) */
enum check_state { CHECK_NONE, CHECK_BUSY, CHECK_WELL, CHECK_BROKEN };

/* What does not change while the attempt lives. */
struct shepherd_policy {
	const struct attempt_params *params; /* borrowed */
	bool is_srun;                        /* the trainer is started by srun */
	bool in_slurm;                       /* another job could get other nodes */
	bool finds_own;                      /* the trainer finds its own checkpoints */
	/* ranks on other nodes that nobody answers stop within (heartbeat/); 0 = they do not */
	int64_t lease_ms;
};

/* One start of the trainer. */
struct launch {
	int64_t number;       /* 0 = none yet */
	bool is_open;         /* started, its end not recorded yet */
	bool cannot_start;    /* there is nothing to run: why is in `trouble` */
	bool may_start_later; /* for the machine had no process left, say */
	pid_t pid;
	bool has_ended;  /* its first process */
	int left;        /* descendants at the last count; -1 = not counted since that end */
	bool is_drained; /* all that it said was heard */
	int64_t begun_ms, ended_ms; /* monotonic; ended_ms 0 = it has not */
	int wait_status;
	bool said_stopped, said_diverged; /* its bye */
	bool reports;                     /* it, or a launch before it, spoke through LB_SOCKET */
	bool is_first;                    /* of the whole run */
	bool has_checkpoint;              /* it was started from one, … */
	int64_t from_step;                /* … of this step; -1 = it tells none */
	/* newest valid checkpoint at its start, suspects too: beyond is progress; -1 = none */
	int64_t step_to_beat;
	int64_t step_saved; /* newest valid checkpoint since; -1 = none */
	bool has_saved;     /* one beyond step_to_beat, or a new one that tells no step */
	/* steps that the trainer told: the first, the newest; -1 = none */
	int64_t first_told, step_told;
	int64_t stride_told; /* from the one before the newest */
	int64_t target_told; /* how many there are, as it told last; -1 = it did not */
	int64_t told_ms;     /* when it told a step beyond all before */
	/* a rank ended since, and steps began again behind what was saved: who started the ranks
	 * again, torchrun perhaps, knows only what this launch was handed */
	bool has_begun_again;
	bool has_come_further; /* than the checkpoint it was started from */
	bool is_trusted;       /* and that was noted */
	bool is_requeue_asked; /* it asked Slurm to requeue its job */
	bool is_submitted;     /* its script submitted itself again */
	bool is_preempted;     /* Slurm asked its steps to end, for another job */
	/* processes that the kernel killed for memory so far; -1 = not known */
	int64_t ooms_at_start, ooms;
	int64_t peak_mb, limit_mb; /* its largest process, what the job may take; 0 = not known */
	const struct rank_end *rank_end;   /* whose end ended the launcher; NULL = nobody's */
	const struct complaint *complaint; /* what it said of its end; NULL = nothing */
	bool end_is_last, raised_last;     /* nothing came behind that, or what was raised */
	bool lost_node_last;               /* or its launcher's word that it has lost a node */
	/* its script looks itself at how what it starts ends; has things in the background; ends
	 * with a status that it kept */
	bool is_caught, has_background, hands_on;
	char node[65];       /* where its end began, as far as we know; "" = nobody knows */
	bool is_node_broken; /* a line told of errors of that node */
	bool is_replaced;    /* that node left the job, and a spare takes its place */
	/* when srun said that it cannot start its ranks there; 0 = it did not */
	int64_t unreached_ms;
	/* when srun said that it ends what is left of it; 0 = it did not. That does not always come
	 * to pass: on a busy node a rank that has not quite begun misses the signal */
	int64_t srun_ends_ms;
	bool is_heard;    /* heartbeats of all its ranks came: each ends with its lease */
	bool is_quiet;    /* its ranks are known to have ended, on whatever node */
	bool has_steps;   /* steps of its sruns that could not be ended */
	bool is_hardware; /* a GPU told of them: that is not the trainer's doing */
};

struct shepherd_facts {
	/* who has the run */
	enum claim_state claim;
	int64_t claimed_ms;
	int64_t newest_claim;  /* number of the newest attempt that has one, as of the last look */
	bool older_may_live;   /* an attempt before this one that is not known to be over */
	bool older_left_ranks; /* nor are its ranks on other nodes: they have leases */
	int64_t looked_ms;     /* INT64_MIN = never */

	/* who wants it to end, and what else people want */
	enum run_order order; /* the strongest seen, ORDER_STOP at least; ORDER_RUN = none */
	bool goes_on;         /* the order is for this attempt alone: the run has another one */
	bool is_warned;       /* the time limit is near */
	int64_t signalled_ms; /* when that came first */
	int64_t continued_ms; /* when the last SIGCONT came; 0 = none has */
	int signalled;        /* SIGTERM, SIGINT or, to end all at once, SIGQUIT; 0 = none */
	bool wants_save, wants_stacks;
	const char *stop_text; /* of the reason that counts, for people; borrowed */

	/* the search for a checkpoint */
	enum looking looking;
	int found; /* 1; 0 = none to start from; -1 = none that may be used; FOUND_UNKNOWN */
	int64_t found_step, newest_step; /* of the one found, and of all valid ones; -1 = none */
	const struct handed *handed;     /* what came of earlier ones; borrowed */

	/* the trainer */
	struct launch launch; /* the newest */
	bool listens;         /* some trainer reads our socket */
	char lost_node[65];   /* of the launch: nobody hears it; "" = none */
	/* why nobody can be heard, no node's fault; borrowed, NULL = it is not so */
	const char *cut_off;
	int64_t hung_at_ms;       /* silent for too long from then on; INT64_MAX = never */
	enum stacks_state stacks; /* of this silence */
	const char *trouble;      /* why it cannot be searched or started; borrowed */

	/* the check of the nodes: what could not be checked counts as well */
	enum check_state check;
	int64_t check_began_ms;
	int64_t check_kill_ms;  /* when it is ended again; INT64_MAX = it was not ended yet */
	int64_t checks_failed;  /* attempts in a row before this one that ended by it */
	const char *check_text; /* what is broken; borrowed */

	/* no search before, for what it should find is still on its way from other nodes' stages */
	int64_t held_until_ms;
	bool is_draining; /* checkpoints in the node's stage that no copy of counts yet */
	bool is_pruning;  /* old checkpoints are being removed, or are to be */

	/* the disk */
	bool is_full;      /* it takes nothing at present */
	int64_t full_ms;   /* when it last took nothing; INT64_MIN = never */
	bool is_unwritten; /* lines wait for it */
	bool is_recorded;  /* exit.json is there */

	/* what was decided: written by shepherd_note */
	struct stopping stop;
	enum run_order heeded; /* the order that counts */
	bool has_last_look;    /* since the search, or since the trainer's end */
	int searches_lost;     /* in a row */
	bool is_handed_over;   /* the checkpoint, for the launch to come */
	bool is_first_launch;  /* that launch is the first of the run */
	int64_t kill_again_ms, cleared_ms;
	int64_t failures;                   /* launches in a row without progress */
	bool has_progressed;                /* some launch of this attempt did */
	bool was_node_lost;                 /* before: its ranks may yet write a word */
	char node_before[65];               /* launch.node of the launch before; "" = none */
	int64_t relaunch_ms, room_until_ms; /* end of the pause, and of waiting for a full disk */
	bool is_over;                       /* there will be no further launch: */
	struct ending ending;               /* of the newest launch, and at last of the attempt */
	bool is_closed, has_tried;          /* the attempt; and to record its end */
	int64_t closed_ms, tried_ms;
};

enum next_kind {
	NEXT_WAIT,      /* nothing to do before `at_ms` or the next news */
	NEXT_TURN_AWAY, /* the attempt, or the run, is another's: touch nothing */
	NEXT_CLAIM,
	NEXT_LOOK,  /* at claims and orders; `is_last`: at switches, too, before what follows */
	NEXT_HEED,  /* somebody wants the end: `why` */
	NEXT_CHECK, /* are the nodes fit to train on? */
	NEXT_CHECK_SKIP, /* too many attempts ended by that: this one trains all the same */
	NEXT_CHECK_KILL, /* it takes too long */
	NEXT_SEARCH,
	NEXT_SEARCH_LOST, /* it said nothing: it is made again */
	NEXT_HAND_OVER,   /* write down what the trainer will be started from */
	NEXT_LAUNCH,
	NEXT_TRUST,   /* the checkpoint was good: the trainer got beyond it */
	NEXT_SAVE,    /* ask the trainer for a checkpoint */
	NEXT_STACKS,  /* write down where it is; `is_hang`: because it hangs */
	NEXT_ASK,     /* the trainer to end, … */
	NEXT_TERM,    /* … more firmly, … */
	NEXT_KILL,    /* … and at once */
	NEXT_CLEAR,   /* `signo` to every descendant, and count them */
	NEXT_DRAIN,   /* hear the last of what it said */
	NEXT_FINISH,  /* record the end of the launch: facts.ending */
	NEXT_GIVE_UP, /* no trainer runs, and none will: facts.ending */
	NEXT_CLOSE,   /* the last line of the spool */
	NEXT_SYNC,    /* write what waits */
	NEXT_RECORD,  /* exit.json */
	NEXT_LEAVE,   /* the process ends */
	NEXT_COUNT
};

struct next {
	enum next_kind kind;
	int64_t at_ms;
	bool is_last;          /* LOOK */
	enum stop_why why;     /* HEED */
	bool at_once, is_news; /* HEED: without grace; people have not read this reason yet */
	bool is_hang;          /* STACKS */
	int signo;             /* CLEAR; 0 = count only */
	/* FINISH */
	bool made_progress;   /* a new checkpoint, or it went on where it was */
	bool counts;          /* against the launches that may make none */
	bool blames;          /* the checkpoint that it was started from */
	bool rolls_back;      /* the newest ones are to blame: training diverged */
	bool goes_on;         /* there is another launch in place */
	struct ending ending; /* FINISH, GIVE_UP */
};

/* As the attempt begins. */
void shepherd_begin(struct shepherd_facts *f, const struct shepherd_policy *policy);

/* The next step, for the shell to take. Nothing in it points anywhere. */
struct next shepherd_decide(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			    int64_t now_ms);
/* What follows from a step for the facts; before it is taken. */
void shepherd_note(struct shepherd_facts *f, const struct shepherd_policy *policy,
		   const struct next *next, int64_t now_ms);

/* May what is known of checkpoints be written down? Not once a newer attempt has the run: it knows
 * better. */
bool shepherd_may_remember(const struct shepherd_facts *f, const struct shepherd_policy *policy);

/* Its first process has ended. */
void launch_ended(struct launch *l, int wait_status, int64_t now_ms);
/* Nobody hears that node of it any more: stronger than all that was said of others before. */
void launch_node_lost(struct shepherd_facts *f, const char *node);
/* The trainer told this step; `rank_end_ms`: when a rank's end was told last, INT64_MIN = never. */
void launch_told_step(struct launch *l, int64_t step, int64_t rank_end_ms, int64_t now_ms);
enum { TOLD_LATE_MS = 5000 }; /* so long behind that end other ranks tell steps of before */
enum { UNREACHED_SURVIVED_MS = 60 * 1000 };
/* Some rank made a step: what srun said of a node so long before it did not end the launch. */
void launch_survives(struct launch *l, int64_t now_ms);
/* A whole checkpoint of this step (-1 = it tells none) is there since; is_time: that is when it was
 * made, and no step that a trainer tells. True: it is progress. */
bool launch_saved(struct launch *l, int64_t step, bool is_time);

/* Until when the last checkpoints may still be drained from the node's stage: the job then ends, or
 * is ended. INT64_MAX = that is not near. */
int64_t shepherd_drain_until_ms(const struct shepherd_facts *f,
				const struct shepherd_policy *policy);

const char *next_name(enum next_kind kind);

#endif
