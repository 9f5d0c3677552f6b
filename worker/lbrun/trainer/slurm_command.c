/* SPDX-License-Identifier: MIT */
/* slurm_command.c - forks, waits, and ends what does not come back. */
#include "worker/lbrun/trainer/slurm_command.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/config/amounts.h"
#include "worker/lbrun/trainer/trainer.h"

enum {
	OUTPUT_BYTES = 16 * 1024 * 1024,
	LONGEST_MS = 10 * 1000,
	ENDING_MS = 3 * 1000, /* KillWait leaves us 5 s behind our own SIGKILL, mostly */
	WAIT_STEP_MS = 20,
};

/* What people set for themselves, and the job was given: a command would say something else, ask
 * before it acts (of nobody, without end), or go to another cluster. */
static void forget_settings(void)
{
	static const char *const heads[] = { "SCANCEL_", "SCONTROL_", "SQUEUE_",
					     "SLURM_CLUSTERS=", "SLURM_TIME_FORMAT=" };
	char **kept = environ;

	for (char **entry = environ; *entry; entry++) {
		size_t i = 0, count = sizeof(heads) / sizeof(heads[0]);

		while (i < count && !text_begins_with(*entry, heads[i]))
			i++;
		if (i == count)
			*kept++ = *entry;
	}
	*kept = NULL;
}

/* In a folder of its own, and heard through `out`; -1 = by nobody. */
static pid_t start(const char *const *argv, const char *folder, int out)
{
	pid_t parent = getpid(), pid = fork();
	int null;

	if (pid != 0)
		return pid;
	child_begin(parent);
	forget_settings();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(fd == STDOUT_FILENO && out >= 0 ? out : null, fd);
	if (chdir(folder) == 0)
		execvp(argv[0], (char *const *)(const void *)argv);
	_exit(127);
}

static int await(pid_t pid, int64_t longest_ms)
{
	int64_t until_ms = clock_mono_ms() + longest_ms;
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_mono_ms() > until_ms) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return -1;
		}
		poll(NULL, 0, WAIT_STEP_MS);
	}
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int slurm_command(const char *const *argv, const char *folder)
{
	return await(start(argv, folder, -1), LONGEST_MS);
}

void slurm_command_start(const char *const *argv)
{
	start(argv, "/", -1);
}

static char *output_of(const char *const *argv, const char *folder, int64_t longest_ms)
{
	int out = file_in_memory("output"); /* a pipe would be full, and nobody reads meanwhile */
	char *text = NULL;

	if (out >= 0 && await(start(argv, folder, out), longest_ms) == 0 &&
	    lseek(out, 0, SEEK_SET) == 0)
		text = file_read_fd(out, argv[0], OUTPUT_BYTES, NULL, NULL);
	if (out >= 0)
		close(out);
	return text ? text : xstrdup("");
}

char *slurm_command_output(const char *const *argv, const char *folder)
{
	return output_of(argv, folder, LONGEST_MS);
}

char *slurm_this_job(void)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");
	const char *job = getenv("SLURM_JOB_ID");

	if (job && array && task)
		return xasprintf("%s_%s", array, task);
	return job ? xstrdup(job) : NULL;
}

/* "KEY=VALUE KEY=VALUE ..." of the job. Owned by the caller. */
static char *this_job_told(const char *folder, int64_t longest_ms)
{
	char *job = slurm_this_job();
	char *text = output_of((const char *[]){ "scontrol", "--oneliner", "show", "job", job,
						 NULL },
			       folder, longest_ms);

	free(job);
	return text;
}

bool slurm_is_preempted(const char *folder)
{
	static const char key[] = " PreemptTime=";
	char *text = this_job_told(folder, LONGEST_MS);
	const char *at = strstr(text, key);
	bool is = at && isdigit((unsigned char)at[sizeof(key) - 1]); /* "None" */

	free(text);
	return is;
}

bool slurm_is_at_limit(const char *folder)
{
	char *text = this_job_told(folder, ENDING_MS);
	bool is = strstr(text, " Reason=TimeLimit ") != NULL;

	free(text);
	return is;
}

int64_t slurm_time_left_ms(const char *folder)
{
	char *job = slurm_this_job();
	char *text = slurm_command_output((const char *[]){ "squeue", "--noheader", "--jobs", job,
							    "--format=%L", NULL },
					  folder);
	struct err unlimited = { 0 };
	int64_t left_ms = -1;

	text[strcspn(text, "\n")] = '\0';
	if (text[0] == '\0' || time_limit_parse(text, &left_ms, &unlimited) < 0)
		left_ms = -1;
	free(text);
	free(job);
	return left_ms;
}
