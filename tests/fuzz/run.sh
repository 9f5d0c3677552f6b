#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh SECONDS PROGRAM… - each fuzz target for so long, or until RUNS inputs if that is set, from
# its committed seeds; two at a time. What is found lies in $B/findings, with the line that plays it
# again.
# Speaks TAP.
set -u
# what is freed is kept back for a shorter while: a quarter of a gigabyte is mostly page faults
ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS
seconds=$1
shift
here=$(cd "$(dirname "$0")" && pwd -P)
B=${B:?}
mkdir -p "$B/findings"

fuzz_one() {
	name=$(basename "$1")
	name=${name#fuzz_}
	seeds=$here/corpus/$name
	grown=$B/corpus/$name
	mkdir -p "$grown"
	if "$1" -max_total_time="$seconds" ${RUNS:+-runs="$RUNS"} -max_len=4096 -timeout=10 \
		-rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$B/findings/$name-" "$grown" \
		"$seeds" >"$B/findings/$name.log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$B/findings/$name.log")
		echo "ok - $name: ${runs:-0} inputs"
	else
		echo "not ok - $name"
		tail -n 25 "$B/findings/$name.log" | sed 's/^/# /'
		echo "# again: $1 $B/findings/$name-…"
	fi
}

echo "1..$#"
while [ $# -gt 0 ]; do
	fuzz_one "$1" >"$B/findings/first" &
	first=$!
	[ $# -lt 2 ] || fuzz_one "$2"
	wait $first
	cat "$B/findings/first"
	[ $# -lt 2 ] || shift
	shift
done
