/* SPDX-License-Identifier: MIT */
/* check.c - lbworker check: are these nodes fit to train on? Behind srun or mpiexec one rank a
 * node, or --ranks N on this machine. */
#include "worker/lbworker/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "worker/lbworker/check/health.h"
#include "worker/lbworker/check/node.h"
#include "worker/lbworker/check/search.h"
#include "worker/lbworker/check/sums_plot.h"
#include "worker/lbworker/check/together.h"
#include "worker/lbworker/ranks/local_ranks.h"

enum { EXIT_CANNOT = 1, EXIT_WORDS = 2 };

static int failed(const struct err *err)
{
	fprintf(stderr, "lbworker: %s\n", err->text);
	return err->code == ERR_USAGE ? EXIT_WORDS : EXIT_CANNOT;
}

struct words {
	const char *folder, *device, *reports, *svg, *sys, *kernel_log;
	double xid_hours, ranks, slow, clock_s, timeout_s, memory_mib, disk_mib, product, memory,
		search;
};

enum kind { WORD, NUMBER, WHOLE_NUMBER };
/* clang-format off */
#define WORD(name, member) { name, offsetof(struct words, member), WORD, 0, 0 }
#define NUMBER(name, member, least, most) { name, offsetof(struct words, member), NUMBER, least, most }
#define WHOLE(name, member, least, most) { name, offsetof(struct words, member), WHOLE_NUMBER, least, most }
/* clang-format on */

static const struct {
	const char *name;
	size_t at;
	enum kind kind;
	double least, most;
} options[] = {
	WORD("--folder", folder),
	WORD("--device", device),
	WORD("--reports", reports),
	WORD("--svg", svg),
	WORD("--sys", sys),
	WORD("--kernel-log", kernel_log),
	NUMBER("--xid-hours", xid_hours, 0, 1e6),
	WHOLE("--ranks", ranks, 1, COMM_RANKS_MAX),
	NUMBER("--slow", slow, 0, 1),
	NUMBER("--least-product", product, 0, 1e12),
	NUMBER("--least-memory", memory, 0, 1e12),
	WHOLE("--search", search, 0, 1),
	NUMBER("--clock", clock_s, 0, 1e9),
	NUMBER("--timeout", timeout_s, 1, 1e6),
	WHOLE("--memory-mib", memory_mib, 1, 1 << 20),
	WHOLE("--disk-mib", disk_mib, 1, 1 << 20),
};
enum { OPTIONS = sizeof(options) / sizeof(options[0]) };

static int take(struct words *w, const char *name, const char *value, struct err *err)
{
	size_t i = 0;
	char *end;

	while (i < OPTIONS && strcmp(name, options[i].name) != 0)
		i++;
	if (i == OPTIONS || !value)
		return err_set(err, ERR_USAGE, "check: %s%s; lbworker help check", name,
			       i == OPTIONS ? " is no option" : " wants a value");
	void *at = (char *)w + options[i].at;
	if (options[i].kind == WORD) {
		*(const char **)at = value;
		return 0;
	}
	bool is_whole = options[i].kind == WHOLE_NUMBER;
	double number = strtod(value, &end);
	if (*end != '\0' || end == value ||
	    !(number >= options[i].least && number <= options[i].most) ||
	    (is_whole && number != (double)(int64_t)number))
		return err_set(err, ERR_USAGE, "check: %s %s: a %snumber from %.15g to %.15g", name,
			       value, is_whole ? "whole " : "", options[i].least, options[i].most);
	*(double *)at = number;
	return 0;
}

/* --- one rank's own part ---------------------------------------------------------------------- */

struct check {
	struct ranks *ranks;
	struct health *health;
	const struct words *words;
	struct check_options what;
	struct check_limits limits;
	struct check_result mine;
	struct sum_row rows[SUM_ROWS];
};

