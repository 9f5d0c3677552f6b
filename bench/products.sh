#!/bin/sh
# SPDX-License-Identifier: MIT
# products.sh - the products of a step, and attention, as shares of the FMA peak, on one thread,
# with AVX-512 and with AVX2 alone; nothing passes or fails on them.
#
#   B=build sh bench/products.sh [ROUNDS]       (9)
. "$(dirname "$0")/scratch.sh"

[ -f "$B/kernels.a" ] || make B="$B" "$B/kernels.a"
for set in avx512 avx2; do
	grep -q "$set" /proc/cpuinfo || continue
	# The kernels as they are, but for the pool.
	find "$B/obj/$set/kernels/cpu" -name '*.o' ! -name pool.o >"$T/objects"
	${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/products" bench/products.c bench/timed_pool.c "@$T/objects" \
		"$B/kernels.a" -ldl -lm -lpthread
	LB_CPU_ISA=$set "$T/products" "${1:-9}"
done
