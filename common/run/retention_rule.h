/* SPDX-License-Identifier: MIT */
/* retention_rule.h - how many checkpoints of a run are kept (retention.h). */
#ifndef COMMON_RUN_RETENTION_RULE_H
#define COMMON_RUN_RETENTION_RULE_H

#include <stdint.h>

struct retention {
	int64_t keep_latest_k; /* so many of the newest good ones stay; 0: all */
	int64_t keep_every;    /* those of steps that are multiples of it stay, too; 0: none */
	int64_t max_bytes;     /* of all together; 0: no bound */
};

#endif
