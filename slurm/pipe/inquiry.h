/* SPDX-License-Identifier: MIT */
/* inquiry.h - why a job waits: who is ahead, what is in the way, and what would start sooner. */
#ifndef SLURM_PIPE_INQUIRY_H
#define SLURM_PIPE_INQUIRY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/pipe/cluster.h"

/* A job that waits, of anybody. Texts are borrowed; NULL: none. */
struct queued {
	uint32_t job_id, array_id; /* its own, and its array's or its own */
	int64_t priority;
	int64_t start;           /* Slurm's plan, seconds since the epoch; 0: none */
	const char *partition;   /* "debug,short" */
	const char *sched_nodes; /* where it is planned */
	bool is_in_line;         /* waits for nothing but its turn */
};

struct reserved {
	const char *name, *nodes;
	int64_t start, end; /* seconds since the epoch */
};

/* What has to be known of the job that is asked about, and of the cluster. All borrowed. */
struct inquiry {
	struct answer *a;      /* its body gets the members that wire.h names for "why" */
	const json_t *request; /* as wire.h says */
	const struct cluster *cluster;
	const struct queued *jobs;
	size_t job_count;
	const struct reserved *reservations;
	size_t reservation_count;
	struct queued job;
	bool is_pending;
	const char *reason; /* Slurm's word */
	const char *account, *qos, *reservation;
	int64_t nodes, time_minutes; /* -1: no end */
	unsigned uid;
	/* When the job would start if none were ahead (seconds since the epoch, 0: never), in
	 * another partition than its own or NULL, and without its excluded nodes if it is to be
	 * forgiven. Asks Slurm. */
	int64_t (*plan)(const struct inquiry *inquiry, const char *partition, bool is_forgiven);
	void *arg; /* for plan */
};

void inquire(const struct inquiry *inquiry);

/* Would a job like the request's begin at once, with nobody in line in any of its partitions?
 * Refuses where not, with why. Of the inquiry a, request, cluster, jobs and plan count. */
void inquire_room(const struct inquiry *inquiry);

#endif
