/* SPDX-License-Identifier: MIT */
/* excluded.c - Slurm says what a job waits for, not that it waits only because of the nodes that it
 * must not have: squeue tells which these are, sinfo whether they are idle. */
#include "slurm/commands/excluded.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/pipe/command.h"

enum { MOST_JOBS = 20 }; /* each is a command: a poll is not to take seconds */

static bool may_be_why(const struct seen *job)
{
	return job->row.token[0] && (job->row.state & SJ_MASK) == SJ_PENDING &&
	       (job->row.reason == SR_PRIORITY || job->row.reason == SR_RESOURCES ||
		job->row.reason == SR_NODE_NOT_AVAIL);
}

/* sinfo tells a node once for each of its partitions, one after the other. */
static int64_t count_idle(const char *nodes)
{
	const char *const words[] = {
		"sinfo", "-h", "-N", "-a", "-n", nodes, "--format=%N|%T", NULL
	};
	char *rest, *line, *last = NULL;
	struct said said;
	int64_t count = 0;

	command_ask(words, &said);
	rest = said.status == 0 ? said.out : NULL;
	while ((line = strsep(&rest, "\n"))) {
		char *bar = strchr(line, '|');

		if (!bar || strcmp(bar + 1, "idle") != 0)
			continue;
		*bar = '\0';
		count += !last || strcmp(last, line) != 0;
		last = line;
	}
	said_clear(&said);
	return count;
}

/* "12|n[1-2]", "12_[3-7]|n1" */
static void tell(struct look *look, char *line)
{
	uint32_t job_id = (uint32_t)strtoul(line, NULL, 10);
	const char *nodes = strchr(line, '|');

	if (!nodes || !nodes[1])
		return;
	for (size_t i = 0; i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (job->row.job_id == job_id && may_be_why(job)) {
			job->row.idle_excluded = count_idle(nodes + 1);
			return;
		}
	}
}

void excluded_tell(struct look *look)
{
	char *ids = xstrdup(""), *rest, *line;
	struct said said;
	int count = 0;

	for (size_t i = 0; i < look->count && count < MOST_JOBS; i++) {
		char *longer;

		if (!may_be_why(&look->jobs[i]))
			continue;
		longer = xasprintf("%s%s%u", ids, count++ ? "," : "",
				   (uint32_t)look->jobs[i].row.job_id);
		free(ids);
		ids = longer;
	}
	if (count) {
		const char *const words[] = { "squeue",  "-h", "-a", "-t",
					      "PENDING", "-j", ids,  "--format=%i|%x",
					      NULL };

		command_ask(words, &said);
		rest = said.status == 0 ? said.out : NULL;
		while ((line = strsep(&rest, "\n")))
			tell(look, line);
		said_clear(&said);
	}
	free(ids);
}
