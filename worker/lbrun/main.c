/* SPDX-License-Identifier: MIT */
/* lbrun/ - the program that stands between scheduler and trainer, in each job.
 *
 * main.c - lbrun, the shepherd: the one process of a job between the scheduler and the trainer. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/attempt.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/procs.h"
#include "common/host/limits.h"
#include "worker/lbrun/trainer/core.h"
#include "worker/lbrun/checkpoint/part.h"
#include "worker/lbrun/end/watchdog.h"
#include "worker/lbrun/rank/rank.h"
#include "worker/lbrun/trainer/requeue.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/watch/stacks.h"

enum {
	EXIT_USAGE = 2,
	EXIT_BROKEN = 70,
	FOLDER_MAX = 2000,               /* bytes; $LB_HOME has half of that at most */
	JOB_MAX_BYTES = 8 * 1024 * 1024, /* a batch script of 4 MiB, and what lbd adds */
};

static const char usage[] =
	"usage: lbrun --job SCRIPT           run the attempt that the job script names\n"
	"       lbrun --attempt FOLDER       run the attempt that lbd prepared in FOLDER\n"
	"       lbrun --rank -- COMMAND...   stand in front of one rank, under srun\n"
	"       lbrun --node K -- COMMAND... in front of a torchrun with K ranks, on its node\n"
	"       lbrun --stacks PATH          write where the ranks on this node are, under srun\n"
	"       lbrun --stage-part PATH      copy this node's part of a checkpoint, under srun\n"
	"       lbrun --stage-clear STAGE    remove this node's stage, under srun\n"
	"       lbrun --version\n"
	"lbrun is started by the job that lbd submits; see lbrun(1).\n";

/* The scheduler's lock must not live on in the trainer. */
static void close_lock_on_exec(void)
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

/* Names of files are added to it, and it stands in lines of the log. */
static bool is_usable(const char *folder)
{
	size_t len = strlen(folder);

	if (len > FOLDER_MAX)
		log_error("the attempt's folder \"%.40s…\" has %zu characters, %d are allowed",
			  folder, len, FOLDER_MAX);
	else if (strpbrk(folder, "\n\r"))
		log_error("the attempt's folder has a line break in its path: choose another "
			  "$LB_HOME");
	else
		return true;
	return false;
}

static int run_attempt(const char *folder)
{
	char *path;
	int status;

	if (!is_usable(folder))
		return EXIT_USAGE;
	path = realpath(folder, NULL);
	if (!path) {
		log_error("%s: no such folder", folder);
		return EXIT_BROKEN;
	}
	close_lock_on_exec();
	/* as slurmstepd does: those of lbd, which is a job's parent without Slurm, are for lbd */
	if (!getenv("SLURM_JOB_ID"))
		limits_take(environ);
	status = watchdog_run(shepherd_main, path);
	free(path);
	return status;
}

/* The kernel gave us the script that we are the interpreter of. */
static int run_job(const char *script)
{
	struct err why = { 0 };
	char *text = file_read(script, JOB_MAX_BYTES, NULL, &why), *mark = NULL, *folder;
	int status = EXIT_BROKEN;

	if (text)
		mark = strstr(text, "\n" ATTEMPT_JOB_MARK);
	if (!text) {
		log_error("%s", why.text);
	} else if (!mark) {
		log_error("%s: no line \"%sFOLDER\"", script, ATTEMPT_JOB_MARK);
	} else {
		folder = mark + 1 + strlen(ATTEMPT_JOB_MARK);
		folder[strcspn(folder, "\n")] = '\0';
		status = run_attempt(folder);
	}
	free(text);
	return status;
}

int main(int argc, char **argv)
{
	struct err why = { 0 };

	if (requeue_is_called(argv[0]))
		return requeue_main(argv);
	file_fill_stdio();
	proc_take_signals();
	log_init("lbrun", LOG_LEVEL_INFO);
	core_forbid();
	if (failpoint_init("lbrun", &why) < 0) {
		log_error("%s", why.text);
		return EXIT_USAGE;
	}
	if (argc >= 3 && strcmp(argv[1], "--job") == 0)
		return run_job(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--attempt") == 0)
		return run_attempt(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "--rank") == 0 && strcmp(argv[2], "--") == 0)
		return rank_main(argv + 3);
	if (argc >= 5 && strcmp(argv[1], "--node") == 0 && strcmp(argv[3], "--") == 0)
		return rank_node_main((int)strtol(argv[2], NULL, 10), argv + 4);
	if (argc == 3 && strcmp(argv[1], "--stacks") == 0)
		return stacks_node_main(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--stage-part") == 0)
		return parts_main(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--stage-clear") == 0)
		return parts_clear_main(argv[2]);
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("lbrun %s\n", LB_VERSION) < 0;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(usage, stdout) < 0;
	fputs(usage, stderr);
	return EXIT_USAGE;
}
