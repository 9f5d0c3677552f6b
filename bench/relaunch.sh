#!/bin/sh
# SPDX-License-Identifier: MIT
# relaunch.sh - what lbrun costs a trainer, and how long it takes from an end to the next beginning:
# a trainer killed, a node lost. On a private cluster of three nodes; relaunch.py holds the clock.
LB_SRC=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck disable=SC1091,SC2154 # looked at on its own
. "$LB_SRC/tests/system/lib.sh"

MC_GPUS=0 cluster_start 3
lbd_start
python3 "$LB_SRC/bench/relaunch.py" "$LB_SRC" || { context; exit 1; }
