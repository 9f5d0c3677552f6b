/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cluster.c - partitions and nodes, as libslurm tells them. */
#include <string.h>

#include "common/base/mem.h"
#include "slurm/helper/calls.h"
#include "slurm/pipe/cluster.h"

static const char *copy(struct cluster *c, const char *text)
{
	return cluster_keep(c, text, text ? strlen(text) : 0);
}

static const char *absence_of(const node_info_t *node)
{
	if ((node->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN)
		return cluster_absence("DOWN");
	if (node->node_state & NODE_STATE_DRAIN)
		return cluster_absence("DRAIN");
	if (node->node_state & NODE_STATE_FAIL)
		return cluster_absence("FAIL");
#if SLURM_SINCE(21, 8)
	if (node->node_state & NODE_STATE_POWERING_UP)
		return cluster_absence("POWERING_UP");
#endif
	if (node->node_state & NODE_STATE_NO_RESPOND)
		return cluster_absence("NOT_RESPONDING");
	return node->node_state & NODE_STATE_MAINT ? cluster_absence("MAINT") : NULL;
}

static void take_node(struct cluster *c, const node_info_t *node)
{
	uint16_t cpus_used;
	uint64_t mem_used_mb;

	libslurm_used_of(node, &cpus_used, &mem_used_mb);
	c->nodes[c->node_count++] = (struct cluster_node){
		.name = copy(c, node->name),
		.features = copy(c, node->features),
		.gres = copy(c, node->gres),
		.gres_used = copy(c, node->gres_used),
		.partitions = copy(c, node->partitions),
		.reason = copy(c, node->reason),
		.away = absence_of(node),
		.cpus = node->cpus,
		.cpus_used = cpus_used,
		.mem_mb = (int64_t)node->real_memory,
		.mem_used_mb = (int64_t)mem_used_mb,
	};
}

static void take_partition(struct cluster *c, const partition_info_t *p)
{
	c->partitions[c->partition_count++] = (struct cluster_partition){
		.name = copy(c, p->name),
		.is_default = (p->flags & PART_FLAG_DEFAULT) != 0,
		.is_up = p->state_up == PARTITION_UP,
		.max_minutes = p->max_time == INFINITE ? CLUSTER_NO_LIMIT : (int64_t)p->max_time,
		.max_nodes = p->max_nodes == INFINITE ? CLUSTER_NO_LIMIT : (int64_t)p->max_nodes,
		.total_nodes = p->total_nodes,
		.gives_whole_nodes = p->max_share == 0,
		.claims_nodes = (p->max_share & ~SHARED_FORCE) > 1 ||
				(p->flags & PART_FLAG_EXCLUSIVE_USER) != 0,
		.nodes = copy(c, p->nodes),
		.allow_accounts = copy(c, p->allow_accounts),
		.deny_accounts = copy(c, p->deny_accounts),
		.allow_qos = copy(c, p->allow_qos),
		.deny_qos = copy(c, p->deny_qos),
	};
}

static void take(struct cluster *c, partition_info_msg_t *partitions, node_info_msg_t *nodes)
{
	uint32_t node_count = nodes ? nodes->record_count : 0;
	uint32_t partition_count = partitions ? partitions->record_count : 0;

	if (nodes && partitions)
		slurm_populate_node_partitions(nodes, partitions);
	c->nodes = xcalloc((size_t)node_count + 1, sizeof(*c->nodes));
	c->partitions = xcalloc((size_t)partition_count + 1, sizeof(*c->partitions));
	for (uint32_t i = 0; i < node_count; i++) {
		if (nodes->node_array[i].name)
			take_node(c, &nodes->node_array[i]);
	}
	for (uint32_t i = 0; i < partition_count; i++)
		take_partition(c, &partitions->partition_array[i]);
}

int cluster_load(struct cluster *c, struct answer *a)
{
	partition_info_msg_t *partitions = NULL;
	node_info_msg_t *nodes = NULL;
	int rc;

	rc = slurm_or_nothing(slurm_load_partitions(0, &partitions, SHOW_ALL));
	if (rc) {
		slurm_failed(a, rc, false, "reading the partitions");
	} else {
		rc = slurm_or_nothing(slurm_load_node(0, &nodes, SHOW_ALL | SHOW_DETAIL));
		if (rc)
			slurm_failed(a, rc, false, "reading the nodes");
		else
			take(c, partitions, nodes);
	}
	slurm_free_partition_info_msg(partitions);
	slurm_free_node_info_msg(nodes);
	return rc ? -1 : 0;
}
