/* SPDX-License-Identifier: MIT */
/* A batch script under lbrun meets what it would meet under slurmd alone: its output goes to the
 * job's files byte for byte, and a signal that Slurm sends to the batch script reaches it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/paths.h"
#include "worker/lbrun/shepherd.h"

/* attempts/N/out.log is where lbctl logs looks; the job's own file stays where its owner wants it. */
static void link_output(const char *folder, const char *name, int fd)
{
	char link[32], target[4096], *path = path_join("%s/%s", folder, name);
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n > 0 && target[0] == '/') {
		target[n] = '\0';
		/* where out.log is there, the job writes to it itself */
		(void)!symlink(target, path);
	}
	free(path);
}

void script_output_open(struct shepherd *s, int rank)
{
	struct stat out, err;

	s->output.plain = true;
	link_output(s->folder, "out.log", STDOUT_FILENO);
	if (fstat(STDOUT_FILENO, &out) < 0 || fstat(STDERR_FILENO, &err) < 0 ||
	    (out.st_dev == err.st_dev && out.st_ino == err.st_ino))
		return;
	s->has_errors = true;
	output_init(&s->errors, STDERR_FILENO, s->node, rank);
	s->errors.plain = true;
	link_output(s->folder, "err.log", STDERR_FILENO);
}

/* The limit is near: what ends the script from now on is the limit. */
void script_signal(struct shepherd *s, int signo)
{
	s->stop.warned = true;
	if (s->launch.is_open && !s->launch.has_ended)
		kill(s->launch.pid, signo);
}
