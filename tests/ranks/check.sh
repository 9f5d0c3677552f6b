#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh - the same training on one rank and on several, in all the ways in which they can share a
# model: every file of every checkpoint must be the same, to the bit, and controls must not.
#   make check-ranks, or B=build sh tests/ranks/check.sh [short]; the last line counts
set -u
B=$(cd "${B:-build}" && pwd -P) || exit 1
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-ranks.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
short=${1:-}
unset LB_SOCKET LB_RUN LB_ATTEMPT LB_CHECKPOINT_DIR LB_RESUME_FROM LB_RANK
compared=0
different=0
failed=0

. "$(dirname "$0")/training.sh"
ranks_tokens "$B/lbworker" "$T" || exit 1
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	dim = 128
	n_layers = 2
	[lr_scheduler]
	warmup_steps = 2
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 1
	global_batch_size = 4
	seq_len = 32
	steps = 4
	threads = 1
	[parallelism]
	reduction_width = 4
	[comm]
	train_timeout_seconds = 20
	[checkpoint]
	interval = 2
	keep_latest_k = 0
	[validation]
	enable = true
	dataset_path = "$T/text.tokens"
	freq = 2
	steps = 3
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

train() { # train PROGRAM FOLDER RANKS [OPTION…]: its losses in FOLDER.losses
	train_program=$1
	train_folder=$T/$2
	train_ranks=$3
	shift 3
	LB_CHECKPOINT_DIR=$train_folder "$train_program" train "$T/small.toml" --job.dump_folder "$T/out" --device cpu \
		--ranks "$train_ranks" "$@" >"$train_folder.log" 2>"$train_folder.err"
	status=$?
	grep -o '^step [0-9/]* loss [0-9.]* grad_norm [0-9.]*\|^validation .*' "$train_folder.log" \
		>"$train_folder.losses"
	return $status
}

# Every file of every checkpoint, and what was told; adds to compared and different.
compare() { # compare FOLDER FOLDER
	compare_bad=0
	for file in "$T/$1"/step-*/* "$T/$1.losses"; do
		other=$T/$2${file#"$T/$1"}
		compared=$((compared + 1))
		# who wrote it and when is in the manifest only
		case $file in */MANIFEST*) [ -s "$other" ] && continue ;; esac
		cmp -s "$file" "$other" || compare_bad=$((compare_bad + 1))
	done
	different=$((different + compare_bad))
	[ "$compare_bad" = 0 ]
}

same() { # same NAME WHOLE RANKS [OPTION…]
	same_name=$1
	same_whole=$2
	same_ranks=$3
	shift 3
	if ! train "$B/lbworker" try "$same_ranks" "$@"; then
		echo "not ok - $same_name: it failed"
		sed 's/^/# /' "$T/try.err"
		failed=$((failed + 1))
	elif compare "$same_whole" try; then
		echo "ok - $same_name"
	else
		echo "not ok - $same_name: $compare_bad files differ"
	fi
	rm -rf "$T/try"
}

for batch in 4 8; do
	for family in llama $([ -n "$short" ] || echo gpt2); do
		whole=whole-$batch-$family
		options="--training.global_batch_size $batch --model.name $family"
		# shellcheck disable=SC2086 # words
		train "$B/lbworker" "$whole" 1 $options || { cat "$T/$whole.err"; exit 1; }
		for way in 2:2:1:-1 2:1:2:1 2:1:2:2 2:1:2:3 4:4:1:-1 4:1:4:1 4:1:4:3 4:2:2:1 4:2:2:2 4:2:2:3 \
			3:1:3:3 3:3:1:-1; do
			case $short:$batch:$way in
			short:4:2:1:2:1 | short:8:4:2:2:3 | short:4:3:1:3:3) ;;
			short:*) continue ;;
			esac
			IFS=: read -r ranks replicate shard stage <<-WAY
				$way
			WAY
			# shellcheck disable=SC2086 # words
			same "$family, batch $batch: $ranks ranks, $replicate x $shard, ZeRO $stage" "$whole" $ranks \
				$options --parallelism.data_parallel_replicate_degree $replicate \
				--parallelism.data_parallel_shard_degree $shard \
				--parallelism.zero_stage $stage
		done
	done