static int device_of(const struct check *c, enum device_choice choice, int index,
		     struct opened *opened, struct err *err)
{
	const struct device_order order = { .choice = choice,
					    .choice_name = "--device cuda",
					    .threads = ranks_threads(c->ranks),
					    .compute = COMPUTE_FP32,
					    .index = index };

	return device_open(opened, &order, err);
}

/* A GPU that its driver tells of and that cannot be used is broken; so is one that was asked for.
 * -1: there is no device. */
static int open_device(struct check *c, enum device_choice choice, int index, struct opened *opened)
{
	static const char not_built[] = "there is no liblbcuda.so";
	struct err why = { 0 };

	if (device_of(c, choice, index, opened, &why) == 0)
		return 0;
	if (choice == DEVICE_CUDA && strstr(why.text, not_built) &&
	    strcmp(c->words->device, "auto") == 0) {
		printf("GPUs are not checked: %s\n", why.text);
		return device_of(c, DEVICE_CPU, -1, opened, &why);
	}
	snprintf(c->mine.fault, sizeof(c->mine.fault), "%.180s", why.text);
	return -1;
}

/* What a table row calls it; where GPUs are seen they are meant. DEVICE_CHOICES: no such word. */
enum { DEVICE_CHOICES = 3 };
static int choice_of(const char *word, int gpus)
{
	static const char *const names[DEVICE_CHOICES] = { "auto", "cpu", "cuda" };
	int i = 0;

	while (i < DEVICE_CHOICES && strcmp(word, names[i]) != 0)
		i++;
	return i == DEVICE_AUTO && gpus > 0 ? DEVICE_CUDA : i;
}

/* All GPUs of a node that has one rank; else the rank's own, as its launcher says. */
static void check_devices(struct check *c, int gpus)
{
	int choice = choice_of(c->words->device, gpus);
	int count = c->ranks->beside <= 1 && gpus > 1 && choice == DEVICE_CUDA ? gpus : 1;

	for (int i = 0; i < count && !c->mine.fault[0]; i++) {
		struct opened opened;
		char which[32] = "";
		if (open_device(c, (enum device_choice)choice, count > 1 ? i : -1, &opened))
			return;
		bool is_cpu = strcmp(opened.backend->name, "cpu") == 0;
		if (count > 1 && !is_cpu)
			snprintf(which, sizeof(which), "GPU %d: ", i);
		check_device(&opened, which, &c->what, &c->mine);
		opened.backend->close(opened.device);
		if (is_cpu)
			return;
	}
}

static void name_host(struct check_result *mine)
{
	const char *node = getenv("SLURMD_NODENAME");

	if (node)
		snprintf(mine->host, sizeof(mine->host), "%.63s", node);
	else
		gethostname(mine->host, sizeof(mine->host) - 1);
}

static int report(const struct check *c, const struct check_result *of, struct err *err)
{
	return c->words->reports ? check_report_write(c->words->reports, of, &c->limits, err) : 0;
}

static int check_alone(struct check *c, struct err *err)
{
	name_host(&c->mine);
	check_devices(c, health_gpus(c->health));
	if (!c->mine.fault[0])
		check_disk(&c->what, &c->mine);
	return report(c, &c->mine, err);
}

/* --- together --------------------------------------------------------------------------------- */

/* 1 when any rank says so, 0; -1 with err. */
static int is_any(struct ranks *ranks, bool mine, struct err *err)
{
	bool *all = xcalloc((size_t)ranks->size, sizeof(*all));
	int rc = ranks_gather(ranks, &mine, sizeof(mine), all, err);

	for (int r = 0; rc == 0 && r < ranks->size; r++)
		mine |= all[r];
	free(all);
	return rc ? -1 : mine;
}

