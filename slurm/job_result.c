/* SPDX-License-Identifier: MIT */
/* job_result.c - the rules behind job_result.h, most special first.
 *
 * Slurm's reason misleads: a batch script killed by a signal is FAILED with JobLaunchFailure, just
 * as one whose output file could not be made. Only the shape of exit_code tells them apart. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "slurm/job_result.h"
#include "slurm/reasons.h"

enum shape {
	SHAPE_ANY,
	SHAPE_ZERO,
	SHAPE_EXITED,      /* exit(1..255) */
	SHAPE_NOT_STARTED, /* exit(126 or 127): the shell's word for "cannot run that" */
	SHAPE_SIGNALED,
	SHAPE_ERRNO /* no wait status at all: an error number of Slurm's, such as 4021 */
};

enum { ANY_REASON = -1 };

static const struct rule {
	enum slurm_state state;
	int reason;
	enum shape shape;
	enum cause cause;
} rules[] = {
	{ SJ_COMPLETE, ANY_REASON, SHAPE_ZERO, CAUSE_COMPLETED },
	{ SJ_CANCELLED, SR_DEPENDENCY_NEVER, SHAPE_ANY, CAUSE_LAUNCH_FAIL }, /* by Slurm */
	{ SJ_CANCELLED, ANY_REASON, SHAPE_ANY, CAUSE_KILLED },
	{ SJ_FAILED, ANY_REASON, SHAPE_NOT_STARTED, CAUSE_LAUNCH_FAIL },
	{ SJ_FAILED, SR_LAUNCH_FAILURE, SHAPE_SIGNALED, CAUSE_CRASH },
	{ SJ_FAILED, SR_LAUNCH_FAILURE, SHAPE_ERRNO, CAUSE_LAUNCH_FAIL },
	{ SJ_FAILED, SR_LAUNCH_FAILURE, SHAPE_ZERO, CAUSE_LAUNCH_FAIL },
	{ SJ_FAILED, SR_NODE_DOWN, SHAPE_ANY, CAUSE_NODE_FAIL },
	{ SJ_FAILED, SR_TIME_LIMIT, SHAPE_ANY, CAUSE_TIMEOUT },
	{ SJ_FAILED, ANY_REASON, SHAPE_EXITED, CAUSE_ERROR },
	{ SJ_FAILED, ANY_REASON, SHAPE_SIGNALED, CAUSE_CRASH },
	{ SJ_TIMEOUT, ANY_REASON, SHAPE_ANY, CAUSE_TIMEOUT },
	{ SJ_NODE_FAIL, ANY_REASON, SHAPE_ANY, CAUSE_NODE_FAIL },
	{ SJ_PREEMPTED, ANY_REASON, SHAPE_ANY, CAUSE_PREEMPTED },
	{ SJ_BOOT_FAIL, ANY_REASON, SHAPE_ANY, CAUSE_NODE_FAIL },
	{ SJ_DEADLINE, ANY_REASON, SHAPE_ANY, CAUSE_TIMEOUT },
	{ SJ_OOM, ANY_REASON, SHAPE_ANY, CAUSE_OOM },
};

static const char *const state_words[SJ_COUNT] = {
	[SJ_PENDING] = "PENDING",     [SJ_RUNNING] = "RUNNING",     [SJ_SUSPENDED] = "SUSPENDED",
	[SJ_COMPLETE] = "COMPLETED",  [SJ_CANCELLED] = "CANCELLED", [SJ_FAILED] = "FAILED",
	[SJ_TIMEOUT] = "TIMEOUT",     [SJ_NODE_FAIL] = "NODE_FAIL", [SJ_PREEMPTED] = "PREEMPTED",
	[SJ_BOOT_FAIL] = "BOOT_FAIL", [SJ_DEADLINE] = "DEADLINE",   [SJ_OOM] = "OUT_OF_MEMORY",
};

/* A wait status has either an exit code above bit 8 or a signal below bit 7, never both. */
static enum shape shape_of(uint32_t status, int *exit_code, int *signal)
{
	uint32_t low = status & 0x7f, code = status >> 8;

	*exit_code = -1;
	*signal = 0;
	if (status == 0) {
		*exit_code = 0;
		return SHAPE_ZERO;
	}
	if (code > 0 && code <= 0xff && (status & 0xff) == 0) {
		*exit_code = (int)code;
		return code == 126 || code == 127 ? SHAPE_NOT_STARTED : SHAPE_EXITED;
	}
	if (code == 0 && low > 0 && low <= 64) {
		*signal = (int)low;
		return SHAPE_SIGNALED;
	}
	return SHAPE_ERRNO;
}

static bool is_configuring(const struct slurm_word *word)
{
	return (word->state & SJ_MASK) == SJ_RUNNING && word->state & SJ_CONFIGURING;
}

