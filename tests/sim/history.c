/* SPDX-License-Identifier: MIT */
/* history.c - what happened in a world, in order, for the checker and for people. */
#include "tests/sim/history.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "tests/sim/run_numbers.h"

static const char *const fault_names[FAULT_COUNT] = {
	[FAULT_CONTROLLER_CRASH] = "the controller crashes",
	[FAULT_CONTROLLER_BACK] = "the controller is back",
	[FAULT_CONTROLLER_FROZEN] = "the controller freezes",
	[FAULT_CONTROLLER_THAWED] = "the controller thaws",
	[FAULT_COLD_START] = "cold start: all jobs forgotten, ids from 1",
	[FAULT_NODE_DIED] = "a node dies",
	[FAULT_NODE_LOST] = "a node is lost, but works on",
	[FAULT_NODE_FROZEN] = "a node freezes",
	[FAULT_NODE_CUT] = "a node is cut off",
	[FAULT_NODE_BACK] = "a node is back",
	[FAULT_NODE_LEAVES] = "a node is to be taken away",
	[FAULT_NODE_TAKEN] = "a node is taken away",
	[FAULT_NODE_BROKEN] = "a node is broken",
	[FAULT_PREEMPTED] = "preempted",
	[FAULT_CANCELLED] = "cancelled by an administrator",
	[FAULT_REQUEUED] = "requeued by an administrator",
	[FAULT_REBOOT] = "the machine is started anew",
	[FAULT_LBRUN_KILLED] = "lbrun is killed",
	[FAULT_CLOCK_JUMP] = "lbd's wall clock jumps",
	[FAULT_DAEMON_FROZEN] = "lbd freezes",
	[FAULT_DAEMON_THAWED] = "lbd thaws",
	[FAULT_DISK_FULL] = "the disk is full",
	[FAULT_DISK_FREE] = "the disk has room again",
};

/* What `a` and `b` of a fact are. */
enum detail {
	NOTHING,
	JOB,
	CAUSE,
	STATE,
	ORDER,
	LAUNCH,
	LAUNCH_END,
	STEP,
	EXIT,
	ID,
	WHICH,
	CHECKPOINT,
	NODES_OUT,
	NODE,
	STAMP,
	FROM,
	LINES
};

