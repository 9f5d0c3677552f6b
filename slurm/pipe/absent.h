/* SPDX-License-Identifier: MIT */
/* absent.h - nodes that a job is to keep away from and that the cluster does not have any more.
 *
 * Slurm refuses a job for such a name alone, and does not say which it is. Whoever submits is told
 * so, when the job is checked; for a run that goes on such a node is no reason to stay. */
#ifndef SLURM_PIPE_ABSENT_H
#define SLURM_PIPE_ABSENT_H

#include <jansson.h>

#include "slurm/pipe/answer.h"
#include "slurm/pipe/cluster.h"

/* The same request without these nodes; a new reference. NULL: there are none, or nobody knows
 * which nodes there are. `names`: an array to add theirs to, or NULL. */
json_t *absent_left_out(const json_t *request, const struct cluster *c, json_t *names);

/* Submits once more what was refused for them, and tells of them: body "absent", names. `load` is
 * the helper's own cluster_load. */
void absent_submit_again(const json_t *request, struct answer *a,
			 int (*load)(struct cluster *c, struct answer *a),
			 void (*submit)(const json_t *request, struct answer *a));

#endif
