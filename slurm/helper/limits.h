/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limits.h - what the partitions and nodes of a cluster could ever give a job, and what it asks
 * for. */
#ifndef SLURM_HELPER_LIMITS_H
#define SLURM_HELPER_LIMITS_H

#include <jansson.h>
#include <stdbool.h>

#include "slurm/helper/calls.h"

/* as Slurm tells it; cluster_fini is due after cluster_load, however it ended */
struct cluster {
	partition_info_msg_t *partitions;
	node_info_msg_t *nodes;
};

int cluster_load(struct cluster *c, struct answer *a);
void cluster_fini(struct cluster *c);

/* NULL: there is none of this name (len bytes); name NULL: the default one. Borrowed. */
const partition_info_t *cluster_partition(const struct cluster *c, const char *name, size_t len);

/* Calls `see` for each partition that the job may start in: "a,b", or the default one. */
void cluster_each(const struct cluster *c, const char *names,
		  void (*see)(const partition_info_t *p, void *arg), void *arg);

/* Why the job could never start in this partition as both are now, nodes that are down counted as
 * if they were up: [{"limit","allowed","asked","text"}…], a new reference; empty when nothing is in
 * its way. */
json_t *limits_exceeded(const struct cluster *c, const job_desc_msg_t *job,
			const partition_info_t *p);

/* The nodes of the partition that nothing starts on at present: "n2 (down: no power), n3
 * (drained)". Owned; NULL: none. *count is how many, *all of how many. */
char *limits_absent_nodes(const struct cluster *c, const partition_info_t *p, uint32_t *count,
			  uint32_t *all);

/* How many nodes of the partition have now free what the job asks of each, not counting `taken`
 * (names). */
uint32_t limits_free_nodes(const struct cluster *c, const job_desc_msg_t *job,
			   const partition_info_t *p, const json_t *taken);

/* The names of all partitions: "debug, short". Owned. */
char *cluster_partition_names(const struct cluster *c);

#endif