static const struct {
	const char *text;
	enum detail detail;
} kinds[FACT_COUNT] = {
	[FACT_SUBMITTED] = { "person  submitted", NOTHING },
	[FACT_ARRAY] = { "person  … an array", NOTHING },
	[FACT_ORDERED] = { "person  ordered", ORDER },
	[FACT_RESTARTED] = { "person  restarted", NOTHING },
	[FACT_SAVE_ASKED] = { "person  asked for a checkpoint", NOTHING },
	[FACT_WANTED] = { "ledger  wanted", ORDER },
	[FACT_INTENT] = { "ledger  intent", NOTHING },
	[FACT_EXCLUDED] = { "ledger  keeps away from", NODES_OUT },
	[FACT_ADOPTED] = { "ledger  held", JOB },
	[FACT_RELEASED] = { "ledger  queued", NOTHING },
	[FACT_STARTED] = { "ledger  running", NODE },
	[FACT_ENDED] = { "ledger  attempt ended", CAUSE },
	[FACT_MOVED] = { "ledger  run is", STATE },
	[FACT_JOB_MADE] = { "slurm   job made", JOB },
	[FACT_JOB_STARTED] = { "slurm   job started", JOB },
	[FACT_JOB_PLACED] = { "slurm   job is", NODE },
	[FACT_JOB_OVER] = { "slurm   job over", JOB },
	[FACT_JOB_FORGOTTEN] = { "slurm   job forgotten", JOB },
	[FACT_JOB_UNRELEASED] = { "slurm   release forgotten", JOB },
	[FACT_JOB_DEPENDS] = { "slurm   job depends on another", JOB },
	[FACT_DEPENDENCY_FAILED] = { "slurm   what the job depends on has failed", JOB },
	[FACT_REFUSED] = { "slurm   submission refused", NOTHING },
	[FACT_JOB_CANCELLED] = { "slurm   job cancelled by an administrator", JOB },
	[FACT_TASK_CANCELLED] = { "slurm   task cancelled by an administrator", NOTHING },
	[FACT_OVERTAKEN] = { "slurm   ends the job for maintenance", NOTHING },
	[FACT_ROOM] = { "slurm   tells whether nodes are free", ID },
	[FACT_ORDER_LEFT] = { "lbd     left an order", ORDER },
	[FACT_CLAIMED] = { "lbrun   claimed by", ID },
	[FACT_TURNED_AWAY] = { "lbrun   turned away", ID },
	[FACT_NODE_REFUSED] = { "lbrun   refuses its", NODE },
	[FACT_NODE_BLAMED] = { "lbrun   blames its", NODE },
	[FACT_TRAINER_STARTED] = { "trainer started", LAUNCH },
	[FACT_TRAINER_ENDED] = { "trainer ended", LAUNCH_END },
	[FACT_TRAINER_FROM] = { "trainer is started", FROM },
	[FACT_TRAINER_GONE] = { "trainer gone", LAUNCH },
	[FACT_TRAINER_FROZEN] = { "trainer frozen", LAUNCH },
	[FACT_TRAINER_THAWED] = { "trainer thawed", LAUNCH },
	[FACT_RANKS_ALONE] = { "ranks   go on alone", LAUNCH },
	[FACT_RANKS_QUIET] = { "ranks   are quiet", LAUNCH },
	[FACT_UNHEARD] = { "ranks   leave a note: nobody answers", LAUNCH },
	[FACT_TRAINER_HUNG] = { "trainer falls silent", LAUNCH },
	[FACT_TRAINER_LEFT_OVER] = { "trainer is left over by srun", LAUNCH },
	[FACT_WARNED] = { "lbrun   warned of the time limit", LAUNCH },
	[FACT_STEP] = { "lbrun   acknowledged", STEP },
	[FACT_CHECKPOINT] = { "trainer checkpoint", CHECKPOINT },
	[FACT_GOT_BEYOND] = { "trainer got beyond its checkpoint", FROM },
	[FACT_FROM_FAILED] = { "trainer failed before any new step", FROM },
	[FACT_FROM_DOUBTFUL] = { "trainer failed, which may be forgotten", FROM },
	[FACT_LINES_LOST] = { "lbrun   could not write", LINES },
	[FACT_SAVED] = { "disk    checkpoint", STAMP },
	[FACT_DROPPED] = { "disk    checkpoint dropped", STAMP },
	[FACT_EXITED] = { "lbrun   exit record", EXIT },
	[FACT_TASK_DONE] = { "lbrun   marks the task as done", NOTHING },
	[FACT_DAEMON_UP] = { "lbd     starts", NOTHING },
	[FACT_DAEMON_DOWN] = { "lbd     is gone", NOTHING },
	[FACT_FAULT] = { "fault  ", WHICH },
	[FACT_QUIET] = { "quiet: no more faults", NOTHING },
};

void history_add(struct history *h, int64_t at_ms, enum fact_kind kind, int run, int64_t attempt,
		 int64_t a, int64_t b)
{
	if (h->count == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 1024;
		h->facts = xrealloc(h->facts, h->cap * sizeof(*h->facts));
	}
	h->facts[h->count++] = (struct fact){
		.at_ms = at_ms,
		.a = a,
		.b = b,
		.attempt = (int32_t)attempt,
		.run = (int16_t)run,
		.kind = (uint8_t)kind,
	};
}

