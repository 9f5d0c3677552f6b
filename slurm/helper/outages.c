/* SPDX-License-Identifier: GPL-2.0-or-later */
/* outages.c - nodes that are going away, as libslurm tells them: set to drain, or in a maintenance
 * reservation. */
#include <string.h>

#include "slurm/helper/calls.h"
#include "slurm/pipe/outage.h"

/* Nodes that are down have no jobs any more. */
static bool is_draining(const node_info_t *node)
{
	return node->name && (node->node_state & NODE_STATE_BASE) != NODE_STATE_DOWN &&
	       (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL));
}

static int tell_nodes(struct answer *a)
{
	node_info_msg_t *nodes = NULL;

	if (slurm_or_nothing(slurm_load_node(0, &nodes, SHOW_ALL)))
		return slurm_failed(a, -1, false, "reading the nodes");
	for (uint32_t i = 0; nodes && i < nodes->record_count; i++) {
		if (is_draining(&nodes->node_array[i]))
			outages_drain(a, nodes->node_array[i].name, nodes->node_array[i].reason);
	}
	if (nodes)
		slurm_free_node_info_msg(nodes);
	return 0;
}

static int tell_reservations(struct answer *a)
{
	reserve_info_msg_t *list = NULL;

	if (slurm_or_nothing(slurm_load_reservations(0, &list)))
		return slurm_failed(a, -1, false, "reading the reservations");
	for (uint32_t i = 0; list && i < list->record_count; i++) {
		const reserve_info_t *r = &list->reservation_array[i];

		/* one that floats never begins */
		if ((r->flags & RESERVE_FLAG_MAINT) && !(r->flags & RESERVE_FLAG_TIME_FLOAT))
			outages_reservation(a, r->name, r->node_list, (int64_t)r->start_time,
					    (int64_t)r->end_time);
	}
	if (list)
		slurm_free_reservation_info_msg(list);
	return 0;
}

void op_outages(const json_t *request, struct answer *a)
{
	(void)request;
	if (slurm_ready(a))
		return;
	outages_begin(a);
	if (tell_nodes(a) == 0)
		tell_reservations(a);
}
