#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh - the CPU backend as 64-bit Arm CPUs run it (NEON), compiled here and run by QEMU: the
# same bits from each operation as with AVX2, and the unit tests of the kernels. How fast it is
# there, this does not tell.
#
#   B=build sh tests/neon/check.sh         apt install gcc-aarch64-linux-gnu qemu-user
set -eu
cd "$(dirname "$0")/../.."
B=$(cd "${B:-build}" && pwd -P)
built=$B-neon
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	command -v $tool >/dev/null || {
		echo "check-neon: $tool is missing: apt install gcc-aarch64-linux-gnu qemu-user" >&2
		exit 1
	}
done
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-neon.XXXXXX")
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM

sh etc/debian-unpack bookworm libcmocka0 "$T/cmocka" arm64
library=$(dirname "$(find "$T/cmocka" -name 'libcmocka.so.0')")
ln -s libcmocka.so.0 "$library/libcmocka.so"
# Headers of libraries are those of this machine, behind those of the C library for Arm.
set -- CC='aarch64-linux-gnu-gcc -idirafter /usr/include' AR=aarch64-linux-gnu-ar \
	OBJCOPY=aarch64-linux-gnu-objcopy CUDA=0 B="$built" COMMON="$built/obj/common/base/mem.o" \
	ARCHIVES="$built/kernels.a $built/common.a" UNIT_LIBS="-L$library -lcmocka -ldl -lm -lpthread"
make "$@" "$built/tests/kernel_digest" "$built/unit/test_kernel_products" "$built/unit/test_kernel_values" \
	"$built/unit/test_kernel_gradients" "$built/unit/test_kernel_pool"

on_arm() {
	qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$library" "$@"
}
LB_CPU_ISA=avx2 "$B/tests/kernel_digest" 2 >"$T/avx2"
on_arm "$built/tests/kernel_digest" 2 >"$T/neon"
diff "$T/avx2" "$T/neon"
echo "check-neon: $(wc -l <"$T/neon") operations, the bits of AVX2"
LB_SRC=$PWD
export LB_SRC
cd "$T"
for test in "$built"/unit/test_*; do
	on_arm "$test"
done
