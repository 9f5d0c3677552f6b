/* SPDX-License-Identifier: MIT */
/* check/ - is a node fit to train on? What it computes, keeps and writes is compared with what must
 * come out, and how fast it is with the other nodes (common/check/).
 *
 * node.h - one rank's own part of a check, without the others. */
#ifndef LBWORKER_CHECK_NODE_H
#define LBWORKER_CHECK_NODE_H

#include "common/check/node_report.h"
#include "worker/lbworker/base/device.h"

struct check_options {
	const char *folder; /* for the disk; borrowed */
	size_t memory_mib, disk_mib;
};

/* Memory keeps what was written, a product is right: figures, where they are below those of a
 * device before, or the first fault. `which` names the device in faults; "": there is one. */
void check_device(const struct opened *opened, const char *which,
		  const struct check_options *options, struct check_result *out);
/* The folder's disk gives back what it took. */
void check_disk(const struct check_options *options, struct check_result *out);

#endif
