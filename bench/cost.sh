#!/bin/sh
# SPDX-License-Identifier: MIT
# cost.sh - what a step costs as model, sequence and batch grow, against two floors: its arithmetic
# at the FMA peak, and the bytes of its weights at the memory's bandwidth, both measured in the same
# minutes.
#   B=build sh bench/cost.sh [FOLDER]     writes FOLDER/cost.md and FOLDER/cost.svg (build/bench)
. "$(dirname "$0")/scratch.sh"
out=${1:-$B/bench}
mkdir -p "$out"
${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/fma_peak" bench/fma_peak.c kernels/machine/*.c -lpthread
${CC:-cc} -O3 -march=native -D_GNU_SOURCE -I. -o "$T/stream" bench/stream.c kernels/machine/cpus.c kernels/machine/group.c -lpthread
awk 'BEGIN { srand(1); for (i = 0; i < 80000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log"
python3 bench/cost.py "$B/lbworker" "$T" "$out"
