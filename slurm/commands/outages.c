/* SPDX-License-Identifier: MIT */
/* outages.c - nodes that are going away, as sinfo and scontrol tell them: set to drain, or in a
 * maintenance reservation. */
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "slurm/pipe/command.h"
#include "slurm/pipe/operations.h"
#include "slurm/pipe/outage.h"
#include "slurm/pipe/record.h"
#include "slurm/pipe/words.h"

/* "n2|bad fan"; sinfo tells a node once for each of its partitions, one after the other. */
static int tell_nodes(struct answer *a)
{
	static const char *const words[] = { "sinfo",          "-h", "-N", "-a", "-t", "drain,fail",
					     "--format=%N|%E", NULL };
	char *rest, *line, *last = NULL;
	struct said said;
	int rc = 0;

	command_ask(words, &said);
	if (said.status && !said_is_denied(&said))
		rc = said_failed(a, &said, false, "sinfo");
	rest = rc ? NULL : said.out;
	while ((line = strsep(&rest, "\n"))) {
		char *bar = strchr(line, '|');

		if (!bar)
			continue;
		*bar = '\0';
		if (!last || strcmp(last, line) != 0)
			outages_drain(a, line, strcmp(bar + 1, "none") == 0 ? NULL : bar + 1);
		last = line;
	}
	said_clear(&said);
	return rc;
}

static char *copy(const char *line, const char *name)
{
	size_t len;
	const char *value = record_value(line, name, &len);

	return value ? xstrndup(value, len) : NULL;
}

/* "MAINT,IGNORE_JOBS"; one that floats ("TIME_FLOAT") never begins. */
static bool is_maintenance(const char *line)
{
	char *flags = copy(line, "Flags"), *rest = flags, *flag;
	bool is_one = false, floats = false;

	while ((flag = strsep(&rest, ","))) {
		is_one |= strcmp(flag, "MAINT") == 0;
		floats |= strcmp(flag, "TIME_FLOAT") == 0;
	}
	free(flags);
	return is_one && !floats;
}

static int tell_reservations(struct answer *a)
{
	static const char *const words[] = { "scontrol", "-o", "show", "reservation", NULL };
	char *rest, *line;
	struct said said;
	int rc = 0;

	command_ask(words, &said);
	if (said.status && !said_is_denied(&said))
		rc = said_failed(a, &said, false, "scontrol show reservation");
	rest = rc ? NULL : said.out;
	while ((line = strsep(&rest, "\n"))) {
		char *name, *nodes;

		if (strncmp(line, "ReservationName=", 16) != 0 || !is_maintenance(line))
			continue;
		name = copy(line, "ReservationName");
		nodes = copy(line, "Nodes");
		outages_reservation(a, name, nodes, record_number(line, "StartTime", 0),
				    record_number(line, "EndTime", 0));
		free(name);
		free(nodes);
	}
	said_clear(&said);
	return rc;
}

void op_outages(const json_t *request, struct answer *a)
{
	(void)request;
	outages_begin(a);
	if (tell_nodes(a) == 0)
		tell_reservations(a);
}
