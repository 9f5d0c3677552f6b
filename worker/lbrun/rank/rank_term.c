/* SPDX-License-Identifier: MIT */
/* rank_term.c - tells launchers from ranks by their names and places in /proc. */
#include "worker/lbrun/rank/rank_term.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/rank/process.h"
#include "worker/lbrun/rank/rank.h"
#include "worker/lbrun/end/reap.h"

enum { ARGS_MAX = 1024 }; /* what names the program comes first */

/* As the kernel knows them: the first 15 bytes of the file's name, a script's, too. */
/* clang-format off */
static const struct {
	const char *comm;
	enum launcher what;
} names[] = {
	{"torchrun", LAUNCHER_LOCAL},	     {"accelerate", LAUNCHER_LOCAL},
	{"deepspeed", LAUNCHER_LOCAL},	     {"mpirun", LAUNCHER_LOCAL},
	{"mpirun.openmpi", LAUNCHER_LOCAL},  {"mpirun.mpich", LAUNCHER_LOCAL},
	{"mpiexec", LAUNCHER_LOCAL},	     {"mpiexec.openmpi", LAUNCHER_LOCAL},
	{"mpiexec.mpich", LAUNCHER_LOCAL},   {"mpiexec.hydra", LAUNCHER_LOCAL},
	{"hydra_pmi_proxy", LAUNCHER_LOCAL}, {"hydra_bstrap_pr", LAUNCHER_LOCAL},
	{"orterun", LAUNCHER_LOCAL},	     {"orted", LAUNCHER_LOCAL},
	{"prterun", LAUNCHER_LOCAL},	     {"prted", LAUNCHER_LOCAL},
	{"composer", LAUNCHER_LOCAL},
	/* they pass it on, and a second one means at once to many a trainer; with script(1) its
	 * terminal goes */
	{"uv", LAUNCHER_LOCAL},		     {"pixi", LAUNCHER_LOCAL},
	{"micromamba", LAUNCHER_LOCAL},	     {"timeout", LAUNCHER_LOCAL},
	{"script", LAUNCHER_LOCAL},
	{"srun", LAUNCHER_SRUN},	     {"lbrun", LAUNCHER_RANK},
};
/* clang-format on */

/* Of "python -m MODULE". */
static const char *const modules[] = {
	"torch.distributed.run",     "torch.distributed.launch",  "accelerate.commands.launch",
	"deepspeed.launcher.runner", "deepspeed.launcher.launch", "composer",
};

static bool is_module(const char *arg)
{
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (strcmp(arg, modules[i]) == 0)
			return true;
	}
	return false;
}

static enum launcher named(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].comm) == 0)
			return names[i].what;
	}
	return LAUNCHER_NONE;
}

/* What Python runs stands before the arguments of that. */
static enum launcher run_by_python(const char *args, size_t size)
{
	const char *end = args + size;

	for (const char *at = args; at < end; at += strlen(at) + 1) {
		const char *next = at + strlen(at) + 1;

		if (strcmp(at, "-m") == 0)
			return next < end && is_module(next) ? LAUNCHER_LOCAL : LAUNCHER_NONE;
		if (at != args && at[0] != '-')
			return named(path_base(at));
	}
	return LAUNCHER_NONE;
}

enum launcher launcher_is(const char *comm, const char *args, size_t size)
{
	enum launcher what = named(comm);

	if (what == LAUNCHER_NONE && strncmp(comm, "python", 6) == 0)
		what = run_by_python(args, size);
	return what;
}

static enum launcher what_is(pid_t pid)
{
	char comm[64], args[ARGS_MAX];
	size_t size;