/* A wrong sum is wrong on all ranks: whose fault it is, groups of them find out. */
static int find_culprit(struct check *c, const char *sum_fault, struct err *err)
{
	int is_wanted = is_any(c->ranks, sum_fault[0] || c->words->search > 0, err), rounds;
	char *fault = c->mine.fault;
	bool is_bad;

	if (is_wanted <= 0)
		return is_wanted;
	int bad = check_search(c->ranks, c->words->search > 0 ? c->words->slow : 0, &is_bad,
			       &rounds, err);
	if (bad < 0)
		return -1;
	if (c->ranks->rank == 0)
		printf("%d of %d ranks found to spoil sums, in %d rounds of groups\n", bad,
		       c->ranks->size, rounds);
	if (is_bad && !fault[0])
		snprintf(fault, sizeof(c->mine.fault),
			 "all-reduce: wrong or slow with this rank in it, %d rounds of groups say",
			 rounds);
	else if (bad == 0 && !fault[0])
		snprintf(fault, sizeof(c->mine.fault), "%s", sum_fault);
	return 0;
}

static int check_together(struct check *c, struct err *err)
{
	char sum_fault[192] = "";

	if (c->ranks->size == 1)
		return 0;
	if (check_links(c->ranks, &c->mine, err) ||
	    check_sums(c->ranks, c->rows, sum_fault, sizeof(sum_fault), err))
		return -1;
	return find_culprit(c, sum_fault, err);
}

/* --- telling ---------------------------------------------------------------------------------- */

static void say_sums(const struct check *c)
{
	printf("all-reduce of %d ranks over %s\n%12s %12s %12s %12s\n", c->ranks->size,
	       c->ranks->table ? c->ranks->table->name : "nothing", "bytes", "us", "GB/s",
	       "bus GB/s");
	for (int i = 0; i < SUM_ROWS; i++)
		printf("%12zu %12.1f %12.3f %12.3f\n", c->rows[i].bytes, c->rows[i].seconds * 1e6,
		       c->rows[i].algorithm_gbs, c->rows[i].bus_gbs);
}

static void say(const struct check_result *all, int size)
{
	int broken = 0;

	for (int r = 0; r < size; r++) {
		const struct check_result *c = &all[r];
		printf("[%s:%d] %s%s", c->host, r, c->fault[0] ? "BROKEN: " : "OK", c->fault);
		if (!c->fault[0])
			printf("  %s: product %.1f GFLOP/s, memory %.1f GB/s, disk %.2f GB/s",
			       c->device, c->speed[CHECK_PRODUCT], c->speed[CHECK_MEMORY],
			       c->speed[CHECK_DISK]);
		if (!c->fault[0] && size > 1)
			printf(", link %.2f GB/s, clock %+.3f s", c->speed[CHECK_LINK], c->clock_s);
		if (!c->fault[0] && c->nics > 0)
			printf(", %d NIC%s", c->nics, c->nics == 1 ? "" : "s");
		if (!c->fault[0] && c->past[0])
			printf(", %s", c->past);
		printf("\n");
		broken += c->fault[0] != '\0';
	}
	printf("%d of %d ranks OK\n", size - broken, size);
}

/* By rank 0, which knows all. */
static int tell(const struct check *c, const struct check_result *all, struct err *err)
{
	int size = c->ranks->size, rc = 0;

	if (c->ranks->rank != 0)
		return 0;
	if (size > 1)
		say_sums(c);
	say(all, size);
	for (int r = 0; rc == 0 && r < size; r++)
		rc = report(c, &all[r], err);
	if (rc == 0 && c->words->svg && size > 1)
		rc = sums_plot(c->words->svg, c->rows, size, err);
	return rc;
}

/* What is known of a node goes to all, whatever becomes of the rest. Returns how many are
 * broken. */
static int share(struct check *c, struct err *err)
{
	struct check_result *all = xcalloc((size_t)c->ranks->size, sizeof(*all));
	int rc = ranks_gather(c->ranks, &c->mine, sizeof(c->mine), all, err);
	int broken = rc ? -1 : check_judge(all, (size_t)c->ranks->size, &c->limits);
	if (rc == 0)
		rc = tell(c, all, err);
	/* each for its own node: that is how others hear whose it is */
	if (rc == 0 && all[c->ranks->rank].fault[0])
		fprintf(stderr, "lbworker: node check: %s\n", all[c->ranks->rank].fault);
	free(all);
	return rc ? -1 : broken;
}

