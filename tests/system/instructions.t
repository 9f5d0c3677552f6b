#!/bin/sh
# SPDX-License-Identifier: MIT
# instructions.t - every operation of the CPU backend gives the same bits with AVX-512, with AVX2,
# with the base instructions, and as the loader chooses; from any number of threads.
# B=build prove --exec sh tests/system/instructions.t
. "$(dirname "$0")/trainer.sh"

digest=$B/tests/kernel_digest
"$digest" 1 >"$T/want" 2>"$T/err"
ok $? "as the loader chooses"
[ "$(wc -l <"$T/want")" -ge 22 ] && [ "$(cut -d' ' -f2 "$T/want" | sort -u | wc -l)" = \
	"$(wc -l <"$T/want")" ]
ok $? "$(wc -l <"$T/want") operations, each with a digest of its own"
for threads in 2 3 7; do
	"$digest" $threads >"$T/have" 2>"$T/err" && diff "$T/want" "$T/have" >>"$T/err"
	ok $? "$threads threads: the same bits"
done
for set in base avx2 avx512f; do
	if [ $set != base ] && ! grep -qw $set /proc/cpuinfo; then
		echo "# this CPU has no $set"
		continue
	fi
	"$digest-$set" 2 >"$T/have" 2>"$T/err" && diff "$T/want" "$T/have" >>"$T/err"
	ok $? "only $set: the same bits"
done
echo "1..$count"
