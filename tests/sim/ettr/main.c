/* SPDX-License-Identifier: MIT */
/* main.c - ettr [--months N]: ETTR of one job of 64 nodes for a month, under lbd and under its
 * peers. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/log.h"
#include "tests/sim/ettr/lbd_month.h"
#include "tests/sim/ettr/peers.h"

enum { MONTHS_MAX = 10000, GPUS = JOB_NODES * GPUS_OF_NODE };

enum { COPY_MS = 5 * SECOND };

enum who {
	WHO_LBD,
	WHO_LBD_FORGETS,
	WHO_LBD_WEEK,
	WHO_LBD_LINE,
	WHO_LBD_STAGE,
	WHO_LBD_BOTH,
	WHO_LBD_ALL,
	WHO_REQUEUE,
	WHO_CHAIN,
	WHO_COUNT
};

static const char *const who_names[WHO_COUNT] = {
	"lbd",           "lbd, no records", "lbd, half_life 7d", "lbd, in line+",
	"lbd, stage*",   "lbd, 7d, stage*", "lbd, 7d, st*, +",   "sbatch --requeue",
	"--array=1-N%1",
};

static const struct {
	const char *source;
	double per_node_day;
} rates[] = {
	{ "Llama 3: 419 unexpected interruptions in 54 days on 2,048 nodes", 419.0 / (54 * 2048) },
	{ "Meta RSC: one failure in 7.9 h on 128 nodes", 24 / 7.9 / 128 },
};

static const char assumptions[] =
	"Assumed for all three, who live through the very same months:\n"
	"  - 72 nodes of 8 GPUs; Slurm prefers them in one order. Three of them have half\n"
	"    of all troubles (Lablup, arXiv 2605.09370: the top three nodes are over half\n"
	"    of all exclusions), unrepaired.\n"
	"  - Of 419 troubles 268 are GPU errors, 49 hangs (network, NCCL), 46 take the node\n"
	"    away for 4 h, 56 are crashes of the trainer (Llama 3, arXiv 2407.21783, table\n"
	"    5). 2 % of all jobs fail to start (a guess of ours), after 30 s.\n"
	"  - Waiting for nodes takes 5 min a job on average (exponential), a start 5 min to\n"
	"    its first new step (guesses). A checkpoint takes 40 s (BLOOM), as often as\n"
	"    loses least (Young 1974).\n"
	"  - No time limits: all three pass them alike. Whatever needs a person takes 1 h,\n"
	"    day and night.\n"
	"Assumed of lbd: its defaults, a node_error_regex that knows GPU errors, and a\n"
	"  trainer that tells its phases; so a hang ends after 60 s (steps take 10 s),\n"
	"  before the first step after 30 min. Real are engine, ledger, policy, node\n"
	"  memory, rules for launches in place and for hangs. Slurm tells of a lost node\n"
	"  after 300 s (SlurmdTimeout). A torn checkpoint costs no more than its own steps.\n"
	"  Without records (nodes.repeat_half_life = \"0\") it forgets a node that failed again and\n"
	"  again within a day, with nodes.half_life = \"7d\", and no records, any node within a week.\n"
	"  * With checkpoint.stage all ranks wait 5 s (a guess: 60 GB a node at 12 GB/s) for a\n"
	"  copy in their node, drained in the 40 s that saving takes without; so it is done\n"
	"  more often (Young). Hangs and crashes go on from the copy, once all nodes have\n"
	"  drained it (40 s), the rest from what was drained before.\n"
	"  + Where held jobs gain age (PriorityFlags=ACCRUE_ALWAYS) a job's wait begins when it\n"
	"  is made, and restart.prequeue = \"auto\" makes the next one behind the running one. One\n"
	"  that was made before other nodes are to be avoided is made anew.\n"
	"Assumed of the peers, at their best: a script that requeues itself after a crash\n"
	"  (which Slurm lets begin after 120 s, cred_expire) or a chain whose next task\n"
	"  follows at once; NCCL's watchdog on (10 min), lost nodes as above. They know no\n"
	"  bad nodes, and a checkpoint that was cut off makes each start fail until a\n"
	"  person has removed it.\n"
	"ETTR: time of steps that were kept, of all time; 10th: one month in ten is worse.\n"
	"  By kind: steps done again, until it was noticed, queue and pauses, start-up;\n"
	"  saving is not in \"all\".\n";

struct tally {
	double *ettr;                                  /* of each month */
	double lost_h[TROUBLE_COUNT], ms[WHERE_COUNT]; /* sums over months; GPU-hours */
};

static const struct circumstances usual = {
	.launch_failure = 0.02,
	.queue_ms = 5 * MINUTE,
	.start_ms = 5 * MINUTE,
	.save_ms = 40 * SECOND,
	.repair_ms = 4 * HOUR,
	.person_ms = HOUR,
};

