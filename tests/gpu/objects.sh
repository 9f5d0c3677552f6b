#!/bin/sh
# SPDX-License-Identifier: MIT
# objects.sh FOLDER... - what the assembler said of each kernel (FOLDER/*.o.log, from -Xptxas -v):
# every source has kernels, none spills, none keeps an array in local memory, none takes so many
# registers that a block of 1024 threads would not start, none has more than 16 KiB of shared memory
# of fixed size
# (launch() in kernel.cuh counts on that). Speaks TAP; a line per source.
set -u
count=0
for log in $(for folder; do echo "$folder"/*.o.log; done); do
	count=$((count + 1))
	name=$(basename "$log" .o.log)
	awk -v name="$name" -v number="$count" '
	/Compiling entry function/ { kernels++; kernel = $0; sub(/^[^\047]*\047/, "", kernel); sub(/\047.*/, "", kernel) }
	/bytes stack frame/ {
		for (i = 1; i < NF; i++) {
			if ($(i + 1) == "bytes" && $(i + 2) == "stack" && $i > 0)
				wrong[++wrongs] = kernel ": " $i " bytes of local memory"
			if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $i > 0)
				wrong[++wrongs] = kernel ": spills " $i " bytes"
		}
	}
	/Used [0-9]+ registers/ {
		for (i = 1; i < NF; i++)
		{
			if ($i == "Used" && $(i + 1) > most)
				most = $(i + 1)
			if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/ && $i > 16384)
				wrong[++wrongs] = kernel ": " $i " bytes of shared memory of fixed size"
		}
	}
	END {
		if (!kernels)
			wrong[++wrongs] = "no kernel"
		if (most > 64) # KERNEL in kernel.cuh
			wrong[++wrongs] = most " registers: too many for a block of this size"
		print (wrongs ? "not ok " : "ok ") number " - " name ": " kernels \
			" kernels, at most " most " registers, no spills"
		for (i = 1; i <= wrongs; i++)
			print "# " wrong[i]
	}' "$log"
done
echo "1..$count"
