#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-library.t - what nvcc made for real GPUs, as far as it can be shown without one: the library
# loads and finds no driver; no kernel spills; cuDNN plans its attention.  B=build prove --exec sh
# tests/system/gpu-library.t
. "$(dirname "$0")/gpu.sh"

! ldd "$B/lbworker" | grep -q libasan || {
	echo "1..0 # SKIP a sanitized build has no code for GPUs"
	exit 0
}
[ -e "$B/liblbcuda.so" ] || {
	echo "Bail out! $B/liblbcuda.so is not built"
	exit 1
}
small_training

if [ -e /dev/nvidia0 ]; then
	echo "# there is a GPU here: see make gpu-check"
else
	library=$B/liblbcuda.so
	case $B in /*) ;; *) library=$PWD/$library ;; esac
	for given in "$library" ""; do
		LB_CUDA_LIBRARY=$given "$B/lbworker" train "$T/small.toml" --device cuda \
			--job.dump_folder "$T/real" >"$T/out" 2>"$T/said"
		[ $? = 1 ] && grep -q 'cuda: no GPU here: ' "$T/said"
		ok $? "no driver: one line${given:+, by the library itself}"
	done
fi
sh tests/gpu/objects.sh "$B/cuda/ops" "$B/cuda/operands" >"$T/objects"
! grep -q '^not ok' "$T/objects" && [ "$(grep -c '^ok' "$T/objects")" -ge 15 ]
ok $? "no kernel spills"
# All are compiled for Blackwell by make release, these here: scales in boxes are for it.
sh tests/gpu/objects.sh "$B/release/ops" "$B/release/operands" >"$T/release"
! grep -q '^not ok' "$T/release" && grep -q '^ok.* scales: ' "$T/release" &&
	grep -q "Compiling entry function .*box_scales.* for 'sm_100'" "$B/release/operands/scales.o.log"
ok $? "nor on Blackwell"
grep -A 5 '^not ok' "$T/objects" | sed 's/^/# /'
# A grid that begins early and does not wait would read what is not written yet.
awk '/KERNEL\(/ { name = FILENAME; getline; getline; kernels++; if (!/after_earlier\(\);/) print name }
	END { if (kernels < 30) print kernels " kernels" }' kernels/cuda/ops/*.cu kernels/cuda/operands/*.cu kernels/cuda/operands/boxes.cuh >"$T/out"
[ ! -s "$T/out" ]
ok $? "every kernel waits for the one in front of it before anything else"
[ "$(sh tests/gpu/code.sh "$B/liblbcuda.so")" = "$(find kernels/cuda -name '*.cu' | wc -l) cubin 90" ] &&
	[ "$(sh tests/gpu/code.sh "$B/release/operands/scales.o" | tr '\n' ' ')" = "1 cubin 100 1 cubin 120 1 cubin 80 1 cubin 90 1 ptx 80 " ]
ok $? "the library holds code for 9.0, what is installed code for 8.0, 10.0 and 12.0, too, and PTX"
LD_LIBRARY_PATH=$B/gpu/stub "$B/gpu/sdpa_plans" >"$T/plans" 2>"$T/err"
status=$?
if [ "$status" = 77 ]; then
	sed -n 's/^1..0 //p' "$T/plans"
else
	ok "$status" "cuDNN plans $(grep -c '^ok' "$T/plans") attention graphs for an H200"
fi
echo "1..$count"
