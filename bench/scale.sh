#!/bin/sh
# SPDX-License-Identifier: MIT
# scale.sh - lbd with ten thousand jobs in the queue, ten thousand and a hundred thousand runs in
# the ledger, and a hundred runs alive. On a private cluster whose jobs all stay held; scale.py does
# it.
LB_SRC=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck disable=SC1091,SC2154 # looked at on its own
. "$LB_SRC/tests/system/lib.sh"

MC_GPUS=0 cluster_start 1
python3 "$LB_SRC/bench/scale.py" "$B" "$(cat "$cluster/run/slurmctld.pid")" || { context; exit 1; }
