/* SPDX-License-Identifier: MIT */
/* failed.c - Slurm says that a node ended a job, not which: sinfo tells which are down. */
#include "slurm/commands/failed.h"

#include <stdio.h>
#include <string.h>

#include "slurm/job_result.h"
#include "slurm/pipe/command.h"

/* sinfo tells a node once for each of its partitions, one after the other. */
static void read_down(char *rest, char out[JOB_FAILED_BYTES])
{
	char *line, *last = NULL;
	size_t used = 0;

	while ((line = strsep(&rest, "\n"))) {
		char *bar = strchr(line, '|');

		if (!bar || strncmp(bar + 1, "down", strlen("down")) != 0)
			continue;
		*bar = '\0';
		if (last && strcmp(last, line) == 0)
			continue;
		last = line;
		if (used + strlen(line) + 2 > JOB_FAILED_BYTES) {
			out[0] = '\0';
			return;
		}
		used += (size_t)snprintf(out + used, JOB_FAILED_BYTES - used, "%s%s",
					 used ? "," : "", line);
	}
}

static void ask(struct seen *job)
{
	const char *const words[] = { "sinfo",          "-h", "-N", "-a", "-t", "down",
				      "--format=%N|%T", NULL };
	struct said said;

	command_ask(words, &said);
	if (said.status == 0)
		read_down(said.out, job->failed);
	said_clear(&said);
}

/* Asked once for all jobs of a poll: tasks of an array end together, by hundreds. */
void failed_tell(struct look *look)
{
	const struct seen *told = NULL;

	for (size_t i = 0; i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (!job->row.token[0] || (job->row.state & SJ_MASK) != SJ_NODE_FAIL)
			continue;
		if (told)
			memcpy(job->failed, told->failed, sizeof(job->failed));
		else
			ask(job);
		told = job;
	}
}
