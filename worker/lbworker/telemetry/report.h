/* SPDX-License-Identifier: MIT */
/* report.h - tells lbrun how the training goes, over LB_SOCKET; docs/PROTOCOL.md has the lines.
 *
 * The training never waits for it and never dies of it: the socket does not block, lines that
 * find no room wait in a bounded buffer, and when lbrun goes away reports end there. Without
 * LB_SOCKET every call does nothing. */
#ifndef LBWORKER_REPORT_H
#define LBWORKER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_order { REPORT_NOTHING = 0, REPORT_SAVE = 1, REPORT_STOP = 2 }; /* flags */

/* Of all ranks, of the step before. */
struct rank_times {
	int count;              /* 0: one rank, or the first step */
	double own_ms, data_ms; /* means: without waiting for others; for samples */
	int slowest;            /* the rank with the longest time of its own, and that: */
	double slowest_ms, slowest_data_ms;
};
void rank_times_add(struct rank_times *times, int rank, double own_ms, double data_ms);

struct report_step {
	int64_t step, target_step, tokens; /* tokens: trained so far */
	double loss, grad_norm, lr, tokens_per_s, step_ms;
	/* shares, not per cent, of the measured peak unless said (meter.h) */
	double tflops, mfu, mfu_causal, mfu_handbook;
	double mfu_sheet;     /* of the data sheet; NAN: there is none */
	double memory_gib;    /* highest so far */
	double own_ms;        /* of step_ms: without waiting for other ranks */
	double data_ms;       /* of step_ms: getting the samples */
	double checkpoint_ms; /* waited for checkpoints since the step before */
	double noise_tokens;  /* gradient noise scale; NAN: not known */
	/* of the busiest expert, and of the idlest one, as multiples of the mean of its layer; NAN:
	 * the model has none */
	double expert_most, expert_least;
	double val_loss; /* NAN: not a step with validation */
	struct rank_times ranks;
};

struct report;

/* Connects to `socket_path` (NULL or "": reports nothing) and says hello as rank 0 of `world`. A
 * socket that cannot be reached is one warning. Never NULL. */
struct report *report_open(const char *socket_path, int world);
/* Sends what still waits, for at most 2 s. NULL is fine. */
void report_close(struct report *report);

void report_phase(struct report *report, const char *name); /* setup, train, checkpoint, eval */
/* What of the set-up begins, in a word: lbrun tells people how long each took. */
void report_setup(struct report *report, const char *what);
void report_step(struct report *report, const struct report_step *step);
/* How long its own part of a step took another rank than 0, and of that getting samples. */
void report_pace(struct report *report, int64_t step, int rank, double own_ms, double data_ms);
void report_checkpoint(struct report *report, int64_t step, const char *absolute_path);
void report_bye(struct report *report, const char *status); /* done, stopped, diverged */

/* Orders that arrived since the last call, as flags of enum report_order. */
unsigned report_orders(struct report *report);

#endif
