#!/bin/sh
# SPDX-License-Identifier: MIT
# orchestration.sh - what it costs to have lbd between a person and Slurm: submitting, asking,
# taking in progress, memory. On a private cluster of its own; orchestration.py holds the clock.
# Slurm's partition is closed meanwhile, so that no job starts and takes time from the others.
LB_SRC=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck disable=SC1091,SC2154 # looked at on its own
. "$LB_SRC/tests/system/lib.sh"

MC_GPUS=0 cluster_start 1
scontrol update PartitionName=debug State=DOWN || bail_out "the partition cannot be closed"
lbd_start
python3 "$LB_SRC/bench/orchestration.py" "$lbd_pid" \
	"$(cat "$cluster/run/slurmctld.pid")" || { context; exit 1; }