static enum job_phase phase_of(const struct slurm_word *word)
{
	uint32_t base = word->state & SJ_MASK;

	if (base == SJ_PENDING)
		return word->is_held ? JOB_HELD : JOB_PENDING;
	if (is_configuring(word))
		return JOB_PENDING;
	if (base == SJ_RUNNING || base == SJ_SUSPENDED)
		return JOB_RUNNING;
	return word->state & SJ_COMPLETING ? JOB_ENDING : JOB_ENDED;
}

static enum cause cause_of(const struct slurm_word *word, enum shape shape)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];

		if (r->state == (enum slurm_state)(word->state & SJ_MASK) &&
		    (r->reason == ANY_REASON || (uint32_t)r->reason == word->reason) &&
		    (r->shape == SHAPE_ANY || r->shape == shape))
			return r->cause;
	}
	return CAUSE_LOST;
}

static void words_of(const struct slurm_word *word, struct job_status *out)
{
	uint32_t base = word->state & SJ_MASK;

	if (base < SJ_COUNT)
		text_copy(out->state, sizeof(out->state), state_words[base]);
	else
		snprintf(out->state, sizeof(out->state), "state %u", base);
	text_copy(out->reason, sizeof(out->reason),
		  base == SJ_SUSPENDED   ? SLURM_REASON_SUSPENDED
		  : is_configuring(word) ? SLURM_REASON_CONFIGURING
					 : slurm_reason_name(word->reason));
}

void slurm_word_judge(const struct slurm_word *word, struct job_status *out)
{
	enum shape shape;

	words_of(word, out);
	out->phase = phase_of(word);
	out->cause = CAUSE_NONE;
	out->exit_code = -1;
	out->signal = 0;
	if (out->phase != JOB_ENDING && out->phase != JOB_ENDED)
		return;
	shape = shape_of(word->exit_code, &out->exit_code, &out->signal);
	out->cause = cause_of(word, shape);
	/* A zero that no process returned says nothing. */
	if (shape == SHAPE_ZERO && out->cause != CAUSE_COMPLETED)
		out->exit_code = -1;
	/* nor does the 1 that Slurm itself writes where a deadline has passed */
	if ((word->state & SJ_MASK) == SJ_DEADLINE && word->exit_code == 1)
		out->signal = 0;
}

bool slurm_state_from_word(const char *word, uint32_t *state)
{
	size_t len = strcspn(word, " ");

	for (*state = 0; *state < SJ_COUNT; (*state)++)
		if (strlen(state_words[*state]) == len &&
		    memcmp(state_words[*state], word, len) == 0)
			return true;
	*state = 0;
	return false;
}

enum cause wait_status_judge(int status, int *exit_code, int *signal)
{
	static const enum cause causes[] = {
		[SHAPE_ANY] = CAUSE_LOST,       [SHAPE_ZERO] = CAUSE_COMPLETED,
		[SHAPE_EXITED] = CAUSE_ERROR,   [SHAPE_NOT_STARTED] = CAUSE_LAUNCH_FAIL,
		[SHAPE_SIGNALED] = CAUSE_CRASH, [SHAPE_ERRNO] = CAUSE_LOST,
	};

	return causes[shape_of((uint32_t)status, exit_code, signal)];
}

/* --- arrays ----------------------------------------------------------------------------------- */

enum { TOGETHER_S = 5 }; /* one scancel ends those that run a moment behind those that wait */

static bool is_cancelled(uint32_t state, uint32_t reason)
{
	return (state & SJ_MASK) == SJ_CANCELLED && reason != SR_DEPENDENCY_NEVER;
}

void array_ends_add(struct array_ends *ends, uint32_t state, uint32_t reason, int64_t end_time)
{
	if ((state & SJ_MASK) <= SJ_SUSPENDED)
		return;
	if (end_time > ends->last)
		ends->last = end_time;
	if (end_time > ends->otherwise && !is_cancelled(state, reason))
		ends->otherwise = end_time;
}

int array_record_weight(uint32_t state, uint32_t reason, bool has_nodes, int64_t end_time,
			const struct array_ends *ends)
{
	uint32_t base = state & SJ_MASK;
	bool is_last = end_time >= ends->otherwise && end_time + TOGETHER_S >= ends->last;

	if (base == SJ_RUNNING || base == SJ_SUSPENDED)
		return state & SJ_CONFIGURING ? 8 : base == SJ_SUSPENDED ? 9 : 10;
	if (base == SJ_PENDING)
		return reason == SR_DEPENDENCY_NEVER ? 5 : 7;
	if (state & SJ_COMPLETING)
		return 6;
	if (is_cancelled(state, reason))
		return !is_last ? 0 : has_nodes ? 3 : 4;
	return base == SJ_COMPLETE ? 1 : 2;
}
