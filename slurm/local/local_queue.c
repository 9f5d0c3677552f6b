/* SPDX-License-Identifier: MIT */
/* local_queue.c - who may start (slots.h), on which GPUs and CPUs. */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "slurm/local/local_state.h"

/* By what it really holds: the machine may have had more to give when the job started. */
static struct slot_job slot_job_of(const struct local *l, const struct local_job *job)
{
	struct slot_job s = { .wants = job->wants,
			      .array_id = job->task.array_id,
			      .array_limit = job->task.limit,
			      .holds = local_job_holds(job) };
	cpu_set_t cpus;

	if (!s.holds)
		return s;
	CPU_AND(&cpus, &job->cpus, &l->machine.cpus);
	s.wants.gpus = __builtin_popcountll(job->gpus & l->machine.gpus);
	s.wants.cpus = CPU_COUNT(&cpus);
	return s;
}

static void give_slots(const struct local *l, struct local_job *job)
{
	uint64_t gpus = 0;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (const struct local_job *other = l->jobs.first; other; other = other->next) {
		if (!local_job_holds(other))
			continue;
		gpus |= other->gpus;
		CPU_OR(&cpus, &cpus, &other->cpus);
	}
	job->gpus = gpus_pick(l->machine.gpus, gpus, job->wants.gpus);
	cpus_pick(&l->machine.cpus, &cpus, job->wants.cpus, &job->cpus);
}

static bool is_queued(const struct local_job *job)
{
	return job->status.phase == JOB_PENDING || local_job_holds(job);
}

size_t local_queue_plan(const struct local *l, struct local_job ***jobs, struct slot_job **plan)
{
	struct slots all = machine_slots(&l->machine);
	size_t count, n = 0;

	*jobs = local_jobs_sorted(&l->jobs, &count);
	*plan = xcalloc(count + 1, sizeof(**plan));
	for (size_t i = 0; i < count; i++) {
		if (!is_queued((*jobs)[i]))
			continue;
		(*plan)[n] = slot_job_of(l, (*jobs)[i]);
		(*jobs)[n++] = (*jobs)[i];
	}
	slots_plan(&all, *plan, n);
	return n;
}

void local_queue_turn(struct local *l)
{
	struct slots all = machine_slots(&l->machine);
	struct local_job **jobs;
	struct slot_job *plan;
	size_t n = local_queue_plan(l, &jobs, &plan);

	for (size_t i = 0; i < n; i++) {
		if (plan[i].verdict == SLOT_STARTS) {
			give_slots(l, jobs[i]);
			local_start_job(l, jobs[i]);
		} else if (plan[i].verdict != SLOT_TAKEN) {
			slots_reason(&all, &plan[i], jobs[i]->status.reason);
		}
	}
	free(plan);
	free(jobs);
}
