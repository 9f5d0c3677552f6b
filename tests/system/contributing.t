#!/bin/sh
# SPDX-License-Identifier: MIT
# contributing.t - the recipes of CONTRIBUTING.md: each lists the files that its example stands in.
. "$(dirname "$0")/lib.sh"
cd "$src" || exit 1

listed() {	# RECIPE
	awk -v recipe="$1" '
	/^###? / { inside = $0 == "### " recipe }
	inside && /^- `/ { split($0, part, "`"); print part[2] }' CONTRIBUTING.md | sort
}

found() {	# ERE
	grep -rlE --include='*.[ch]' --include='*.cu' --include='*.scd' --include=CHECKPOINTS.md -- "$1" \
		common sql slurm daemon ctl worker kernels docs | sort
}

sed -n 's/^### //p' CONTRIBUTING.md >"$T/recipes"
like "$(wc -l <"$T/recipes")" '^[1-9]' "there are recipes"
while read -r recipe; do
	example=$(awk -v recipe="$recipe" '
	/^###? / { inside = $0 == "### " recipe }
	inside && /^Follow `/ { split($0, part, "`"); print part[2] }' CONTRIBUTING.md)
	is "$(listed "$recipe")" "$(found "${example:-no example}")" "$recipe: the list is what $example stands in"
done <"$T/recipes"
done_testing
