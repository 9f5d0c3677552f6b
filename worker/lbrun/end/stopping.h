/* SPDX-License-Identifier: MIT */
/* stopping.h - when to ask, to SIGTERM and to SIGKILL. Pure: the clock is an argument.
 *
 *   asked ({"type":"stop"}) ──▶ SIGTERM to all descendants ──▶ SIGKILL to all descendants
 *
 * A trainer that reads our socket has a third of the grace to end by itself before SIGTERM; one
 * that does not gets SIGTERM at once. A stronger or a more urgent reason replaces a weaker one and
 * never delays what is due already. */
#ifndef LBRUN_END_STOPPING_H
#define LBRUN_END_STOPPING_H

#include <stdbool.h>
#include <stdint.h>

enum stop_why { /* weakest first */
		STOP_NOT,
		STOP_LEFT_OVER, /* a rank ended, and others go on though srun ends them, or again */
		STOP_REQUEUED,  /* it asked for a requeue, by which Slurm would end the job */
		STOP_HUNG,      /* nothing moves any more; lbrun's own verdict */
		STOP_NODE,      /* a node of the launch is lost: all ends at once */
		STOP_WARNED,    /* SIGUSR1, SIGUSR2: the time limit is near */
		STOP_SIGNALLED, /* SIGTERM or SIGQUIT without an order of lbd's */
		STOP_ORDERED,   /* a person's order, left by lbd */
		STOP_FENCED,    /* a newer attempt has the run */
		STOP_WHY_COUNT
};

enum stop_step { STEP_NONE, STEP_ASK, STEP_TERM, STEP_KILL, STEP_COUNT };

enum {
	/* From the warning to SIGTERM, for a trainer that was asked; time for a last checkpoint. At
	 * least this, else the grace of the request. */
	WARN_TO_TERM_MS = 60 * 1000,
	/* Slurm's default KillWait is 30 s, after which lbrun itself is killed: five sixths of
	 * it. */
	SCHEDULER_GRACE_MS = 25 * 1000,
};

struct stopping {
	enum stop_why why;
	int64_t grace_ms;           /* of the request that counts */
	int64_t scheduler_grace_ms; /* at most so long after the scheduler's own SIGTERM */
	int64_t due_ms[STEP_COUNT]; /* monotonic; INT64_MAX = never */
	bool done[STEP_COUNT];
};

/* `kill_wait_ms`: from the scheduler's SIGTERM to its SIGKILL; 0 = not known. */
void stopping_init(struct stopping *s, int64_t kill_wait_ms);
/* Asked to end with this grace; `listens`: some trainer reads our socket. */
void stopping_request(struct stopping *s, enum stop_why why, int64_t now_ms, int64_t grace_ms,
		      bool listens);
/* Everything ends now. */
void stopping_request_now(struct stopping *s, enum stop_why why, int64_t now_ms);

/* The step that is due and was not taken; STEP_NONE else. */
enum stop_step stopping_due(const struct stopping *s, int64_t now_ms);
/* It is taken now; after SIGKILL the weaker ones are, too. */
void stopping_took(struct stopping *s, enum stop_step step);
/* When some step is due; INT64_MAX = never. */
int64_t stopping_next_ms(const struct stopping *s);

#endif