done

# Step 2 of a training, and on from there by so many ranks: the same checkpoint of step 4.
goes_on() { # goes_on NAME WHOLE RANKS [OPTION…]
	goes_name=$1
	goes_whole=$T/$2/step-00000004
	goes_ranks=$3
	cp -R "$T/$2" "$T/half"
	rm -rf "$T/half/step-00000004"
	shift 3
	if train "$B/lbworker" half "$goes_ranks" "$@" && grep -q '^resumed from .* at step 2' "$T/half.log" &&
		compared=$((compared + 3)) && cmp -s "$T/half/step-00000004/model.safetensors" \
		"$goes_whole/model.safetensors" &&
		cmp -s "$T/half/step-00000004/optimizer.safetensors" "$goes_whole/optimizer.safetensors" &&
		cmp -s "$T/half/step-00000004/train_state.json" "$goes_whole/train_state.json"; then
		echo "ok - $goes_name: gone on from step 2 with $goes_ranks ranks"
	else
		echo "not ok - $goes_name: gone on from step 2 with $goes_ranks ranks"
		sed 's/^/# /' "$T/half.err"
		failed=$((failed + 1))
	fi
	rm -rf "$T/half"
}
for ranks in 1 2 3 4; do
	case $short:$ranks in short:1 | short:4) continue ;; esac
	goes_on llama whole-4-llama $ranks
done

# Activations computed again, and other trees.
if [ -z "$short" ]; then
	for extra in "--activation_checkpoint.mode full" "--parallelism.reduction_width 2" \
		"--training.local_batch_size 2"; do
		# shellcheck disable=SC2086 # words
		train "$B/lbworker" extra 1 $extra
		# shellcheck disable=SC2086 # words
		same "$extra" extra 3 $extra
		rm -rf "$T/extra"
	done
fi

# Few bits: recipes, moments, weights without a copy of more bits; and Muon, which needs whole matrices. What is
# rounded by chance is so by its place in the model and its sample, whoever holds it.
while read -r extra; do
	case $short:$extra in
	short:*8bit* | short:*Muon*) ;;
	short:*) continue ;;
	esac
	# shellcheck disable=SC2086 # words
	train "$B/lbworker" extra 1 $extra
	# shellcheck disable=SC2086 # words
	{
		same "$extra, 3 ranks, ZeRO 3" extra 3 $extra
		same "$extra, 4 ranks, 2 x 2, ZeRO 2" extra 4 $extra --parallelism.zero_stage 2 \
			--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2
		goes_on "$extra" extra 2 $extra
	}
	rm -rf "$T/extra"
done <<-END
	--quantize.recipe nvfp4
	--quantize.recipe mxfp4 --training.mixed_precision_param bfloat16
	--training.mixed_precision_param bfloat16 --model.name gpt2
	--optimizer.moments bfloat16
	--optimizer.name AdamW8bit
	--training.dtype bfloat16
	--training.dtype bfloat16 --optimizer.bf16_stochastic_round true --optimizer.moments bfloat16
	--training.dtype bfloat16 --optimizer.kahan_sum true --optimizer.moments 8bit
	--optimizer.name Muon --training.dtype bfloat16 --optimizer.kahan_sum true
	--optimizer.name Muon --model.name gpt2 --optimizer.adjust_lr_fn original
END

# Without what makes it so it must not be so: none of these may pass.
missed=0
for control in arrival same-samples local-norm last-unit; do
	before=$compared:$different
	if LB_CONTROL=$control train "$B/controls/lbworker" control 2 && compare whole-4-llama control; then
		echo "not ok - control $control: nothing was seen"
		missed=$((missed + 1))
	else
		echo "ok - control $control is seen: $(tail -n 1 "$T/control.err" | grep rank || echo "other bits")"
	fi
	compared=${before%:*}
	different=${before#*:}
	rm -rf "$T/control"
done
echo "ranks: $compared comparisons, $different differences, $failed failed trainings, $missed of 4 controls missed"
[ "$different$failed$missed" = 000 ]
