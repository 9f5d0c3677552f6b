#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-check.t - a rehearsal of gpu-check: everything that waits for a GPU, with the emulated library in its
# place and shorter, so that on the day there is one nothing fails for the script's own sake.
#   B=build prove --exec sh tests/system/gpu-check.t
. "$(dirname "$0")/trainer.sh"

need_emulated

check() { B=$B LB_CUDA_LIBRARY=$1 LB_GPU_STEPS=44 LB_GPU_SEQ=16 LB_GPU_ROUNDS=1 sh tests/gpu/check.sh >"$T/out" 2>&1; }
check "$emulated"
status=$?
ok "$status" "every part passes"
[ "$status" = 0 ] || sed 's/^/# /' "$T/out"
grep -q '^gpu-check, .*emulated GPU' "$T/out" && tail -n 1 "$T/out" | grep -q '^1[48] ok, 0 failed'
ok $? "the table names the device and counts fourteen parts, and compute-sanitizer's four where it is"
check "$T/none.so"
[ $? = 77 ] && grep -q 'there is no GPU here, nothing was checked' "$T/out"
ok $? "without a GPU it says so"
echo "1..$count"
