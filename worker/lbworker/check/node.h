/* SPDX-License-Identifier: MIT */
/* check/ - is a node fit to train on? What it computes, keeps and writes is compared with what must come
 * out, and how fast it is with the other nodes.
 *
 * node.h - one rank's own part of a check, without the others. */
#ifndef LBWORKER_CHECK_NODE_H
#define LBWORKER_CHECK_NODE_H

#include "worker/lbworker/base/device.h"

enum check_speed { CHECK_GEMM, CHECK_MEMORY, CHECK_DISK, CHECK_LINK, CHECK_SPEEDS };

/* What a rank tells of its node; sent as it is. */
struct check_result {
	char host[64], device[64];
	/* GFLOP/s of an fp32 product; GB/s read and written by a copy; GB/s written to the disk until
	 * it has them; GB/s to and from another rank. 0: not measured. */
	double speed[CHECK_SPEEDS];
	double clock_s;  /* ahead of rank 0's, as far as one can tell */
	char fault[192]; /* ""; else what is broken */
};

struct check_options {
	const char *folder; /* for the disk; borrowed */
	size_t memory_mib, disk_mib;
};

/* Memory keeps what was written, a product is right, the disk gives back what it took: figures, or the
 * first fault. */
void check_node(const struct opened *opened, const struct check_options *options,
		struct check_result *out);

#endif
