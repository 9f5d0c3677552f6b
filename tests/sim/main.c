/* SPDX-License-Identifier: MIT */
/* main.c - sim: years of cluster time in a minute: the real engine and ledger in invented worlds.
 *
 *	sim --seeds N [--first K] [--jobs J]	worlds K … K+N-1, in J processes
 *	sim --seed K				one world, its broken promises in full
 *	sim --control NAME --seeds N	(sim.h: enum negative_control)
 *						a test of the test: some world must show the
 * 						damage */
#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/sim/sim.h"

static const char *const control_names[CONTROL_COUNT] = {
	[CONTROL_NONE] = "none",
	[CONTROL_NO_CLAIM] = "no-claim",
	[CONTROL_PLAIN_SUBMIT] = "plain-submit",
	[CONTROL_NO_WAIT] = "no-wait",
	[CONTROL_NO_CLEAR] = "no-clear",
	[CONTROL_NO_BLAME] = "no-blame",
	[CONTROL_NO_ROOM] = "no-room",
	[CONTROL_NO_CHECK] = "no-check",
	[CONTROL_NO_GOING_ON] = "no-going-on",
	[CONTROL_NO_NODES] = "no-nodes",
	[CONTROL_NO_OUTAGES] = "no-outages",
	[CONTROL_NO_WORDS] = "no-words",
	[CONTROL_NO_LEASE] = "no-lease",
	[CONTROL_NO_RANKS] = "no-ranks",
	[CONTROL_NO_MARKS] = "no-marks",
	[CONTROL_NO_SCANCEL] = "no-scancel",
};

struct options {
	int64_t seeds, first, jobs;
	enum negative_control control;
	bool is_verbose;
};

static enum negative_control control_from_name(const char *name)
{
	for (int i = 0; i < CONTROL_COUNT; i++)
		if (strcmp(control_names[i], name) == 0)
			return (enum negative_control)i;
	fprintf(stderr, "sim: %s: no such control\n", name);
	exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "control", required_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "v", table, NULL)) != -1) {
		if (c == 'n')
			o->seeds = strtoll(optarg, NULL, 10);
		else if (c == 'f' || c == 's')
			o->first = strtoll(optarg, NULL, 10);
		else if (c == 'j')
			o->jobs = strtoll(optarg, NULL, 10);
		else if (c == 'c')
			o->control = control_from_name(optarg);
		else if (c == 'v')
			o->is_verbose = true;
		else
			exit(2);
		if (c == 's')
			o->seeds = o->jobs = 1;
	}
}

struct tally {
	int64_t seeds, violations, first_bad; /* first_bad: -1 none */
};

/* Every `jobs`-th world, beginning with number `mine`. */
static struct tally run_share(const struct options *o, int64_t mine)
{
	struct tally t = { .first_bad = -1 };

	for (int64_t i = mine; i < o->seeds; i += o->jobs) {
		bool is_control = o->control != CONTROL_NONE;
		FILE *out = is_control && !o->is_verbose ? fopen("/dev/null", "w") : stdout;
		int broken = sim_run((uint64_t)(o->first + i), o->control, out);

		if (out != stdout)
			fclose(out);
		t.seeds++;
		t.violations += broken;
		if (broken && t.first_bad < 0)
			t.first_bad = o->first + i;
		if (broken)
			break;
	}
	return t;
}

static void add(struct tally *sum, const struct tally *t)
{
	sum->seeds += t->seeds;
	sum->violations += t->violations;
	if (t->first_bad >= 0 && (sum->first_bad < 0 || t->first_bad < sum->first_bad))
		sum->first_bad = t->first_bad;
}

/* false: a process came to no good end. */
static bool run_all(const struct options *o, struct tally *sum)
{
	bool is_well = true;
	int ends[2], status;
	struct tally t;

	if (o->jobs <= 1) {
		t = run_share(o, 0);
		add(sum, &t);
		return true;
	}
	if (pipe(ends) < 0)
		return false;
	for (int64_t mine = 0; mine < o->jobs; mine++) {
		if (fork() != 0)
			continue;
		t = run_share(o, mine);
		fflush(stdout);
		_exit(write(ends[1], &t, sizeof(t)) != (ssize_t)sizeof(t));
	}
	close(ends[1]);
	while (read(ends[0], &t, sizeof(t)) == (ssize_t)sizeof(t))
		add(sum, &t);
	close(ends[0]);
	while (wait(&status) > 0)
		is_well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return is_well;
}

static int tell(const struct options *o, const struct tally *t)
{
	if (o->control != CONTROL_NONE) {
		printf("sim: control=%s seeds=%lld %s", control_names[o->control],
		       (long long)t->seeds, t->violations ? "found at seed " : "NOT FOUND");
		if (t->violations)
			printf("%lld", (long long)t->first_bad);
		putchar('\n');
		return t->violations == 0;
	}
	if (t->violations)
		printf("sim: replay with: make sim SEED=%lld\n", (long long)t->first_bad);
	printf("sim: seeds=%lld simulated_years=%.1f violations=%lld\n", (long long)t->seeds,
	       (double)t->seeds * FAULT_DAYS / 365.25, (long long)t->violations);
	return t->violations != 0;
}

int main(int argc, char **argv)
{
	struct options o = { .seeds = 1, .first = 1, .jobs = 1 };
	struct tally sum = { .first_bad = -1 };

	parse(argc, argv, &o);
	log_init("sim", o.is_verbose ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* a tenth of the time would be for locks */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (!o.is_verbose && freopen("/dev/null", "w", stderr) == NULL)
		return 1;
	if (!run_all(&o, &sum))
		return 1;
	return tell(&o, &sum);
}
