#!/bin/sh
# SPDX-License-Identifier: MIT
# ettr.sh [--months N] - a simulated month of one job on 64 nodes, under lbd's real engine and under
# its peers; it prints what is assumed. The program is tests/sim/ettr.
exec "${B:-$(dirname "$0")/../build}/ettr" "$@"
