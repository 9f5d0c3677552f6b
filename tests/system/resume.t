#!/bin/sh
# SPDX-License-Identifier: MIT
# resume.t - kill -9 at any moment, go on, and nothing shows: loss, weights and both moments of
# every step are those of the undisturbed training, to the bit, in each family.
#
# Every step leaves a checkpoint, so every step is compared whole: train_state.json holds the loss
# as a number that reads back exactly. Some kills hit a step, some hit a checkpoint on its way.
#   make check-resume, or B=build sh tests/system/resume.t
. "$(dirname "$0")/trainer.sh"

steps=28
awk 'BEGIN { srand(5); for (i = 0; i < 30000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
	>"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	[lr_scheduler]
	warmup_steps = 5
	decay_type = "sqrt"
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 2
	global_batch_size = 8
	batch_ramp = [2, 2, 60]
	spike_factor = 0.75
	max_skipped_steps = 100
	seq_len = 16
	steps = $steps
	threads = 2
	[checkpoint]
	interval = 1
	keep_latest_k = 0
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

compared=0
train() { # train FAMILY FOLDER
	LB_CHECKPOINT_DIR=$2 "$B/lbworker" train "$T/small.toml" --model.name "$1"
}

# Kills the training once it has printed a line that matches, or a little later: who reads may be
# late, so the writing of checkpoint NTH waits for it.
kill_at() { # kill_at FAMILY FOLDER PATTERN NTH
	rm -f "$T/pipe"
	mkfifo "$T/pipe"
	LB_FAILPOINT=manifest.before:delay:600s@$4 LB_CHECKPOINT_DIR=$2 "$B/lbworker" train "$T/small.toml" --model.name "$1" \
		>"$T/pipe" 2>>"$T/err" &
	worker=$!
	while read -r line; do
		# shellcheck disable=SC2254 # a pattern is meant
		case $line in
		$3) kill -KILL "$worker" && break ;;
		esac
	done <"$T/pipe"
	wait "$worker" 2>/dev/null
	killed=$?
	worker=
	[ $killed = 137 ]
}

# Every file of every step of two trainings, but what a killed writer left; adds to `compared`.
same_steps() { # same_steps FOLDER FOLDER
	diff -r -x '*.tmp-*' "$1" "$2" >>"$T/err" 2>&1 || return 1
	for folder in "$2"/step-????????; do
		[ -s "$folder/train_state.json" ] && [ -s "$folder/model.safetensors" ] &&
			[ -s "$folder/optimizer.safetensors" ] || return 1
		compared=$((compared + 1))
	done
	[ $((compared % steps)) = 0 ]
}

for family in llama neox gpt2 mistral qwen3 olmo2 gemma2 gemma3; do
	: >"$T/err"
	train $family "$T/whole" >"$T/log" 2>>"$T/err"
	ok $? "$family: an undisturbed training"
	case $family in
	llama | neox | gpt2)
		grep -q 'is left out' "$T/err" && grep -q '"usual_norm": [0-9.]*[1-9]' \
			"$T/whole/step-00000028/train_state.json"
		ok $? "$family: with a step left out, so that the guard's memory matters"
		;;
	esac
	for at in 'step 3/*' 'step 5/*' 'checkpoint *-00000011 *' 'step 19/*' 'step 25/*'; do
		# a checkpoint knows nothing of families: at a few moments they show that their
		# tensors are in it
		case $family:$at in llama:* | neox:* | gpt2:* | *:'step 5/'* | *:checkpoint*) ;; *) continue ;; esac
		kill_at $family "$T/killed" "$at" $steps
		ok $? "$family: kill -9 at '$at'"
		# and once more, soon after it went on
		case $at in
		'step 5/'*)
			kill_at $family "$T/killed" 'resumed from*' 1
			ok $? "$family: and again, as soon as it has gone on"
			;;
		esac
		train $family "$T/killed" >"$T/log" 2>>"$T/err" && grep -q '^resumed from' "$T/log"
		ok $? "$family: it goes on to its end"
		same_steps "$T/whole" "$T/killed"
		ok $? "$family: loss, weights and moments of all $steps steps are the same bits"
		rm -rf "$T/killed"
	done
	rm -rf "$T/whole"
done
echo "1..$count"
echo "# $compared steps compared, each to the bit"
