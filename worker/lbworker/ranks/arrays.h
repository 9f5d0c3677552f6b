/* SPDX-License-Identifier: MIT */
/* arrays.h - what the ranks give each other of arrays that a device computes on: by the device's
 * own way (NCCL), where it has one, else as words are (ranks.h). */
#ifndef LBWORKER_RANKS_ARRAYS_H
#define LBWORKER_RANKS_ARRAYS_H

#include "kernels/backend.h"
#include "worker/lbworker/ranks/ranks.h"

/* Behind ranks_compare, as all ranks must have the same kind of device. Compares the libraries of
 * all, and refuses one with a known fault (nccl_known_fault; LB_NCCL_ANY=1: takes it). Nothing to
 * do on a device that the host looks into, or alone. */
int arrays_open(struct ranks *ranks, const struct backend *backend, struct device *device,
		struct err *err);
/* As ranks_have_begun, of arrays, too. */
void arrays_have_begun(struct ranks *ranks);
/* Before the device is closed. */
void arrays_close(struct ranks *ranks);

/* As ranks_exchange, of device memory; it may be only queued. */
int arrays_exchange(struct ranks *ranks, const struct comm_part *send,
		    const struct comm_part *receive, struct err *err);
/* As ranks_begin: behind what is queued on the device so far, beside what is queued next. */
uint64_t arrays_begin(struct ranks *ranks, const struct comm_part *send,
		      const struct comm_part *receive, struct err *err);
/* What is queued from here on comes behind that one and all before it. */
int arrays_wait(struct ranks *ranks, uint64_t ticket, struct err *err);
/* For a trace (struct arrays_table, note); 0 where arrays go as words do. */
size_t arrays_note(struct ranks *ranks, struct arrays_span *span, size_t room);
/* Are sums made on the way (arrays_begin_sum)? */
bool arrays_can_reduce(const struct ranks *ranks);
/* Rank r gets the sums over all ranks of part[r], fp32, in its place. For all ranks of the world. A
 * ticket for arrays_wait. */
uint64_t arrays_begin_sum(struct ranks *ranks, const struct comm_part *part, struct err *err);
/* What was queued has gone well so far; to be asked behind whatever waits for the device. */
int arrays_check(struct ranks *ranks, struct err *err);

#endif
