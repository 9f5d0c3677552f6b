/* SPDX-License-Identifier: MIT */
/* cluster.h - what the partitions and nodes of a cluster could ever give a job, and what it asks
 * for. */
#ifndef SLURM_PIPE_CLUSTER_H
#define SLURM_PIPE_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/strv.h"
#include "slurm/pipe/answer.h"

enum { CLUSTER_NO_LIMIT = INT32_MAX };

/* Texts may be NULL: none. */
struct cluster_node {
	const char *name, *features;
	const char *gres, *gres_used; /* "gpu:h100:8(S:0-1)" */
	const char *partitions;       /* "debug,short" */
	const char *reason;
	const char *away; /* why nothing starts there: "down"; NULL: jobs may start */
	int64_t cpus, cpus_used, mem_mb, mem_used_mb;
};

struct cluster_partition {
	const char *name;
	bool is_default, is_up;
	int64_t max_minutes, max_nodes; /* CLUSTER_NO_LIMIT */
	int64_t total_nodes;
	bool gives_whole_nodes; /* OverSubscribe=EXCLUSIVE */
	/* where its jobs run no others may, whatever is left: OverSubscribe=YES:2, FORCE:2,
	 * ExclusiveUser */
	bool claims_nodes;
	const char *nodes; /* "n[1-3]": also those that are not told, of a cloud, powered down */
	/* Who may use it, as Slurm lists them; NULL: all, or none denied. */
	const char *allow_accounts, *deny_accounts, *allow_qos, *deny_qos;
};

/* As Slurm tells it; all zero is the empty one. Whoever fills it in lets it keep the texts. */
struct cluster {
	struct cluster_node *nodes;
	struct cluster_partition *partitions;
	size_t node_count, partition_count;
	struct strv texts;
};

/* Reads both; each helper has its own. 0, or -1 with *a. cluster_fini is due, however it ended. */
int cluster_load(struct cluster *c, struct answer *a);
void cluster_fini(struct cluster *c);

/* A copy that lives as long as the cluster does; NULL stays NULL. */
const char *cluster_keep(struct cluster *c, const char *text, size_t len);

/* Why nothing starts on a node in this state, of scontrol's words ("IDLE+DRAIN", "DOWN*"); NULL:
 * jobs may start. Static. */
const char *cluster_absence(const char *state);

/* Calls `see` for each partition that the job may start in: "a,b", or, NULL, the default one. */
void cluster_each(const struct cluster *c, const char *names,
		  void (*see)(const struct cluster_partition *p, void *arg), void *arg);

/* The job is described by its fields (slurm/batch/batch.h).
 *
 * Why it could never start in this partition as both are now, nodes that are down counted as if
 * they were up: [{"limit","allowed","asked","text"}…], a new reference; empty when nothing is in
 * its way. */
json_t *cluster_exceeded(const struct cluster *c, const json_t *fields,
			 const struct cluster_partition *p);

/* The nodes of the partition that nothing starts on at present: "n2 (down: no power), n3
 * (drained)". Owned; NULL: none. *count is how many, *all of how many. */
char *cluster_absent_nodes(const struct cluster *c, const struct cluster_partition *p,
			   unsigned *count, unsigned *all);

/* How many nodes of the partition have now free what the job asks of each, not counting `taken`
 * (names). */
unsigned cluster_free_nodes(const struct cluster *c, const json_t *fields,
			    const struct cluster_partition *p, const json_t *taken);

/* Refuses a job that each of its partitions has something against. */
void cluster_judge(const struct cluster *c, const json_t *fields, struct answer *a);

/* Refuses a partition that is not there, with the names of those that are. Always -1. */
int cluster_refuse_partition(const struct cluster *c, const char *name, struct answer *a);

#endif
