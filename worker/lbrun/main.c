/* SPDX-License-Identifier: MIT */
/* lbrun - the shepherd: the one process of a job between the scheduler and the trainer. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/failpoint.h"
#include "common/log.h"
#include "worker/lbrun/core.h"
#include "worker/lbrun/guard.h"
#include "worker/lbrun/rank.h"
#include "worker/lbrun/shepherd.h"
#include "worker/lbrun/stacks.h"

enum { EXIT_USAGE = 2, EXIT_BROKEN = 70 };

static const char usage[] =
	"usage: lbrun --attempt FOLDER       run the attempt that lbd prepared in FOLDER\n"
	"       lbrun --rank -- COMMAND…     stand in front of one rank, under srun\n"
	"       lbrun --node K -- COMMAND…   in front of a torchrun with K ranks, on its node\n"
	"       lbrun --stacks PATH          write where the ranks on this node are, under srun\n"
	"       lbrun --version\n"
	"lbrun is started by the job that lbd submits; see lbd(8).\n";

/* The scheduler's lock must not live on in the trainer. */
static void guard_lock(void)
{
	const char *text = getenv("LB_LOCK_FD");
	char *end;
	long fd;

	if (!text)
		return;
	fd = strtol(text, &end, 10);
	if (end != text && *end == '\0' && fd > STDERR_FILENO && fd < 1 << 20)
		fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	unsetenv("LB_LOCK_FD");
}

/* A descriptor of ours must never become 0, 1 or 2. */
static void fill_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int run_attempt(const char *folder)
{
	char *path = realpath(folder, NULL);
	int status;

	if (!path) {
		log_error("%s: no such folder", folder);
		return EXIT_BROKEN;
	}
	guard_lock();
	status = guard_run(shepherd_main, path);
	free(path);
	return status;
}

int main(int argc, char **argv)
{
	struct err why = {0};

	fill_stdio();
	log_init("lbrun", LOG_LEVEL_INFO);
	core_forbid();
	if (failpoint_init("lbrun", &why) < 0) {
		log_error("%s", why.text);
		return EXIT_USAGE;
	}
	if (argc == 3 && strcmp(argv[1], "--attempt") == 0)
		return run_attempt(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "--rank") == 0 && strcmp(argv[2], "--") == 0)
		return rank_main(argv + 3);
	if (argc >= 5 && strcmp(argv[1], "--node") == 0 && strcmp(argv[3], "--") == 0)
		return rank_node_main((int)strtol(argv[2], NULL, 10), argv + 4);
	if (argc == 3 && strcmp(argv[1], "--stacks") == 0)
		return stacks_node_main(argv[2]);
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("lbrun %s\n", LB_VERSION) < 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(usage, stdout) < 0;
	fputs(usage, stderr);
	return EXIT_USAGE;
}
