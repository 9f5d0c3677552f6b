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

enum { COPY_MS = 5 * SECOND, HEARD_MS = 30 * SECOND /* watch.node_timeout by default */ };

/* Ways to live through a month; the last two are not lbd's. */
static const struct way {
	const char *name;
	bool forgets, week, staged, aged, heard;
	int spares;
} ways[] = {
	{ "lbd", .week = false },
	{ "lbd, no records", .forgets = true },
	{ "lbd, half_life 7d", .forgets = true, .week = true },
	{ "lbd, in line+", .aged = true },
	{ "lbd, stage*", .staged = true },
	{ "lbd, heard~", .heard = true },
	{ "lbd, 7d, stage*", .week = true, .staged = true },
	{ "lbd, 7d, st*, +", .week = true, .staged = true, .aged = true },
	{ "lbd, all: 7d*+~", .week = true, .staged = true, .aged = true, .heard = true },
	{ "  but 7d", .staged = true, .aged = true, .heard = true },
	{ "  but 7d, records", .forgets = true, .staged = true, .aged = true, .heard = true },
	{ "  but the stage", .week = true, .aged = true, .heard = true },
	{ "  but in line", .week = true, .staged = true, .heard = true },
	{ "lbd, all, 2 spares", .week = true, .staged = true, .aged = true, .heard = true,
	  .spares = 2 },
	{ "sbatch --requeue", .week = false },
	{ "--array=1-N%1", .week = false },
};

enum { WHO_COUNT = sizeof(ways) / sizeof(ways[0]), WHO_REQUEUE = WHO_COUNT - 2 };

static const struct {
	const char *source;
	double per_node_day;
} rates[] = {
	{ "Llama 3: 419 unexpected interruptions in 54 days on 2,048 nodes", 419.0 / (54 * 2048) },
	{ "Meta RSC: one failure in 7.9 h on 128 nodes", 24 / 7.9 / 128 },
};

static const char assumptions[] =
	"Assumed for all, who live through the very same months:\n"
	"  - 72 nodes of 8 GPUs; Slurm prefers them in one order. Three of them have half\n"
	"    of all troubles (Lablup, arXiv 2605.09370: the top three nodes are over half\n"
	"    of all exclusions), unrepaired.\n"
	"  - Of 419 troubles 268 are GPU errors, 49 hangs (network, NCCL), 46 take the node\n"
	"    away for 4 h, 56 are crashes of the trainer (Llama 3, arXiv 2407.21783, table\n"
	"    5). 2 % of all jobs fail to start (a guess of ours), after 30 s.\n"
	"  - Waiting for nodes takes 5 min a job on average (exponential), a start 5 min to\n"
	"    its first new step (guesses). A checkpoint takes 40 s (BLOOM), as often as\n"
	"    loses least (Young 1974).\n"
	"  - No time limits: all pass them alike. Whatever needs a person takes 1 h,\n"
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
	"  ~ With watch.node_timeout = 30s, the default, heartbeats tell of a lost node but for the\n"
	"  one that lbrun is on. Rows without it have it off.\n"
	"  With restart.spare_nodes = 2 a spare takes the place of a node that is lost or broken,\n"
	"  in the same job; a job waits for all its nodes. What two idle nodes cost, 11,520\n"
	"  GPU-hours a month, is in no column: they pay where jobs wait for hours.\n"
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

static void live(int who, const struct month *m, struct tally *t, long n)
{
	const struct way *way = &ways[who];
	struct account a = { 0 };

	if (who < WHO_REQUEUE)
		lbd_live(m,
			 &(struct lbd_abilities){
				 .half_life_ms = way->week ? 7 * (int64_t)DAY : HALF_LIFE_MS,
				 .repeat_half_life_ms = way->forgets ? 0 : REPEAT_HALF_LIFE_MS,
				 .copy_ms = way->staged ? COPY_MS : 0,
				 .interval_ms = stage_interval_ms(&m->c),
				 .heard_ms = way->heard ? HEARD_MS : 0,
				 .spares = way->spares,
				 .ages_held = way->aged },
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
	printf("  %-18s %6.2f %6.2f  %6.0f", name, 100 * t->ettr[months / 2],
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
			live(who, &m, &tallies[who], n);
		month_fini(&m);
	}
	printf("%s: %.1f a month on %d nodes; a checkpoint each %.0f min\n", rates[rate].source,
	       (double)MONTH_MS / mtbf_ms, JOB_NODES, (double)c.interval_ms / MINUTE);
	printf("  %-18s %13s  GPU-hours lost in a month, mean, by cause %18s   by kind\n", "",
	       "ETTR in %", "");
	printf("  %-18s %6s %6s  %6s %6s %6s %6s %6s %6s %6s    %6s %6s %6s %6s %6s\n", "",
	       "median", "10th", "all", "GPU", "hang", "node", "crash", "launch", "torn", "redone",
	       "notice", "wait", "start", "save");
	for (int who = 0; who < WHO_COUNT; who++) {
		print_row(ways[who].name, &tallies[who], months);
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
