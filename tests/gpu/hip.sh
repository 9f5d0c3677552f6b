#!/bin/sh
# SPDX-License-Identifier: MIT
# hip.sh FOLDER... - what became of each kernel for AMD (FOLDER/*.s, assembly for gfx90a): every
# source has kernels, none spills to memory, none keeps an array there. Scalars that find no
# register lie in lanes of vector registers, as long as there is no private memory: that is only
# said. Speaks TAP; a line per source.
set -u
count=0
for code in $(for folder; do echo "$folder"/*.s; done); do
	count=$((count + 1))
	name=$(basename "$code" .s)
	awk -v name="$name" -v number="$count" '
	$1 == ".name:" { kernel = $2 }
	$1 == ".private_segment_fixed_size:" { kernels++; if ($2 > 0) wrong[++wrongs] = kernel ": " $2 " bytes of private memory" }
	$1 == ".vgpr_spill_count:" && $2 > 0 { wrong[++wrongs] = kernel ": spills " $2 " registers" }
	$1 == ".sgpr_spill_count:" && $2 > 0 { print "# " kernel ": " $2 " scalars lie in vector registers" }
	$1 == ".vgpr_count:" && $2 > most { most = $2 }
	END {
		if (!kernels)
			wrong[++wrongs] = "no kernel"
		print (wrongs ? "not ok " : "ok ") number " - " name " for gfx90a: " kernels + 0 " kernels, at most " most + 0 " registers"
		for (i = 1; i <= wrongs; i++)
			print "# " wrong[i]
		exit wrongs > 0
	}' "$code" || failed=1
done
echo "1..$count"
[ -z "${failed:-}" ] && [ "$count" -gt 0 ]
