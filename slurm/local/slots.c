/* SPDX-License-Identifier: MIT */
/* slots.c - goes through the jobs in order, and takes or keeps back what each needs. */
#include "slurm/local/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

#define FIELD(name) offsetof(struct slots, name)

/* The kinds of slots, in the order in which a lack of them is told. */
static const struct kind {
	size_t field;
	enum slot_verdict lack;
	const char *key, *unit;
} kinds[] = {
	{ FIELD(gpus), SLOT_NO_GPUS, "slurm.gpus_per_node", "GPUs" },
	{ FIELD(cpus), SLOT_NO_CPUS, "slurm.cpus_per_task", "CPUs" },
	{ FIELD(mem_mb), SLOT_NO_MEM, "slurm.mem", "MB" },
	{ FIELD(jobs), SLOT_NO_JOBS, "local.jobs", "jobs" },
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static int64_t *amount(struct slots *s, const struct kind *kind)
{
	return (int64_t *)((char *)s + kind->field);
}

static int64_t amount_of(const struct slots *s, const struct kind *kind)
{
	return *(const int64_t *)((const char *)s + kind->field);
}

/* The first kind that is short, NULL when all of it fits. */
static const struct kind *short_of(const struct slots *free, const struct slots *wants)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (amount_of(wants, &kinds[i]) > 0 &&
		    amount_of(wants, &kinds[i]) > amount_of(free, &kinds[i]))
			return &kinds[i];
	return NULL;
}

static void subtract(struct slots *from, const struct slots *wants)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		*amount(from, &kinds[i]) -= amount_of(wants, &kinds[i]);
}

/* A job that waits keeps back what is there of what it needs. */
static void keep_back(struct slots *from, const struct slots *wants)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		int64_t *have = amount(from, &kinds[i]), want = amount_of(wants, &kinds[i]);

		*have = *have > want ? *have - want : 0;
	}
}

/* A job takes one of the machine's jobs, where these are counted. */
static struct slots whole(const struct slots *machine, const struct slots *wants)
{
	struct slots all = *wants;

	all.jobs = machine->jobs > 0 ? 1 : 0;
	return all;
}

static bool is_at_limit(const struct slot_job *jobs, size_t count, const struct slot_job *task)
{
	int64_t running = 0;

	if (task->array_id == 0 || task->array_limit <= 0)
		return false;
	for (size_t i = 0; i < count; i++)
		running += jobs[i].array_id == task->array_id &&
			   (jobs[i].holds || jobs[i].verdict == SLOT_STARTS);
	return running >= task->array_limit;
}

static void lack(struct slot_job *job, const struct kind *kind, const struct slots *free)
{
	job->verdict = kind->lack;
	job->free = amount_of(free, kind) > 0 ? amount_of(free, kind) : 0;
}

void slots_plan(const struct slots *machine, struct slot_job *jobs, size_t count)
{
	struct slots free = *machine, open;

	for (size_t i = 0; i < count; i++) {
		struct slots wants = whole(machine, &jobs[i].wants);

		jobs[i].verdict = jobs[i].holds ? SLOT_TAKEN : SLOT_BEHIND;
		jobs[i].free = 0;
		if (jobs[i].holds)
			subtract(&free, &wants);
	}
	open = free;
	for (size_t i = 0; i < count; i++) {
		struct slots wants = whole(machine, &jobs[i].wants);
		const struct kind *kind = short_of(&free, &wants);

		if (jobs[i].holds)
			continue;
		if (short_of(machine, &wants)) {
			jobs[i].verdict = SLOT_NEVER;
		} else if (is_at_limit(jobs, count, &jobs[i])) {
			jobs[i].verdict = SLOT_ARRAY_LIMIT;
		} else if (!short_of(&open, &wants)) {
			jobs[i].verdict = SLOT_STARTS;
			subtract(&open, &wants);
			subtract(&free, &wants);
		} else {
			keep_back(&open, &wants);
			if (kind)
				lack(&jobs[i], kind, &free);
		}
	}
}

bool slots_would_start(const struct slots *machine, const struct slot_job *jobs, size_t count,
		       size_t at, const struct slots *wants)
{
	struct slot_job *other = xcalloc(count, sizeof(*other));
	bool starts;

	memcpy(other, jobs, count * sizeof(*other));
	other[at].wants = *wants;
	slots_plan(machine, other, count);
	starts = other[at].verdict == SLOT_STARTS;
	free(other);
	return starts;
}

int slots_check(const struct slots *machine, const struct slots *wants, struct err *err)
{
	const struct slots all = whole(machine, wants);
	const struct kind *kind = short_of(machine, &all);
	int64_t wanted = kind ? amount_of(wants, kind) : 0;

	if (!kind)
		return 0;
	return err_set(err, ERR_REFUSED, "%s: the job wants %lld %.*s, this machine has %lld%s",
		       kind->key, (long long)wanted,
		       (int)(strcspn(kind->unit, "s") + (wanted != 1)), kind->unit,
		       (long long)amount_of(machine, kind),
		       " to give ([local] in lbd.toml); it could never start");
}

void slots_reason(const struct slots *machine, const struct slot_job *job,
		  char out[SLOT_REASON_BYTES])
{
	static const char *const words[SLOT_VERDICT_COUNT] = {
		[SLOT_TAKEN] = "",
		[SLOT_STARTS] = "",
		[SLOT_BEHIND] = "Priority",
		[SLOT_ARRAY_LIMIT] = "JobArrayTaskLimit",
		[SLOT_NEVER] = "BadConstraints",
	};

	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (kinds[i].lack != job->verdict)
			continue;
		snprintf(out, SLOT_REASON_BYTES, "Resources: %lld of %lld %s free",
			 (long long)job->free, (long long)amount_of(machine, &kinds[i]),
			 kinds[i].unit);
		return;
	}
	snprintf(out, SLOT_REASON_BYTES, "%s", words[job->verdict]);
}