static void print_detail(const struct fact *f, FILE *out)
{
	switch (kinds[f->kind].detail) {
	case JOB:
		fprintf(out, " job=%lld.%lld", (long long)f->a, (long long)f->b);
		break;
	case CAUSE:
		fprintf(out, " %s", cause_name((enum cause)f->a));
		break;
	case STATE:
		fprintf(out, " %s (%s)", run_state_name((enum run_state)f->a),
			cause_name((enum cause)f->b));
		break;
	case ORDER:
		fprintf(out, " %s", run_order_name((enum run_order)f->a));
		break;
	case LAUNCH:
		fprintf(out, " launch=%lld", (long long)f->a);
		break;
	case LAUNCH_END:
		fprintf(out, " launch=%lld %s%s%s%s", (long long)f->a,
			cause_name((enum cause)(f->b % 100)),
			f->b / 100 % 10 ? ", with progress" : "",
			f->b / 10000 % 10 ? ", for the disk was full" : "",
			f->b / 100000 ? ", counts for nothing" : "");
		break;
	case STEP:
		fprintf(out, " seq=%lld step=%lld", (long long)f->a, (long long)f->b);
		break;
	case EXIT:
		fprintf(out, " %s last_seq=%lld", cause_name((enum cause)f->a), (long long)f->b);
		break;
	case ID:
		fprintf(out, " job=%lld", (long long)f->a);
		break;
	case CHECKPOINT:
		fprintf(out, " step=%lld", (long long)f->b);
		break;
	case STAMP:
		fprintf(out, " %lld step=%lld", (long long)f->a, (long long)f->b);
		break;
	case FROM:
		fprintf(out, " launch=%lld from=%lld", (long long)f->a, (long long)f->b);
		break;
	case LINES:
		fprintf(out, " lines=%lld", (long long)f->a);
		break;
	case WHICH:
		fprintf(out, " %s", fault_names[f->a]);
		break;
	case NODES_OUT:
		for (int n = 0; n < 64; n++)
			if ((uint64_t)f->a >> n & 1)
				fprintf(out, " n%d", n);
		break;
	case NODE:
		fprintf(out, " on n%lld", (long long)f->a);
		break;
	case NOTHING:
		break;
	}
}

static void print_fact(const struct fact *f, FILE *out)
{
	long long ms = f->at_ms;

	fprintf(out, "  %3lldd %02lld:%02lld:%02lld.%03lld  %s", ms / 86400000, ms / 3600000 % 24,
		ms / 60000 % 60, ms / 1000 % 60, ms % 1000, kinds[f->kind].text);
	if (task_of(f->run) >= 0)
		fprintf(out, " task=%d", task_of(f->run));
	if (f->attempt > 0)
		fprintf(out, " attempt=%d", (int)f->attempt);
	print_detail(f, out);
	fputc('\n', out);
}

enum { NEAR_MS = 60 * 1000 };

/* It, a task of it, or the array whose task it is. */
static bool concerns(const struct fact *f, int run)
{
	return f->run == run || (f->run >= 0 && run >= 0 && run_of(f->run) == run_of(run));
}

/* Of what is no run's own, the facts that happened close to one of this run's. */
static bool is_near(const struct history *h, size_t at, size_t end, int run)
{
	const struct fact *facts = h->facts;

	if (run < 0 || facts[at].kind == FACT_QUIET)
		return true;
	for (size_t i = at; i < end && facts[i].at_ms - facts[at].at_ms < NEAR_MS; i++)
		if (concerns(&facts[i], run))
			return true;
	for (size_t i = at; i-- > 0 && facts[at].at_ms - facts[i].at_ms < NEAR_MS;)
		if (concerns(&facts[i], run))
			return true;
	return false;
}

void history_print(const struct history *h, int run, int64_t until_ms, size_t limit, FILE *out)
{
	size_t end = h->count, first, found = 0;

	while (end > 0 && h->facts[end - 1].at_ms > until_ms)
		end--;
	for (first = end; first > 0 && found < limit; first--)
		found += concerns(&h->facts[first - 1], run);
	for (; first < end; first++) {
		const struct fact *f = &h->facts[first];

		if (concerns(f, run) || (f->run < 0 && is_near(h, first, end, run)))
			print_fact(f, out);
	}
}

void history_fini(struct history *h)
{
	free(h->facts);
	*h = (struct history){ 0 };
}