/* Where srun starts several without MPI each looks at its own node, and its number is Slurm's. */
static int open_ranks(struct check *c, const struct ranks_options *o, struct err *err)
{
	const char *rank = getenv("SLURM_PROCID"), *tasks = getenv("SLURM_STEP_NUM_TASKS");

	if (ranks_open(c->ranks, o, err) == 0) {
		if (c->ranks->size > 1)
			c->mine.rank = c->ranks->rank;
		return 0;
	}
	if (err->code != ERR_USAGE || !rank || !tasks)
		return -1;
	*err = (struct err){ 0 };
	c->mine.rank = (int)strtol(rank, NULL, 10);
	if (c->mine.rank == 0)
		printf("no MPI: each of %s ranks looks at its own node alone\n", tasks);
	return 0;
}

/* A report is written before others are waited for: where one does not come, it alone has none. */
static int check_early(struct check *c, struct err *err)
{
	ranks_alone(c->ranks);
	c->mine.rank = c->ranks->rank;
	return check_alone(c, err);
}

static int check_with(const struct ranks_options *options_of_ranks, const struct words *w)
{
	struct ranks ranks = { 0 };
	struct err err = { 0 };
	const struct health_options looks = { w->sys, w->kernel_log, w->xid_hours };
	struct check c = { .ranks = &ranks,
			   .health = health_begin(&looks),
			   .words = w,
			   .what = { w->folder, (size_t)w->memory_mib, (size_t)w->disk_mib },
			   .limits = { w->slow, w->clock_s, { w->product, w->memory } } };

	const bool is_early = w->reports && !options_of_ranks->room;

	if ((is_early && check_early(&c, &err)) || open_ranks(&c, options_of_ranks, &err)) {
		health_end(c.health, &c.mine);
		return failed(&err);
	}
	int rc = is_early ? 0 : check_alone(&c, &err);
	if (rc == 0)
		rc = check_together(&c, &err);
	health_end(c.health, &c.mine);
	int broken = rc ? -1 : share(&c, &err);
	bool is_told = ranks.is_told;
	if (broken < 0)
		ranks_fail(&ranks, &err);
	ranks_close(&ranks);
	if (broken < 0 && !is_told)
		(void)failed(&err);
	/* who does not answer is broken, too; what we cannot do ourselves is not the nodes'
	 * fault */
	if (broken < 0 && err.code != ERR_TIMEOUT && err.code != ERR_REFUSED)
		return EXIT_CANNOT;
	return broken != 0 ? CHECK_EXIT_NODE : 0;
}

int check_command(int argc, char **argv)
{
	const char *folder = getenv("LB_CHECKPOINT_DIR");
	struct words w = { .folder = folder ? folder : ".",
			   .device = "auto",
			   .sys = "/sys",
			   .xid_hours = 24,
			   .ranks = 1,
			   .slow = 0.5,
			   .clock_s = 1,
			   .timeout_s = 60,
			   .memory_mib = 64,
			   .disk_mib = 16 };
	struct ranks_options options_of_ranks = { 0 };
	struct err err = { 0 };
	int ended;

	for (int i = 1; i < argc; i += 2)
		if (take(&w, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &err))
			return failed(&err);
	if (choice_of(w.device, 0) == DEVICE_CHOICES) {
		err_set(&err, ERR_USAGE, "check: --device is auto, cpu or cuda, not %s", w.device);
		return failed(&err);
	}
	options_of_ranks.begin_s = options_of_ranks.deadline_s = w.timeout_s;
	if (w.ranks > 1) {
		options_of_ranks.rank = local_ranks_start((int)w.ranks, &options_of_ranks.room,
							  &ended, &err);
		if (options_of_ranks.rank < 0 && err.code != ERR_NONE)
			(void)failed(&err);
		if (options_of_ranks.rank < 0)
			return ended;
	}
	return check_with(&options_of_ranks, &w);
}
