/* SPDX-License-Identifier: MIT */
/* drain.h - one checkpoint from the node's stage to where it is shared. It blocks: for a child.
 *
 *   copy ──▶ NAME-HASH.STAMP.HOST.part ──manifest──▶ NAME-HASH, sealed ──place.h──▶ in place
 *
 * A copy that was cut short goes on (copy.h). Nothing counts before the manifest, which is written
 * once every byte is on the disk; where several nodes have parts of it (parts.h), once they have
 * all done so. */
#ifndef LBRUN_CHECKPOINT_DRAIN_H
#define LBRUN_CHECKPOINT_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/checkpoints.h"
#include "worker/lbrun/checkpoint/parts.h"

struct drain_request {
	const struct checkpoint_rules *rules;
	const char *stage, *shared; /* folders */
	const char *path;           /* of the checkpoint, below `stage` */
	uint64_t stamp;             /* as it was when it was found whole */
	const char *host;           /* whose stage it is: part of a name */
	int64_t rate;               /* bytes/s at most; 0 = no limit */
	/* NULL: all of it lies on this node. Else what other nodes have to know of it (parts.h),
	 * but for what is said here already */
	const struct parts_request *parts;
	/* may this attempt still write? A newer one may have the run */
	bool (*may_go_on)(void *arg);
	void *arg;
};

struct drained {
	int64_t bytes;   /* of the checkpoint */
	int64_t written; /* of them now; the rest was there */
	int64_t ms;      /* that it took */
	char text[ERR_TEXT_BYTES];
	bool is_done; /* it counts, and is in place */
	bool is_gone; /* the trainer wrote it again, or removed it, meanwhile */
};

void drain_run(const struct drain_request *request, struct drained *out);

#endif
