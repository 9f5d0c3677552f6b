#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh SECONDS PROGRAM - one fuzz target for so long, or until RUNS inputs if that is set, from
# its committed seeds and what earlier runs have found worth keeping ($B/corpus). What breaks lies
# in $B/findings, with the line that plays it again; how many inputs there were, in all runs
# together, in $B/counts. Speaks TAP.
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
counts=$B/counts
mkdir -p "$B/findings" "$B/corpus/$name" "$counts"

# Adds what the last run has done, also one that was interrupted, to the count of all runs. One that
# was killed has told how far it was now and then.
tally() {
	[ -e "$counts/$name.running" ] || return
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p; s/^#\([0-9]*\)[[:space:]].*/\1/p' "$log" | sort -n | tail -n 1)
	echo $(($(cat "$counts/$name" 2>/dev/null || echo 0) + ${runs:-0})) >"$counts/$name.new"
	mv "$counts/$name.new" "$counts/$name"
	rm "$counts/$name.running"
}

tally
: >"$log"
: >"$counts/$name.running"
trap : INT TERM		# the fuzzer gets it, too, and says how far it was
echo "1..1"
"$program" -max_total_time="$seconds" ${RUNS:+-runs="$RUNS"} -max_len=4096 -timeout=10 \
	-rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$B/findings/$name-" \
	"$B/corpus/$name" "$here/corpus/$name" >"$log" 2>&1
status=$?
tally
if [ $status = 0 ] || [ $status = 72 ]; then	# 72: interrupted
	echo "ok - $name: ${runs:-0} inputs, $(cat "$counts/$name") in all"
else
	echo "not ok - $name"
	tail -n 25 "$log" | sed 's/^/# /'
	echo "# again: $program $B/findings/$name-…"
fi
