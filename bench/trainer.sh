#!/bin/sh
# SPDX-License-Identifier: MIT
# trainer.sh - tokens/s of models of 124M parameters, fp32: lbworker's, PyTorch's (compiled and
# eager) and llm.c's, taking turns in one run, beside what this machine's fused multiply-adds could
# do in the same minutes; and where lbworker's time goes, by operation. It prints; it never passes
# or fails on time.
#
#   B=build sh bench/trainer.sh [ROUNDS] [speed|shared|steps]       (3 speed)
#
# shared: what each program keeps of its speed beside two busy neighbours; steps: lbworker's second
# step beside the eight after it.
#
# LB_BENCH_LLMC   a checkout of llm.c; built here at its best flags (-O3 -ffast-math -march=native
#                 -fopenmp: faster than its Makefile's -Ofast)
# LB_BENCH_TORCH  a Python that has PyTorch, like /usr/bin/python3
# LB_BENCH_BLAS   a folder with libblas.so.3 for it: Debian's openblas-openmp. Without one Debian's
#                 PyTorch multiplies by reference BLAS, some twenty times slower
# LB_BENCH_ROWS   which rows: words like avx2/gpt2/4x64, with asterisks; all of them, when unset
#
# Rows: avx512 and avx2 (each program is kept from wider instructions), GPT-2 and Llama, 4 x 64, 2 x
# 512 and 1 x 1024 tokens, two threads.
#
# What makes PyTorch slow on Debian, and is set here so that it is not: one thread by default; an
# OpenBLAS that does not know new CPUs and takes SSE (OPENBLAS_CORETYPE); a BLAS with threads of its
# own beside OpenMP's; threads that wander (OMP_PROC_BIND). First steps pay for page faults: they do
# not count.
. "$(dirname "$0")/scratch.sh"

${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/fma_peak" bench/fma_peak.c kernels/machine/*.c -lpthread
if [ -n "${LB_BENCH_LLMC:-}" ]; then
	${CC:-cc} -O3 -ffast-math -march=native -fopenmp -w -I"$LB_BENCH_LLMC" -DPEER='"train_gpt2.c"' \
		-o "$T/peer_llmc" bench/peer_llmc.c -lm
fi
awk 'BEGIN { srand(1); for (i = 0; i < 40000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log"
python3 bench/trainer.py "$B/lbworker" "$T" "${1:-3}" "${2:-speed}"
