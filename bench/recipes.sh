#!/bin/sh
# SPDX-License-Identifier: MIT
# recipes.sh - what a training step costs with each recipe of few bits, beside one in fp32: Llama
# 124M, 4 x 64 tokens, all rows in turn. The claims: FP8 and MXFP8 at most 2 times fp32, though
# emulated; int8 at most 1/1.5 of it where the CPU multiplies bytes (VNNI). Where others work on the
# machine, too, the seconds of CPU say more than those of the clock.
#
# LB_BENCH_RECIPES  "none tensorwise ..."; int8+output is int8 for the output matrix, too
# LB_BENCH_STEPS    (10), one of them logged
# LB_BENCH_ROUNDS   how often all take turns (3)
# LB_BENCH_THREADS  (2); with 1 no thread waits for another, and seconds of CPU are those of the
#                   work
. "$(dirname "$0")/scratch.sh"
awk 'BEGIN { srand(1); for (i = 0; i < 80000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log"
python3 bench/recipes.py "$B/lbworker" "$T" "${LB_BENCH_ROUNDS:-3}" \
	"${LB_BENCH_RECIPES:-none tensorwise delayed rowwise blockwise mxfp8 nvfp4 int8 int8+output}"
