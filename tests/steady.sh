#!/bin/sh
# SPDX-License-Identifier: MIT
# steady.sh TEST… - whether tests pass each time: $TIMES times alone, once on a single processor,
# and $TIMES times beside $LOAD busy processes. That takes hours, in any number of sittings: each
# run is a line of $DONE, "alone kill.t ok 3f2a9c1", and what is there already is not done again.
# All that a failed run printed, and its logs, lie in the folder $DONE.failed. $AT_ONCE of them run
# side by side (1): several are done sooner, and none is quite alone.
#   make check-steady [TIMES=20] [LOAD=6] [AT_ONCE=1] [DONE=FILE] [TESTS="…"]; the last line counts
set -u
times=${TIMES:-20} load=${LOAD:-6} list=${DONE:?a file that remembers what was run}

# One run: steady.sh --one CIRCUMSTANCE ROUND TEST
if [ "${1:-}" = --one ]; then
	name=${4##*/}
	LB_RECORD=$list.failed/$name.$2.$3
	export LB_RECORD
	case $2 in single) within="taskset -c $(($$ % $(nproc)))" ;; *) within= ;; esac
	# shellcheck disable=SC2086 # words
	if $within sh "$4" >"$LB_RECORD" 2>&1 </dev/null && ! grep -q '^not ok' "$LB_RECORD"; then
		rm -f "$LB_RECORD" "$LB_RECORD.logs"
		echo "$2 $name ok $COMMIT" >>"$list"
	else
		echo "$2 $name failed $COMMIT $LB_RECORD" | tee -a "$list"
	fi
	exit 0
fi

COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export COMMIT DONE
busy=
trap '[ -z "$busy" ] || kill $busy' EXIT
trap 'exit 130' HUP INT TERM
mkdir -p "$list.failed" && touch "$list" || exit 1

# In rounds, so that an early end has seen all of them.
rounds() { # rounds CIRCUMSTANCE HOW_OFTEN TEST…
	kind=$1
	often=$2
	shift 2
	for round in $(seq "$often"); do
		for test; do
			[ "$(grep -c "^$kind ${test##*/} " "$list")" -ge "$round" ] || echo "$kind $round $test"
		done
	done | xargs -r -n 3 -P "${AT_ONCE:-1}" sh "$0" --one
}

rounds alone "$times" "$@"
rounds single 1 "$@"
for _ in $(seq "$load"); do
	sh -c 'while :; do :; done' &
	busy="$busy $!"
done
rounds beside "$times" "$@"
failed=$(grep -c '^[a-z]* [^ ]* failed ' "$list")
echo "steady: $# tests, $(grep -c '^[a-z]* [^ ]* ok ' "$list") runs passed, $failed failed"
[ "$failed" = 0 ]
