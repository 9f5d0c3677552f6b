/* SPDX-License-Identifier: MIT */
/* peers.h - how `sbatch --requeue` and a chain of array tasks live through a month, at their best.
 * Pure.
 *
 * At their best: a script that, when its trainer ends badly, requeues itself (`scontrol requeue`),
 * or just ends (the chain's next task follows); PyTorch's NCCL watchdog left on, which ends a hang
 * after ten minutes; slurmd's death noticed after SlurmdTimeout; a trainer that takes the newest
 * checkpoint. Neither looks whether that one is whole: when it is not, every start fails until a
 * person has removed it. Neither says which nodes to keep away from, so Slurm prefers the same ones
 * again. */
#ifndef TESTS_SIM_ETTR_PEERS_H
#define TESTS_SIM_ETTR_PEERS_H

#include "tests/sim/ettr/month.h"

enum { NCCL_WATCHDOG_MS = 600 * SECOND };

struct peer {
	const char *name;
	int64_t again_ms; /* from the end of a job until the next may begin to wait for its turn */
};

/* Slurm lets a requeued job begin after cred_expire, 120 s. */
extern const struct peer peer_requeue, peer_chain;

void peer_live(const struct peer *peer, const struct month *m, struct account *a);

#endif
