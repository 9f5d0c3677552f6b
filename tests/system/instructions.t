#!/bin/sh
# SPDX-License-Identifier: MIT
# instructions.t - every operation of the CPU backend gives the same bits with AVX-512 and with
# AVX2, and all but those that fuse a product with a sum give them with the base instructions too;
# from any number of threads. Where the CPU lacks a set, LB_CPU_ISA leaves the next smaller one.
# B=build prove --exec sh tests/system/instructions.t
. "$(dirname "$0")/trainer.sh"

digest=$B/tests/kernel_digest
unset LB_CPU_ISA
"$digest" 1 >"$T/want" 2>"$T/err"
ok $? "as the program chooses"
[ "$(wc -l <"$T/want")" -ge 22 ] && [ "$(cut -d' ' -f2 "$T/want" | sort -u | wc -l)" = \
	"$(wc -l <"$T/want")" ]
ok $? "$(wc -l <"$T/want") operations, each with a digest of its own"
for threads in 2 3 7; do
	"$digest" $threads >"$T/have" 2>"$T/err" && diff "$T/want" "$T/have" >>"$T/err"
	ok $? "$threads threads: the same bits"
done
for set in avx2 avx512 vnni; do
	LB_CPU_ISA=$set "$digest" 2 >"$T/have" 2>"$T/err" && diff "$T/want" "$T/have" >>"$T/err"
	ok $? "only $set: the same bits"
done
LB_CPU_ISA=base "$digest" 1 >"$T/base" 2>"$T/err" && LB_CPU_ISA=base "$digest" 3 >"$T/have" 2>>"$T/err" &&
	diff "$T/base" "$T/have" >>"$T/err"
ok $? "only base instructions: the same bits from 1 and from 3 threads"
unfused() { grep -v '^gemm\|^attention' "$1"; }
unfused "$T/base" >"$T/have" && unfused "$T/want" | diff - "$T/have" >>"$T/err"
ok $? "and the same as with others where nothing is fused"

printf '[model]\nname = "llama"\nflavor = "bytes-4M"\n[training]\nseq_len = 16\n' >"$T/config.toml"
echo "some text to learn from, again and again and again" >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log" 2>"$T/err"
try() { "$B/lbworker" train "$T/config.toml" --job.dump_folder "$T/run" --training.steps 1 \
	--training.dataset_path "$T/text.tokens" --metrics.peak_tflops 1 >"$T/out" 2>"$T/err"; }
LB_CPU_ISA=avx2 try
ok $? "a training with LB_CPU_ISA=avx2"
if ! grep -qw avx2 /proc/cpuinfo || grep -Eq 'threads?, AVX2' "$T/out" "$T/err"; then
	ok 0 "says so"
else
	ok 1 "says so"
fi
! LB_CPU_ISA=sse9 try && grep -q 'LB_CPU_ISA: is base, avx2, avx512 or vnni, not sse9' "$T/err"
ok $? "a word that is none is refused"
echo "1..$count"
