#!/bin/sh
# SPDX-License-Identifier: MIT
# recovery.sh - from a trouble to the first new step, and steps made again, with a real trainer:
# PyTorch's DDP on two ranks of one node of a private cluster of three, under lbd, under `sbatch
# --requeue`, and under torchrun's elastic restart in such a job. recovery.py holds the clock. What
# was measured lies in LB_BENCH_DONE: begun again with the same file, the bench goes on where it
# was.
#
#   B=build sh bench/recovery.sh [COUNT]       troubles of each kind, each way (3)
#
# LB_BENCH_TORCH  a Python with PyTorch 2; without it this is left out.
# LB_BENCH_TROUBLES, LB_BENCH_WAYS  some of: kill hang preempt node; lbd requeue elastic
# LB_BENCH_DONE  file of what was measured, a line of JSON each (one of its own)
# LB_BENCH_AT_ONCE (1)  trainings side by side, on as many nodes more: for troubles that are mostly
#                       waited for
# LB_BENCH_SLURMDTIMEOUT (300), LB_BENCH_GIVE_UP (600)  seconds: Slurm's, for a node that is silent;
#                                                       for a training to come back
#
# Slurm lets a requeued job begin after cred_expire, which is 5 s here and 120 s by default.
LB_SRC=$(cd "$(dirname "$0")/.." && pwd -P)
[ -x "${LB_BENCH_TORCH:-}" ] || { echo "# left out: LB_BENCH_TORCH is no Python with PyTorch"; exit 0; }
# shellcheck disable=SC1091,SC2154 # looked at on its own
. "$LB_SRC/tests/system/lib.sh"

# A better partition takes a node and gives it back; the time until a dead node is held for lost is
# Slurm's usual.
nodes=$((${LB_BENCH_AT_ONCE:-1} + 2))
cat >"$T/conf" <<END
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=guests Nodes=n[1-$nodes] PriorityTier=1 PreemptMode=REQUEUE GraceTime=20 MaxTime=INFINITE State=UP
PartitionName=owners Nodes=n[1-$nodes] PriorityTier=9 PreemptMode=OFF MaxTime=INFINITE State=UP
END
export MC_CONF_EXTRA="$T/conf" MC_GPUS=0 MC_KILLWAIT=30 MC_SLURMDTIMEOUT="${LB_BENCH_SLURMDTIMEOUT:-300}"
cluster_start "$nodes"
export cluster
lbd_start
python3 "$LB_SRC/bench/recovery.py" "$LB_SRC" "${1:-3}" "${LB_BENCH_DONE:-$T/done}" || { context; exit 1; }
