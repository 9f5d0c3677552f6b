#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh SECONDS PROGRAM - one fuzz target for so long, or until RUNS inputs if that is set, from its
# committed seeds. What is found lies in $B/findings, with the line that plays it again.
# Speaks TAP.
set -u
# what is freed is kept back for a shorter while: a quarter of a gigabyte is mostly page faults
ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS
seconds=$1 program=$2
here=$(cd "$(dirname "$0")" && pwd -P)
B=${B:?}
name=$(basename "$program")
name=${name#fuzz_}
log=$B/findings/$name.log
mkdir -p "$B/findings" "$B/corpus/$name"

echo "1..1"
if "$program" -max_total_time="$seconds" ${RUNS:+-runs="$RUNS"} -max_len=4096 -timeout=10 \
	-rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$B/findings/$name-" \
	"$B/corpus/$name" "$here/corpus/$name" >"$log" 2>&1; then
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	echo "ok - $name: ${runs:-0} inputs"
else
	echo "not ok - $name"
	tail -n 25 "$log" | sed 's/^/# /'
	echo "# again: $program $B/findings/$name-…"
fi
