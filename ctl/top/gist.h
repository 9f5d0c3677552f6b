/* SPDX-License-Identifier: MIT */
/* top/ - lbctl top: all runs on one screen, worst first.
 *
 * gist.h - a run object of the verb `top`, at a moment, as the few numbers that people look at, and
 * the one fact that they should know. Pure. */
#ifndef CTL_TOP_GIST_H
#define CTL_TOP_GIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/run/run_state.h"
#include "ctl/base/text.h"

enum { FACT_BYTES = 256 };

/* What is wrong, or merely so; the higher, the more it asks for a person. */
enum worry {
	WORRY_NONE,
	WORRY_OVER,     /* completed, or a person ended it */
	WORRY_WELL,     /* it runs */
	WORRY_BEGINS,   /* not submitted yet, or no step yet */
	WORRY_WAITS,    /* in the queue, behind another run */
	WORRY_HELD,     /* until a person lets it go on */
	WORRY_STOPPING, /* on its way out */
	WORRY_OLD_END,  /* failed some hours ago */
	WORRY_UNSAVED,  /* for long without a checkpoint */
	WORRY_IDLE,     /* GPUs are held and do nothing */
	WORRY_SLOW,     /* against its own median */
	WORRY_LATE,     /* the time limit will come first */
	WORRY_BACKOFF,  /* an attempt failed, the next one is due */
	WORRY_LOSS,     /* no longer a number */
	WORRY_FAILED,
	WORRY_STALLED, /* no step for many times as long as usual */
};

struct gist {
	const json_t *run;        /* borrowed, as are the texts */
	const char *name, *group; /* group "": none */
	enum run_state state;
	enum worry worry;
	int64_t attempt, launch;                        /* 0 = none */
	int64_t step, target;                           /* -1 = not known */
	double loss, tokens_per_s, median_tokens_per_s; /* NaN = not known */
	double *losses; /* of the newest steps, oldest first; owned */
	size_t loss_count;
	const json_t *gpu_use; /* percent of each, borrowed; NULL = not told */
	size_t gpus_idle, gpus_known;
	/* times in ms; -1 = not known */
	int64_t eta_ms, limit_ms;  /* from now to its last step; to its job's time limit */
	int64_t saved_ms;          /* since the newest checkpoint */
	int64_t idle_ms, usual_ms; /* since the last step; between two */
	int64_t created_ms;        /* wall clock */
	char fact[FACT_BYTES];     /* in words; not cleaned */
};

/* `now_ms`: wall clock. gist_clear releases what it owns. */
void gist_make(const json_t *run, int64_t now_ms, struct gist *out);
void gist_clear(struct gist *gist);
enum color worry_color(enum worry worry);

#endif
