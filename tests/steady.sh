#!/bin/sh
# SPDX-License-Identifier: MIT
# steady.sh TEST… - whether tests pass each time: $TIMES times alone, as often beside $LOAD busy processes, and once on
# a single processor. That takes hours, in any number of sittings: each run is a line of $DONE, "alone kill.t ok 3f2a9c1",
# and what is there already is not done again. All that a failed run printed, and its logs, lie in the folder $DONE.failed.
#   make check-steady [TIMES=20] [LOAD=6] [DONE=FILE] [TESTS="…"]; the last line counts
set -u
times=${TIMES:-20} load=${LOAD:-6} list=${DONE:?a file that remembers what was run}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
busy=
trap '[ -z "$busy" ] || kill $busy' EXIT
trap 'exit 130' HUP INT TERM
mkdir -p "$list.failed" && touch "$list" || exit 1

# One run more; COMMAND stands before the test.
run() { # run CIRCUMSTANCE TEST COMMAND…
	circumstance=$1
	path=$2
	name=${path##*/}
	shift 2
	LB_RECORD=$list.failed/$name.$circumstance.$round
	export LB_RECORD
	if "$@" "$path" >"$LB_RECORD" 2>&1 && ! grep -q '^not ok' "$LB_RECORD"; then
		rm -f "$LB_RECORD" "$LB_RECORD.logs"
		echo "$circumstance $name ok $commit" >>"$list"
	else
		echo "$circumstance $name failed $commit $LB_RECORD" | tee -a "$list"
	fi
}
# In rounds, so that an early end has seen all of them.
rounds() { # rounds CIRCUMSTANCE HOW_OFTEN TESTS COMMAND…
	kind=$1
	often=$2
	tests=$3
	shift 3
	round=1
	while [ "$round" -le "$often" ]; do
		for test in $tests; do
			ran=$(grep -c "^$kind ${test##*/} " "$list")
			[ "$ran" -ge "$round" ] || run "$kind" "$test" "$@"
		done
		round=$((round + 1))
	done
}

rounds alone "$times" "$*" sh
rounds single 1 "$*" taskset -c 0 sh
for _ in $(seq "$load"); do
	sh -c 'while :; do :; done' &
	busy="$busy $!"
done
rounds beside "$times" "$*" sh
failed=$(grep -c '^[a-z]* [^ ]* failed ' "$list")
echo "steady: $# tests, $(grep -c '^[a-z]* [^ ]* ok ' "$list") runs passed, $failed failed"
[ "$failed" = 0 ]
