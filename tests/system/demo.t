#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make demo` shows, with fewer steps: it succeeds, on Slurm and without; however it ends,
# nothing is left of it.
. "$(dirname "$0")/lib.sh"
[ -d /usr/share/games/fortunes ] || bail_out "no texts (Debian package fortunes)"

# Steps of one sequence: what is shown is not the speed.
LB_DEMO_STEPS=24
LB_DEMO_BATCH=1
export LB_DEMO_STEPS LB_DEMO_BATCH

leftovers() {
	find "$B" -maxdepth 1 -name 'demo.*'
	naming "$B/demo." | sed 's/^/is still running: /'
}

tells_the_story() {	# FILE
	grep -q '^== kill -9' "$1" && grep -q 'came back by itself' "$1" &&
		grep -q '^The loss fell' "$1"
}

for scheduler in slurm local; do
	ok "the demo succeeds with scheduler $scheduler" \
		env LB_DEMO_SCHEDULER=$scheduler sh "$src/etc/demo"
	mv "$T/ok.out" "$T/out"
	ok "it tells the story" tells_the_story "$T/out"
	is "$(leftovers)" "" "it leaves nothing behind"
done

LB_DEMO_SCHEDULER=slurm sh "$src/etc/demo" >"$T/out" 2>&1 &
demo=$!
wait_for 'grep -q "^== following" "$T/out"' 60
kill -TERM $demo
wait $demo
is $? 130 "interrupted, it ends"
is "$(leftovers)" "" "and leaves nothing behind"
done_testing
