#!/bin/sh
# SPDX-License-Identifier: MIT
# checkpoint.sh [KILLS [ROUNDS]] - kills a trainer that saves after every step KILLS times (1000),
# each time at a random moment, and ROUNDS times (1) at each failpoint of a save; reads every byte
# of every checkpoint afterwards: all must be valid, none of an earlier kill may be lost, and what
# the dead left must be gone at the end.
#   B=build sh tests/faults/checkpoint.sh 1000 10
kills=${1:-1000}
rounds=${2:-1}
. "$(dirname "$0")/../system/trainer.sh"

fail() {
	echo "checkpoint.sh: kill $n: $*"
	tail -n 5 "$T/err" "$T/verify"
	exit 1
}
entries() { find "$T/checkpoints" -mindepth 1 -maxdepth 1 -name "$1" 2>/dev/null; }
newest() { entries 'step-*[0-9]' | sed -n 's,.*/\(step-[0-9]*\)$,\1,p' | sort | tail -n 1; }
leftovers() { entries 'step-*.*-*' | wc -l; }

awk 'BEGIN { srand(5); for (i = 0; i < 20000; i++) printf "%c", 97 + int(rand() * 26) }' >"$T/text"
n=0
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/out" 2>"$T/err" || fail "prepare"
cat >"$T/config.toml" <<-END
	[job]
	dump_folder = "$T"
	[lr_scheduler]
	warmup_steps = 0
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 1
	seq_len = 16
	steps = 100000000
	threads = 1
	[checkpoint]
	interval = 1
	keep_latest_k = 2
	[metrics]
	peak_tflops = 1
END
: >"$T/verify"
mkfifo "$T/pipe"
during=0 before=step-00000000

look() {	# after a kill
	[ "$(leftovers)" = 0 ] || during=$((during + 1))
	now=$(newest)
	[ -n "$now" ] || return 0
	"$B/lbworker" ckpt verify "$T/checkpoints" >"$T/verify" 2>&1 ||
		fail "a checkpoint is not valid"
	[ "$(printf '%s\n%s\n' "$before" "$now" | sort | tail -n 1)" = "$now" ] ||
		fail "newest was $before, is $now"
	before=$now
}

while [ $n -lt "$kills" ]; do
	n=$((n + 1))
	"$B/lbworker" train "$T/config.toml" >"$T/pipe" 2>"$T/err" &
	worker=$!
	exec 3<"$T/pipe"
	while read -r line <&3; do
		case $line in "a token needs"*) break ;; esac
	done
	# 0 to 300 ms after the set-up; a save takes 5 to 50
	sleep "$(awk -v seed="$n" 'BEGIN { srand(seed * 7919); print rand() * 0.3 }')"
	kill -KILL $worker 2>/dev/null || fail "it had ended by itself"
	wait $worker 2>/dev/null
	exec 3<&-
	worker=
	look
done

points=$("$B/lbd" --failpoints | awk '$1 == "lbworker" { print $2 }')
round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	for point in $points; do
		n="$round at $point"
		LB_FAILPOINT=$point:kill@$((1 + round % 4)) \
			"$B/lbworker" train "$T/config.toml" >"$T/out" 2>"$T/err"
		[ $? = 137 ] || fail "it did not die there"
		look
	done
done
"$B/lbworker" train "$T/config.toml" --training.steps 1 >"$T/out" 2>"$T/err"
left=$(leftovers)
[ "$left" = 0 ] || fail "$left leftovers were not removed"
[ "$before" != step-00000000 ] || fail "nothing was ever saved"
count=$(echo "$points" | wc -l)
echo "$kills kills and $count failpoints x $rounds, $during during a save:" \
	"all checkpoints valid, newest $before"
