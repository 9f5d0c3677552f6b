#!/bin/sh
# SPDX-License-Identifier: MIT
# code.sh FILE - for which GPUs a library or object of nvcc's holds code, and how many times, a line
# each: "14 ptx 80" is a text that drivers compile for all GPUs from 8.0 on, "14 cubin 90" code for
# 9.0. Reads the fat binaries themselves, so that it needs none of the toolkit's tools.
set -eu
section=$(mktemp "${TMPDIR:-/tmp}/lb-code.XXXXXX")
trap 'rm -f "$section"' EXIT
objcopy -O binary --only-section=.nv_fatbin "$1" "$section"
# A fat binary: magic, version and header's size (16 bits each), bytes of all entries. An entry:
# kind (1 PTX, 2 code) in 16 bits, header's bytes, payload's bytes, and seven words on the GPU it is
# for.
od -An -v -tu4 -w4 "$section" | awk '
	{ word[NR - 1] = $1 }
	END {
		for (i = 0; i < NR;) {
			if (word[i] != 3126193488) {
				i++
				continue
			}
			end = i + 4 + word[i + 2] / 4
			for (i += 4; i < end; i += (word[i + 1] + word[i + 2]) / 4)
				count[(word[i] % 65536 == 1 ? "ptx " : "cubin ") word[i + 7]]++
		}
		for (name in count)
			print count[name], name
	}' | sort -k 2
