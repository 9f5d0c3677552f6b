/* SPDX-License-Identifier: MIT */
/* check.c - lbworker check: are these nodes fit to train on? Behind srun or mpiexec one rank a node, or
 * --ranks N on this machine. */
#include "worker/lbworker/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/check/together.h"
#include "worker/lbworker/ranks/local_ranks.h"

enum { EXIT_WORDS = 2 };

static int failed(const struct err *err)
{
	fprintf(stderr, "lbworker: %s\n", err->text);
	return err->code == ERR_USAGE ? EXIT_WORDS : CHECK_EXIT_NODE;
}

struct words {
	const char *folder, *device;
	double ranks, slow, clock_s, timeout_s, memory_mib, disk_mib;
};

static const struct {
	const char *name;
	size_t at;
	bool is_number;
	double least, most;
} options[] = {
	{ "--folder", offsetof(struct words, folder), false, 0, 0 },
	{ "--device", offsetof(struct words, device), false, 0, 0 },
	{ "--ranks", offsetof(struct words, ranks), true, 1, COMM_RANKS_MAX },
	{ "--slow", offsetof(struct words, slow), true, 0, 1 },
	{ "--clock", offsetof(struct words, clock_s), true, 0, 1e9 },
	{ "--timeout", offsetof(struct words, timeout_s), true, 1, 1e6 },
	{ "--memory-mib", offsetof(struct words, memory_mib), true, 1, 1 << 20 },
	{ "--disk-mib", offsetof(struct words, disk_mib), true, 1, 1 << 20 },
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
	if (!options[i].is_number) {
		*(const char **)at = value;
		return 0;
	}
	double number = strtod(value, &end);
	if (*end != '\0' || end == value ||
	    !(number >= options[i].least && number <= options[i].most))
		return err_set(err, ERR_USAGE, "check: %s %s: a number from %g to %g", name, value,
			       options[i].least, options[i].most);
	*(double *)at = number;
	return 0;
}

static int device_of(const struct words *w, struct opened *opened, const struct ranks *ranks,
		     struct err *err)
{
	static const char *const names[] = { "auto", "cpu", "cuda" };
	struct device_order order = { .choice_name = "--device cuda",
				      .threads = ranks_threads(ranks),
				      .compute = COMPUTE_FP32,
				      .index = -1 };
	size_t i = 0;

	while (i < 3 && strcmp(w->device, names[i]) != 0)
		i++;
	if (i == 3)
		return err_set(err, ERR_USAGE, "check: --device is auto, cpu or cuda, not %s",
			       w->device);
	order.choice = (enum device_choice)i;
	return device_open(opened, &order, err);
}

/* How many are broken. */
static int say(const struct check_result *all, int size)
{
	int broken = 0;

	for (int r = 0; r < size; r++) {
		const struct check_result *c = &all[r];
		printf("[%s:%d] %s%s", c->host, r, c->fault[0] ? "BROKEN: " : "OK", c->fault);
		if (!c->fault[0])
			printf("  %s: product %.1f GFLOP/s, memory %.1f GB/s, disk %.2f GB/s",
			       c->device, c->speed[CHECK_GEMM], c->speed[CHECK_MEMORY],
			       c->speed[CHECK_DISK]);
		if (!c->fault[0] && size > 1)
			printf(", link %.2f GB/s, clock %+.3f s", c->speed[CHECK_LINK], c->clock_s);
		printf("\n");
		broken += c->fault[0] != '\0';
	}
	printf("%d of %d ranks OK\n", size - broken, size);
	return broken;
}

/* What is known of a node goes to all, whatever becomes of the rest. */
static int check_all(struct ranks *ranks, const struct words *w, struct err *err)
{
	const struct check_options what = { w->folder, (size_t)w->memory_mib, (size_t)w->disk_mib };
	const struct check_limits limits = { w->slow, w->clock_s };
	struct check_result mine = { 0 };
	struct opened opened;

	if (device_of(w, &opened, ranks, err))
		return -1;
	check_node(&opened, &what, &mine);
	opened.backend->close(opened.device);
	if (ranks->size > 1 && (check_links(ranks, &mine, err) || check_sums(ranks, &mine, err)))
		return -1;
	struct check_result *all = xcalloc((size_t)ranks->size, sizeof(*all));
	int rc = check_gather(ranks, &mine, &limits, all, err);
	int broken = 0;
	for (int r = 0; rc == 0 && r < ranks->size; r++)
		broken += all[r].fault[0] != '\0';
	if (rc == 0 && ranks->rank == 0)
		(void)say(all, ranks->size);
	/* each for its own node: that is how others hear whose it is */
	if (rc == 0 && all[ranks->rank].fault[0])
		fprintf(stderr, "lbworker: node check: %s\n", all[ranks->rank].fault);
	free(all);
	return rc ? -1 : broken;
}

int check_command(int argc, char **argv)
{
	const char *folder = getenv("LB_CHECKPOINT_DIR");
	struct words w = { .folder = folder ? folder : ".",
			   .device = "auto",
			   .ranks = 1,
			   .slow = 0.5,
			   .clock_s = 1,
			   .timeout_s = 60,
			   .memory_mib = 64,
			   .disk_mib = 16 };
	struct ranks_options options_of_ranks = { 0 };
	struct err err = { 0 };
	struct ranks ranks;
	int ended;

	for (int i = 1; i < argc; i += 2)
		if (take(&w, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &err))
			return failed(&err);
	options_of_ranks.begin_s = options_of_ranks.deadline_s = w.timeout_s;
	if (w.ranks > 1) {
		options_of_ranks.rank = local_ranks_start((int)w.ranks, &options_of_ranks.room,
							  &ended, &err);
		if (options_of_ranks.rank < 0 && err.code != ERR_NONE)
			(void)failed(&err);
		if (options_of_ranks.rank < 0)
			return ended;
	}
	if (ranks_open(&ranks, &options_of_ranks, &err))
		return failed(&err);
	int broken = check_all(&ranks, &w, &err);
	bool is_told = ranks.is_told;
	if (broken < 0)
		ranks_fail(&ranks, &err);
	ranks_close(&ranks);
	if (broken < 0)
		return is_told ? CHECK_EXIT_NODE : (failed(&err), CHECK_EXIT_NODE);
	return broken > 0 ? CHECK_EXIT_NODE : 0;
}
