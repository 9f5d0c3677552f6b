/* SPDX-License-Identifier: MIT */
/* stacks.c - a child that writes, and its deadline. */
#include "worker/lbrun/watch/stacks.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/trainer/allocation.h"
#include "worker/lbrun/watch/dump.h"
#include "worker/lbrun/watch/nccl.h"
#include "worker/lbrun/end/reap.h"
#include "worker/lbrun/trainer/trainer.h"

enum {
	FILE_MAX_BYTES = 64 * 1024 * 1024,
	FILE_MODE = 0640,                  /* command lines are in it */
	WORDS_MAX_BYTES = 4 * 1024 * 1024, /* arguments or environment of a process */
};

/* --- the file --------------------------------------------------------------------------------- */

static FILE *open_file(const char *path)
{
	const struct rlimit limit = { FILE_MAX_BYTES, FILE_MAX_BYTES };
	int fd;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, FILE_MODE);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static void head(FILE *out, size_t count)
{
	char now[CLOCK_TEXT_MAX];
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	fprintf(out, "%s on %s: %zu process%s of the trainer\n",
		clock_text_zoned(clock_wall_ms(), now), host, count, count == 1 ? "" : "es");
}

static bool is_self(pid_t pid)
{
	return pid == getpid();
}

/* All descendants of `root` but this process. */
static void write_tree(FILE *out, pid_t root, int64_t until_ms)
{
	pid_t *pids;
	size_t count = descendants_list(root, &pids);
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_self(pids[i]))
			pids[kept++] = pids[i];
	}
	head(out, kept);
	dump_processes(out, pids, kept, until_ms);
	free(pids);
}

/* --- the nodes of a job ----------------------------------------------------------------------- */

/* Is `word` the at-th of the words in that file of /proc, or any of them where at is -1? */
static bool has_word(pid_t pid, const char *file, const char *word, int at)
{
	char *path = path_join("/proc/%d/%s", (int)pid, file);
	size_t len = 0;
	char *text = file_read(path, WORDS_MAX_BYTES, &len, NULL);
	const char *here = text;
	bool found = false;

	for (int n = 0; here && here < text + len && !found; n++) {
		found = strcmp(here, word) == 0 && (at < 0 || n == at);
		here += strlen(here) + 1;
	}
	free(text);
	free(path);
	return found;
}

static bool is_rank_watchdog(pid_t pid, const char *setting)
{
	return has_word(pid, "cmdline", "--rank", 1) && has_word(pid, "environ", setting, -1);
}

int stacks_node_main(const char *path)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *node = getenv("SLURMD_NODENAME");
	int64_t until_ms = clock_mono_ms() + STACKS_WORK_MS;
	char *setting = xasprintf("SLURM_JOB_ID=%s", job ? job : "");
	char *name = path_join("%s.%s.txt", path, node ? node : "node");
	FILE *out = open_file(name);
	pid_t *pids;
	size_t count = descendants_list(1, &pids);

	for (size_t i = 0; out && i < count; i++) {
		if (is_rank_watchdog(pids[i], setting))
			write_tree(out, pids[i], until_ms);
	}
	if (out) {
		char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));

		fclose(out);
		nccl_ask_recorders(folder);
		free(folder);
	}
	free(pids);
	free(name);
	free(setting);
	return out ? 0 : 1;
}

/* What NCCL and the ranks' recorders on this node say, beside the stacks at `path`. */
static void add_dossier(const char *path)
{
	char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	char *ras = path_join("%s.nccl.json", path);

	nccl_ask_recorders(folder);
	nccl_ask_ras(ras);
	free(ras);
	free(folder);
}

/* --- the child -------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) child(const char *path, bool is_srun, pid_t shepherd)
{
	int64_t until_ms = clock_mono_ms() + STACKS_WORK_MS;
	const char *nodes = getenv("SLURM_JOB_NUM_NODES");
	char *file = path_join("%s.txt", path);
	pid_t srun = -1;
	FILE *out;

	child_begin(shepherd);
	out = open_file(file);
	if (!out)
		_exit(1);
	write_tree(out, shepherd, until_ms);
	if (is_srun) {
		fprintf(out, "\nthe ranks: in the files beside this one, one for each node\n");
		fflush(out);
		srun = getenv("SLURM_JOB_ID")
			       ? allocation_start(nodes ? strtoll(nodes, NULL, 10) : 1, "--stacks",
						  path, fileno(out))
			       : -1;
	}
	fflush(out);
	add_dossier(path);
	if (srun > 0)
		dump_await(srun, STACKS_LIMIT_MS);
	fclose(out);
	_exit(0);
}

/* --- the shepherd's side ---------------------------------------------------------------------- */

int stacks_start(struct stacks *s, const char *folder, int64_t launch, bool is_srun, int64_t now_ms,
		 struct err *err)
{
	pid_t shepherd = getpid();
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm tm;
	char *path;

	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", localtime_r(&now, &tm));
	path = path_join("%s/stacks-%lld-%s", folder, (long long)launch, stamp);
	snprintf(s->name, sizeof(s->name), "stacks-%lld-%s.txt", (long long)launch, stamp);
	s->pid = fork();
	if (s->pid == 0)
		child(path, is_srun, shepherd);
	free(path);
	if (s->pid < 0) {
		s->pid = 0;
		s->name[0] = '\0';
		return err_errno(err, "fork");
	}
	s->deadline_ms = now_ms + STACKS_LIMIT_MS;
	return 0;
}

void stacks_reaped(struct stacks *s, pid_t pid, int wait_status)
{
	if (s->pid == 0 || pid != s->pid)
		return;
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0)
		s->name[0] = '\0';
	s->pid = 0;
	s->is_done = true;
}

bool stacks_turn(struct stacks *s, int64_t now_ms)
{
	bool is_done = s->is_done;

	if (s->pid > 0 && now_ms >= s->deadline_ms) {
		kill(s->pid, SIGKILL);
		s->deadline_ms = now_ms + STACKS_LIMIT_MS;
	}
	s->is_done = false;
	return is_done;
}

int64_t stacks_next_ms(const struct stacks *s)
{
	return s->pid > 0 ? s->deadline_ms : INT64_MAX;
}
