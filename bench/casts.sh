#!/bin/sh
# SPDX-License-Identifier: MIT
# casts.sh - fp32 to numbers of few bits: GB/s of fp32 in on one core, ours beside the casts of
# others, by the thread's own time.
# LB_BENCH_CASTS: a Python that has them (pip install torch numpy ml_dtypes gfloat). The claim: 1
# GB/s for every format, rounded to nearest and by chance, with AVX2 and with AVX-512.
. "$(dirname "$0")/scratch.sh"

[ -f "$B/kernels.a" ] || make B="$B" "$B/kernels.a"
${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/casts" bench/casts.c "$B/kernels.a" -ldl -lm -lpthread
for set in avx2 avx512; do
	! grep -q "$set" /proc/cpuinfo || LB_CPU_ISA=$set "$T/casts"
done
"${LB_BENCH_CASTS:-python3}" bench/casts.py
