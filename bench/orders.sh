#!/bin/sh
# SPDX-License-Identifier: MIT
# orders.sh - from an order to the last process dead, by switch file and by command, for trainers
# that end politely, ignore SIGTERM or are stopped, running and pending; when a switch is seen; and
# what watching switches costs; how fast lbd answers beside 10,000 hostile connections. N (50) of
# each; PARTS: some of "socket seen watching running pending". On a private cluster of its own;
# orders.py holds the clock.
LB_SRC=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck disable=SC1091,SC2154 # looked at on its own
. "$LB_SRC/tests/system/lib.sh"

if [ "$(id -u)" = 0 ]; then	# a colleague, for the part "socket"
	chmod 755 "$T"
	printf '[team]\ngroup = "games"\n' >"$LB_HOME/lbd.toml"
fi
MC_GPUS=0 MC_CPUS=32 cluster_start 1
lbd_start
python3 "$LB_SRC/bench/orders.py" "$lbd_pid" "${N:-50}" || { context; exit 1; }
