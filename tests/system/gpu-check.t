#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-check.t - a rehearsal of gpu-check: everything that waits for a GPU, with the emulated library
# in its place and shorter, so that on the day there is one nothing fails for the script's own sake.
#   B=build prove --exec sh tests/system/gpu-check.t
. "$(dirname "$0")/trainer.sh"

need_emulated

check() { # check LIBRARY [NAME=VALUE...]
	library=$1
	shift
	env B="$B" LB_CUDA_LIBRARY="$library" LB_GPU_RESULTS="$T/results" LB_GPU_TOY=1 LB_GPU_STEPS=12 LB_GPU_SEQ=16 LB_GPU_ROUNDS=1 LB_GPU_RECIPES=tensorwise \
		LB_GPU_LONG_STEPS=20 LB_GPU_LONG_SEQ=16 LB_GPU_LONG_BATCH=1 LB_GPU_LONG_FLAVOR=debugmodel "$@" \
		sh tests/gpu/check.sh >"$T/out" 2>&1
}
check "$emulated" PARTS="ops-bf16 eval"
status=$?
[ "$status" = 0 ] && tail -n 1 "$T/out" | grep -q '^2 ok, 0 failed, 0 skipped'
ok $? "parts can be run one by one"
check "$emulated"
status=$?
ok "$status" "every part passes"
[ "$status" = 0 ] || sed 's/^/# /' "$T/out"
grep -q '^gpu-check, .*emulated GPU' "$T/out" && tail -n 1 "$T/out" | grep -q '^\(19\|23\) ok, 0 failed' &&
	[ "$(grep -c '^ops-bf16 ' "$T/out")" = 1 ]
ok $? "the table names the device and counts nineteen parts, and compute-sanitizer's four where it is"
touch "$T/mark"
check "$emulated" && [ -z "$(find "$T/results" -name '*.log' -newer "$T/mark" ! -name '*check.log' ! -name 'long-beside*.log')" ]
ok $? "what is ok already is not run again"
check "$emulated" PARTS="eval evil"
[ $? = 2 ] && grep -q 'gpu-check: PARTS: there is no evil, allowed are: ops-bf16 ' "$T/out"
ok $? "a part that there is not is said"
check "$T/none.so"
[ $? = 77 ] && grep -q 'there is no GPU here, nothing was checked' "$T/out"
ok $? "without a GPU it says so"
echo "1..$count"
