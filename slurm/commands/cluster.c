/* SPDX-License-Identifier: MIT */
/* cluster.c - partitions and nodes, as scontrol prints them: one record a line, "NAME=VALUE …". */
#include "slurm/pipe/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/pipe/record.h"
#include "slurm/pipe/command.h"
#include "slurm/pipe/words.h"

static const char *text_of(struct cluster *c, const char *line, const char *name)
{
	size_t len;
	const char *value = record_value(line, name, &len);

	return cluster_keep(c, value, len);
}

static const char *reason_of(struct cluster *c, const char *line)
{
	size_t len;
	const char *reason = record_reason(line, &len);

	return cluster_keep(c, reason, len);
}

static void take_node(struct cluster *c, const char *line)
{
	const char *state = text_of(c, line, "State");

	c->nodes = xrealloc(c->nodes, (c->node_count + 1) * sizeof(*c->nodes));
	c->nodes[c->node_count++] = (struct cluster_node){
		.name = text_of(c, line, "NodeName"),
		.features = text_of(c, line, "AvailableFeatures"),
		.gres = text_of(c, line, "Gres"),
		.gres_used = text_of(c, line, "GresUsed"),
		.partitions = text_of(c, line, "Partitions"),
		.reason = reason_of(c, line),
		.away = cluster_absence(state ? state : ""),
		.cpus = record_number(line, "CPUTot", 0),
		.cpus_used = record_number(line, "CPUAlloc", 0),
		.mem_mb = record_number(line, "RealMemory", 0),
		.mem_used_mb = record_number(line, "AllocMem", 0),
	};
}

/* "ALL" is no list. */
static const char *list_of(struct cluster *c, const char *line, const char *name)
{
	const char *list = text_of(c, line, name);

	return list && strcmp(list, "ALL") != 0 ? list : NULL;
}

/* "OverSubscribe=FORCE:2", "ExclusiveUser=YES" */
static bool claims_nodes(const char *line)
{
	size_t len;
	const char *shared = record_value(line, "OverSubscribe", &len);
	const char *colon = shared ? memchr(shared, ':', len) : NULL;
	const char *of_user = record_value(line, "ExclusiveUser", &len);

	return (colon && strtol(colon + 1, NULL, 10) > 1) ||
	       (of_user && text_begins_with(of_user, "YES"));
}

static void take_partition(struct cluster *c, const char *line)
{
	const char *is_default = text_of(c, line, "Default"), *state = text_of(c, line, "State");
	const char *time = text_of(c, line, "MaxTime"), *shared = text_of(c, line, "OverSubscribe");
	int64_t minutes = time ? record_minutes(time) : -1;

	c->partitions = xrealloc(c->partitions, (c->partition_count + 1) * sizeof(*c->partitions));
	c->partitions[c->partition_count++] = (struct cluster_partition){
		.name = text_of(c, line, "PartitionName"),
		.is_default = is_default && strcmp(is_default, "YES") == 0,
		.is_up = !state || strcmp(state, "UP") == 0,
		.max_minutes = minutes < 0 ? CLUSTER_NO_LIMIT : minutes,
		.max_nodes = record_number(line, "MaxNodes", CLUSTER_NO_LIMIT),
		.total_nodes = record_number(line, "TotalNodes", CLUSTER_NO_LIMIT),
		.gives_whole_nodes = shared && strcmp(shared, "EXCLUSIVE") == 0,
		.claims_nodes = claims_nodes(line),
		.nodes = text_of(c, line, "Nodes"),
		.allow_accounts = list_of(c, line, "AllowAccounts"),
		.deny_accounts = list_of(c, line, "DenyAccounts"),
		.allow_qos = list_of(c, line, "AllowQos"),
		.deny_qos = list_of(c, line, "DenyQos"),
	};
}

/* A line without an end was cut, and does not count. */
static int load(struct cluster *c, struct answer *a, const char *what, const char *head,
		void (*take)(struct cluster *c, const char *line))
{
	const char *const words[] = { "scontrol", "-a", "-d", "-o", "show", what, NULL };
	struct said said;
	int rc = 0;

	command_ask(words, &said);
	if (said.status && !said_is_denied(&said))
		rc = said_failed(a, &said, false, "scontrol show");
	for (const char *line = said.out; rc == 0 && strchr(line, '\n');
	     line = strchr(line, '\n') + 1) {
		if (text_begins_with(line, head))
			take(c, line);
	}
	said_clear(&said);
	return rc;
}

int cluster_load(struct cluster *c, struct answer *a)
{
	if (load(c, a, "partition", "PartitionName=", take_partition))
		return -1;
	return load(c, a, "node", "NodeName=", take_node);
}