	process_file(pid, "comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = '\0';
	size = process_file(pid, "cmdline", args, sizeof(args));
	return launcher_is(comm, args, size);
}

/* It never called exec: its command line is still that of its parent. */
static bool is_fork(pid_t pid)
{
	char args[ARGS_MAX], parents[ARGS_MAX];
	size_t size = process_file(pid, "cmdline", args, sizeof(args));

	return size > 0 &&
	       process_file(process_parent(pid), "cmdline", parents, sizeof(parents)) == size &&
	       memcmp(args, parents, size) == 0;
}

/* The lbrun in front of a rank looks after those below it. */
static bool is_below_rank(pid_t pid)
{
	for (pid_t at = process_parent(pid); at > 1 && at != getpid(); at = process_parent(at)) {
		if (what_is(at) == LAUNCHER_RANK)
			return true;
	}
	return false;
}

/* Python's multiprocessing starts its processes so where it does not fork. */
static bool is_multiprocessing(pid_t pid)
{
	static const char code[] = "from multiprocessing.";
	char args[ARGS_MAX];
	size_t size = process_file(pid, "cmdline", args, sizeof(args));

	for (const char *at = args; at < args + size; at += strlen(at) + 1) {
		const char *text = strncmp(at, "-c", 2) == 0 ? at + 2 : at;

		if (strncmp(text, code, sizeof(code) - 1) == 0)
			return true;
	}
	return false;
}

/* One who loads data for a trainer; below who does not care for SIGTERM it may be a rank. */
static bool is_helper(pid_t pid)
{
	return is_fork(pid) ||
	       (is_multiprocessing(pid) && process_catches(process_parent(pid), SIGTERM));
}

static bool is_asked(pid_t pid, enum launcher what)
{
	if (what == LAUNCHER_RANK)
		return true;
	return what == LAUNCHER_NONE && !is_helper(pid) && !is_below_rank(pid);
}

static bool harms(pid_t pid, pid_t other)
{
	bool is_parent = process_parent(other) == pid && is_multiprocessing(other);

	return (is_parent && process_catches(other, SIGTERM)) || process_reads(pid, other);
}

/* SIGTERM only kills it, and who writes into its pipe, or is its rank, would not live to save. */
static bool is_told_last(pid_t pid, const pid_t *living, size_t count)
{
	if (process_catches(pid, SIGTERM))
		return false;
	for (size_t i = 0; i < count; i++)
		if (living[i] != pid && harms(pid, living[i]))
			return true;
	return false;
}

static void send_term(pid_t pid)
{
	kill(pid, what_is(pid) == LAUNCHER_RANK ? RANK_TERM : SIGTERM);
	kill(pid, SIGCONT); /* a stopped process would not act on it */
}

static void forget(struct rank_term *term)
{
	free(term->pids);
	*term = (struct rank_term){ 0 };
}

bool rank_term_begin(struct rank_term *term)
{
	pid_t *pids, *asked;
	size_t living = descendants_list(getpid(), &pids), count = 0;
	bool has_srun = false;

	asked = xcalloc(living + 1, sizeof(*asked));
	for (size_t i = 0; i < living; i++) {
		enum launcher what = what_is(pids[i]);

		/* what an mpirun starts by srun are its own daemons: they end at SIGTERM, and their
		 * ranks with them */
		has_srun |= what == LAUNCHER_SRUN &&
			    what_is(process_parent(pids[i])) != LAUNCHER_LOCAL;
		if (is_asked(pids[i], what) && !is_told_last(pids[i], pids, living))
			asked[count++] = pids[i];
	}
	free(pids);
	for (size_t i = 0; i < count; i++) /* not before: who is gone has no forks */
		send_term(asked[i]);
	forget(term);
	*term = (struct rank_term){ .pids = asked, .count = count, .has_srun = has_srun };
	if (count == 0)
		rank_term_look(term);
	return has_srun;
}

static bool is_listed(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

void rank_term_look(struct rank_term *term)
{
	pid_t *pids;
	size_t living;
	bool is_due = true;

	if (term->pids == NULL)
		return;
	living = descendants_list(getpid(), &pids);
	for (size_t i = 0; i < living && is_due; i++)
		is_due = !is_listed(term->pids, term->count, pids[i]);
	/* the ranks of an srun are none of our descendants: they may be still at it */
	for (size_t i = 0; i < living && is_due && !term->has_srun; i++)
		send_term(pids[i]);
	if (is_due)
		forget(term);
	free(pids);
}
