/* SPDX-License-Identifier: MIT */
/* failed.c - Slurm says that a node ended a job, not which: sinfo tells which are down. */
#include "slurm/commands/failed.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/pipe/command.h"

/* sinfo tells a node once for each of its partitions, one after the other. */
static char *read_down(char *rest)
{
	char *line, *last = NULL;
	struct buf out;

	buf_init(&out, WIRE_FAILED_BYTES);
	buf_addf(&out, "%s", "");
	while ((line = strsep(&rest, "\n"))) {
		char *bar = strchr(line, '|');

		if (!bar || strncmp(bar + 1, "down", strlen("down")) != 0)
			continue;
		*bar = '\0';
		if (last && strcmp(last, line) == 0)
			continue;
		last = line;
		if (!wire_failed_add(&out, line))
			break;
	}
	return buf_take(&out);
}

static char *ask(void)
{
	const char *const words[] = { "sinfo",          "-h", "-N", "-a", "-t", "down",
				      "--format=%N|%T", NULL };
	struct said said;
	char *down;

	command_ask(words, &said);
	down = said.status == 0 ? read_down(said.out) : xstrdup("");
	said_clear(&said);
	return down;
}

/* Asked once for all jobs of a poll: tasks of an array end together, by hundreds. */
void failed_tell(struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (!job->row.token[0] || (job->row.state & SJ_MASK) != SJ_NODE_FAIL)
			continue;
		if (!look->down)
			look->down = ask();
		job->row.failed = look->down;
	}
}
