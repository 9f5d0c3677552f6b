/* SPDX-License-Identifier: MIT */
/* check/ - is a node fit to train on? What was measured on each, who is worse than the others, and
 * which of many is the bad one.
 *
 * node_report.h - what a rank tells of its node, as a file and beside the others. */
#ifndef COMMON_CHECK_NODE_REPORT_H
#define COMMON_CHECK_NODE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* The exit status of a check that found a broken node. */
enum { CHECK_EXIT_NODE = 5 };

enum check_speed { CHECK_PRODUCT, CHECK_MEMORY, CHECK_DISK, CHECK_LINK, CHECK_SPEEDS };

/* A network interface ("eth0") or an InfiniBand port ("mlx5_0/1"). */
struct check_nic {
	char name[32];
	bool is_up;
	int64_t mbps;   /* -1: it does not tell */
	int64_t errors; /* that it counted while the node was checked */
};

enum { CHECK_NICS_MAX = 24 };

/* Sent from rank to rank as it is. */
struct check_result {
	char host[64], device[64];
	int rank;
	/* GFLOP/s of an fp32 product; GB/s read and written by a copy; GB/s written to the disk
	 * until it has them; GB/s to and from another rank. 0: not measured. Of several GPUs the
	 * slowest's. */
	double speed[CHECK_SPEEDS];
	double clock_s; /* ahead of rank 0's, as far as one can tell */
	struct check_nic nic[CHECK_NICS_MAX];
	int nics;
	/* what is known of XIDs before the check; "": nobody asked, or there is no GPU */
	char past[160];
	char fault[192]; /* ""; else what is broken */
};

struct check_limits {
	/* who does less than this share of the median of all is slow; 0: nobody */
	double slow_share;
	double clock_s;             /* clocks may differ by so much */
	double least[CHECK_SPEEDS]; /* that a node must do whatever others do; 0: no bound */
};

/* Gives a fault to whoever is slow, has another clock, or a link that is down or slower than on
 * most others. A fault that is there stays. Pure. Returns how many have one. */
int check_judge(struct check_result *all, size_t count, const struct check_limits *limits);

/* folder/rank-N.json, whole or not at all. */
int check_report_write(const char *folder, const struct check_result *result,
		       const struct check_limits *limits, struct err *err);
/* All that are there, by rank; owned by the caller, NULL where there are none. *limits as the first
 * has them. */
struct check_result *check_reports_read(const char *folder, size_t *count,
					struct check_limits *limits);

#endif
