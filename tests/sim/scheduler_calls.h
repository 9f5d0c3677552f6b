/* SPDX-License-Identifier: MIT */
/* scheduler_calls.h - how worlds submit a run's attempt, and tell what Slurm says of a job. */
#ifndef TESTS_SIM_SCHEDULER_CALLS_H
#define TESTS_SIM_SCHEDULER_CALLS_H

#include "common/base/json.h"
#include "daemon/engine/run.h"
#include "slurm/job_result.h"
#include "slurm/scheduler.h"

/* `fields` is taken. */
static inline void submit_attempt(const struct run *run, const char *ledger, json_t *fields,
				  scheduler_done done, void *arg)
{
	const struct job_request job = {
		.token = run->attempt.job.token,
		.ledger_id = ledger,
		.run = run->name,
		.fields = fields,
	};

	if (run->excluded)
		js_set_str(fields, "exc_nodes", run->excluded);
	run->scheduler->ops->submit(run->scheduler, &job, done, arg);
	json_decref(fields);
}

/* In Slurm's words: a JOB_…, a reason and an exit code. */
static inline void set_status(struct job_status *status, uint32_t state, uint32_t reason,
			      uint32_t exit_code)
{
	const struct slurm_word word = {
		.state = state,
		.reason = reason,
		.exit_code = exit_code,
		.is_held = reason == SR_HELD_USER,
	};

	slurm_word_judge(&word, status);
}

#endif
