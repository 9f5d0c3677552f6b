/* SPDX-License-Identifier: MIT */
/* failed.c - Slurm says that a node ended a job, not which: sinfo tells which are down. */
#include "slurm/commands/failed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/run/hosts.h"
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

		if (!bar || !text_begins_with(bar + 1, "down"))
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

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (; *text; text += *text == '\n') {
		size_t n = strcspn(text, "\n");

		if (n == len && memcmp(text, line, n) == 0)
			return true;
		text += n;
	}
	return false;
}

static bool has_one_of(const char *down, const char *nodes)
{
	json_t *own = hosts_expand(nodes), *name;
	bool has = false;
	size_t i;

	json_array_foreach(own, i, name) {
		has = has || hosts_have(down, json_string_value(name));
	}
	json_decref(own);
	return has;
}

/* Jobs of a partition that was removed Slurm ends as if a node had failed: only those are looked at
 * that none of their nodes explains. *partitions are asked for once; owned by the caller. */
static bool lost_partition(const struct seen *job, const char *down, char **partitions)
{
	static const char *const words[] = { "sinfo", "-h", "-a", "--format=%R", NULL };
	const char *nodes = job->nodes ? job->nodes : "";
	bool is_lost = false;
	struct said said;
	char *name;

	if (job->is_task || !nodes[0] || has_one_of(down, nodes))
		return false;
	if (!*partitions) {
		command_ask(words, &said);
		*partitions = xstrdup(said.status == 0 ? said.out : "");
		said_clear(&said);
	}
	name = look_line(job->job_id, "--format=%P");
	is_lost = name && name[0] && (*partitions)[0] && !has_line(*partitions, name);
	free(name);
	return is_lost;
}

/* Asked once for all jobs of a poll: tasks of an array end together, by hundreds. */
void failed_tell(struct look *look)
{
	char *partitions = NULL;

	for (size_t i = 0; i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (!job->row.token[0] || (job->row.state & SJ_MASK) != SJ_NODE_FAIL)
			continue;
		if (!look->down)
			look->down = ask();
		job->row.failed = look->down;
		if (lost_partition(job, look->down, &partitions))
			job->row.reason = SR_DOWN_PARTITION;
	}
	free(partitions);
}
