#!/bin/sh
# SPDX-License-Identifier: MIT
# stub_driver.sh TOOLKIT_STUB_LIBCUDA - C source of a libcuda.so.1 for a machine without a driver:
# code can be "loaded" (whatever asks for a kernel gets a handle), everything else says that there
# is no device. Enough for cuDNN to compile its kernels and make a plan; nothing can run.
set -eu
echo "/* made by tests/gpu/stub_driver.sh */"
nm -D --defined-only "$1" | awk '$3 ~ /^cu[A-Z]/ {
	sub(/@.*/, "", $3)
	if (seen[$3]++)
		next
	if ($3 ~ /^cu(Library|Module)Unload|^cu(Func|Kernel)Set/)
		printf "int %s(void);\nint %s(void) { return 0; }\n", $3, $3
	else if ($3 ~ /^cu(Func|Kernel|Library|Module)/)
		printf "int %s(void **p);\nint %s(void **p) { if (p) *p = (void *)16; return 0; }\n", $3, $3
	else
		printf "int %s(void);\nint %s(void) { return 100; }\n", $3, $3
}'