static double gpu_hours(int64_t ms)
{
	return (double)ms / HOUR * GPUS;
}

/* Young's for the copy, but no sooner than the one before is drained. */
static int64_t stage_interval_ms(const struct circumstances *c)
{
	double mtbf_ms = DAY / (c->per_node_day * JOB_NODES);
	int64_t ms = young_interval_ms(COPY_MS, mtbf_ms);

	return ms > c->save_ms ? ms : c->save_ms;
}

static void live(enum who who, const struct month *m, struct tally *t, long n)
{
	struct account a = { 0 };

	if (who <= WHO_LBD_ALL)
		lbd_live(m,
			 &(struct lbd_abilities){
				 .half_life_ms = who == WHO_LBD_WEEK || who >= WHO_LBD_BOTH
							 ? 7 * (int64_t)DAY
							 : HALF_LIFE_MS,
				 .repeat_half_life_ms = who == WHO_LBD_FORGETS ||
									who == WHO_LBD_WEEK
								? 0
								: REPEAT_HALF_LIFE_MS,
				 .copy_ms = who >= WHO_LBD_STAGE ? COPY_MS : 0,
				 .interval_ms = stage_interval_ms(&m->c),
				 .ages_held = who == WHO_LBD_LINE || who == WHO_LBD_ALL },
			 &a, NULL);
	else
		peer_live(who == WHO_REQUEUE ? &peer_requeue : &peer_chain, m, &a);
	t->ettr[n] = account_ettr(&a);
	for (int i = 0; i < TROUBLE_COUNT; i++)
		t->lost_h[i] += gpu_hours(a.lost_ms[i]);
	for (int i = 0; i < WHERE_COUNT; i++)
		t->ms[i] += gpu_hours(a.ms[i]);
}

static void print_row(const char *name, struct tally *t, long months)
{
	static const enum where shown[] = {
		WHERE_REDONE, WHERE_NOTICE, WHERE_WAIT, WHERE_START, WHERE_SAVING,
	};
	double lost = 0, n = (double)months;

	qsort(t->ettr, (size_t)months, sizeof(t->ettr[0]), compare_double);
	for (int i = 0; i < TROUBLE_COUNT; i++)
		lost += t->lost_h[i] / n;
	printf("  %-17s %6.2f %6.2f  %6.0f", name, 100 * t->ettr[months / 2],
	       100 * t->ettr[months / 10], lost);
	for (int i = TROUBLE_GPU; i < TROUBLE_COUNT; i++)
		printf(" %6.0f", t->lost_h[i] / n);
	printf("  ");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		printf(" %6.0f", t->ms[shown[i]] / n);
	putchar('\n');
}

static void compare(size_t rate, long months)
{
	struct tally tallies[WHO_COUNT] = { 0 };
	struct circumstances c = usual;
	double mtbf_ms = DAY / (rates[rate].per_node_day * JOB_NODES);

	c.per_node_day = rates[rate].per_node_day;
	c.interval_ms = young_interval_ms(c.save_ms, mtbf_ms);
	for (int who = 0; who < WHO_COUNT; who++)
		tallies[who].ettr = calloc((size_t)months, sizeof(double));
	for (long n = 0; n < months; n++) {
		struct month m;

		month_draw(&m, &c, (uint64_t)n + 1);
		for (int who = 0; who < WHO_COUNT; who++)
			live((enum who)who, &m, &tallies[who], n);
		month_fini(&m);
	}
	printf("%s: %.1f a month on %d nodes; a checkpoint each %.0f min\n", rates[rate].source,
	       (double)MONTH_MS / mtbf_ms, JOB_NODES, (double)c.interval_ms / MINUTE);
	printf("  %-17s %13s  GPU-hours lost in a month, mean, by cause %18s   by kind\n", "",
	       "ETTR in %", "");
	printf("  %-17s %6s %6s  %6s %6s %6s %6s %6s %6s %6s    %6s %6s %6s %6s %6s\n", "",
	       "median", "10th", "all", "GPU", "hang", "node", "crash", "launch", "torn", "redone",
	       "notice", "wait", "start", "save");
	for (int who = 0; who < WHO_COUNT; who++) {
		print_row(who_names[who], &tallies[who], months);
		free(tallies[who].ettr);
	}
}

int main(int argc, char **argv)
{
	long months = argc == 3 && strcmp(argv[1], "--months") == 0 ? strtol(argv[2], NULL, 10)
								    : 80;

	if (months < 10 || months > MONTHS_MAX || (argc != 1 && argc != 3)) {
		fputs("usage: ettr [--months N]\n", stderr);
		return 2;
	}
	log_init("ettr", LOG_LEVEL_ERROR);
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	printf("ETTR of one job on %d nodes (%d GPUs), %ld simulated months\n", JOB_NODES, GPUS,
	       months);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		compare(i, months);
	fputs(assumptions, stdout);
	return 0;
}
