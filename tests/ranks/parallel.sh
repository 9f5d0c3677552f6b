#!/bin/sh
# SPDX-License-Identifier: MIT
# parallel.sh - one training on one rank and on ranks that hold slices of the model, or share
# sequences: gradients agree in fp32 within a tolerance, other ways of sharing samples give the same
# bits, and a checkpoint is gone on from by any of them. Controls must not pass.
#   make check-ranks, or B=build sh tests/ranks/parallel.sh [short]; the last line counts
set -u
here=$(cd "$(dirname "$0")" && pwd -P) || exit 1
. "$here/training.sh"
ranks_begin "$@"
export MALLOC_PERTURB_=170 # memory that nobody has written holds anything
compared=0
failed=0

# (short is also for sanitized programs, whose products take long)
cat >"$T/small.toml" <<-END
	[job]
	dump_folder = "$T/dump"
	[model]
	flavor = "debugmodel"
	dim = $([ -n "$short" ] && echo 64 || echo 128)
	n_layers = 2
	n_heads = 8
	n_kv_heads = 4
	[lr_scheduler]
	warmup_steps = 2
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 1
	global_batch_size = 4
	seq_len = 32
	steps = 3
	threads = 1
	[parallelism]
	reduction_width = 4
	[comm]
	train_timeout_seconds = 20
	[checkpoint]
	interval = 1
	keep_latest_k = 0
	[validation]
	enable = true
	dataset_path = "$T/text.tokens"
	freq = 3
	steps = 2
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

train() { # train PROGRAM FOLDER RANKS [OPTION…]
	train_program=$1
	train_folder=$T/$2
	train_ranks=$3
	shift 3
	LB_CHECKPOINT_DIR=$train_folder "$train_program" train "$T/small.toml" --device cpu \
		--ranks "$train_ranks" "$@" >"$train_folder.log" 2>"$train_folder.err"
	status=$?
	sed -n 's/^step [0-9/]* loss \([0-9.]*\) .*/\1/p; s/^validation .* loss \([0-9.]*\),.*/\1/p' \
		"$train_folder.log" >"$train_folder.losses"
	return $status
}

verdict() { # verdict STATUS NAME: counts it
	compared=$((compared + 1))
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		sed 's/^/# /' "$T/try.err" 2>/dev/null
		failed=$((failed + 1))
	fi
}

# Losses within 0.001, and, by the first moments, gradients of STEP within LIMIT of each tensor's
# largest.
near() { # near FOLDER FOLDER STEP LIMIT: prints the worst
	paste "$T/$1.losses" "$T/$2.losses" |
		awk '{ d = $1 - $2; if (NF != 2 || d > 0.001 || d < -0.001) bad = 1 } END { exit bad || NR == 0 }' &&
		python3 "$here/near.py" "$T/$1/step-0000000$3/optimizer.safetensors" \
			"$T/$2/step-0000000$3/optimizer.safetensors" "$4"
}

# Every tensor of the last checkpoint, to the bit.
same() { # same FOLDER FOLDER
	for same_file in model.safetensors optimizer.safetensors config.json; do
		cmp -s "$T/$1/step-00000003/$same_file" "$T/$2/step-00000003/$same_file" || return 1
	done
	cmp -s "$T/$1.losses" "$T/$2.losses"
}

compare() { # compare near|same NAME WHOLE RANKS [OPTION…]
	compare_how=$1
	compare_name=$2
	compare_whole=$3
	compare_ranks=$4
	shift 4
	worst=
	train "$B/lbworker" try "$compare_ranks" "$@" && case $compare_how in
	near) worst=$(near "$compare_whole" try 1 "$limit") ;;
	same) same "$compare_whole" try ;;
	esac
	verdict $? "$compare_name${worst:+: $worst}"
	rm -rf "$T/try"
}

whole() { # whole FOLDER RANKS [OPTION…]: what others are compared with
	train "$B/lbworker" "$@" && return
	cat "$T/$1.err"
	exit 1
}

limit=1e-5
tp=--parallelism.tensor_parallel_degree
for family in llama $([ -n "$short" ] || echo gpt2 neox); do
	name="--model.name $family"
	[ "$family" = llama ] || name="$name --model.n_kv_heads 8"
	# shellcheck disable=SC2086 # words
	{
		whole one-$family 1 $name
		whole two-$family 2 $name $tp 2
		worst=$(near one-$family two-$family 1 1e-5)
		verdict $? "$family, 2 slices: $worst"
		for way in 1:2:-1 2:1:-1 1:2:1 1:2:2; do
			case $short:$way in short:1:2:1 | short:1:2:2 | short:2:1:-1) continue ;; esac
			IFS=: read -r replicate shard stage <<-WAY
				$way
			WAY
			compare same "$family, 2 slices x $replicate copies x $shard, ZeRO $stage" two-$family 4 \
				$name $tp 2 --parallelism.data_parallel_replicate_degree $replicate \
				--parallelism.data_parallel_shard_degree $shard --parallelism.zero_stage $stage
		done
		[ -n "$short" ] && continue
		compare near "$family, 2 slices, all of the stream on each" one-$family 2 $name $tp 2 \
			--parallelism.enable_sequence_parallel=false
		compare near "$family, 4 slices" one-$family 4 $name $tp 4
		compare same "$family, 2 slices, activations again" two-$family 2 $name $tp 2 \
			--activation_checkpoint.mode full
	}
done

if [ -z "$short" ]; then
	for extra in "--model.vocab_size 301" "--model.tie_word_embeddings true" \
		"--training.local_batch_size 2" \
		"--u_mup.enable true --optimizer.weight_decay 0.0001 --optimizer.lr 0.5"; do
		# shellcheck disable=SC2086 # words
		{
			whole extra 1 $extra
			compare near "4 slices, $extra" extra 4 $tp 4 $extra
		}
		rm -rf "$T/extra"
	done
	# A scale of what is summed over is one of a slice.
	limit=0.1
	whole extra 1 --quantize.recipe rowwise
	compare near "4 slices, a recipe of few bits" extra 4 $tp 4 --quantize.recipe rowwise
	rm -rf "$T/extra"
	limit=1e-5
	compare near "2 slices x 2, reduction fast" one-llama 4 $tp 2 --parallelism.reduction fast
fi

# Sequences that ranks share.
cp=--parallelism.context_parallel_degree
for family in llama $([ -n "$short" ] || echo gpt2 neox); do
	name="--model.name $family"
	[ "$family" = llama ] || name="$name --model.n_kv_heads 8"
	# shellcheck disable=SC2086 # words
	{
		whole shared-$family 2 $name $cp 2
		worst=$(near one-$family shared-$family 1 1e-5)
		verdict $? "$family, sequences shared by 2: $worst"
		compare same "$family, sequences shared by 2, x 2 copies" shared-$family 4 $name $cp 2 \
			--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 1
		[ -n "$short" ] && continue
		compare same "$family, sequences shared by 2, x 2, ZeRO 3" shared-$family 4 $name $cp 2
		compare same "$family, sequences shared by 2, activations again" shared-$family 2 $name $cp 2 \
			--activation_checkpoint.mode full
		compare near "$family, sequences shared by 4" one-$family 4 $name $cp 4
		compare near "$family, sequences shared by 2, x 2 slices" one-$family 4 $name $cp 2 $tp 2
	}
done
# shellcheck disable=SC2086 # words
{
	name="--model.name mistral --model.sliding_window 24"
	whole extra 1 $name
	compare near "a window longer than a rank's part of a sequence" extra 2 $name $cp 2
	rm -rf "$T/extra"
}
if [ -z "$short" ]; then
	long="--training.seq_len 200 --training.local_batch_size 2"
	# shellcheck disable=SC2086 # words
	{
		whole extra 1 $long
		compare near "sequences shared by 2, runs that are no whole stripes" extra 2 $cp 2 $long
	}
	rm -rf "$T/extra"
fi

# From a checkpoint of one layout on by another.
go_on() { # go_on NAME FROM WHOLE near|same RANKS [OPTION…]
	go_name=$1
	go_from=$2
	go_whole=$3
	go_how=$4
	shift 4
	cp -R "$T/$go_from" "$T/try"
	rm -rf "$T/try/step-00000002" "$T/try/step-00000003"
	go_worst=
	train "$B/lbworker" try "$@" && grep -q '^resumed from .* at step 1' "$T/try.log" &&
		tail -n 3 "$T/$go_whole.losses" >"$T/late.losses" &&
		mv "$T/try" "$T/late-try" && mv "$T/try.losses" "$T/late-try.losses" && case $go_how in
	near)
		go_worst=$(python3 "$here/near.py" "$T/$go_whole/step-00000003/optimizer.safetensors" \
			"$T/late-try/step-00000003/optimizer.safetensors" 1e-4)
		;;
	same)
		cmp -s "$T/$go_whole/step-00000003/model.safetensors" \
			"$T/late-try/step-00000003/model.safetensors" &&
			cmp -s "$T/$go_whole/step-00000003/optimizer.safetensors" \
				"$T/late-try/step-00000003/optimizer.safetensors" &&
			cmp -s "$T/late.losses" "$T/late-try.losses"
		;;
	esac
	verdict $? "$go_name${go_worst:+: $go_worst}"
	rm -rf "$T/try" "$T/late-try"
}
go_on "2 slices, gone on with one" two-llama two-llama near 1
go_on "one, gone on with 2 slices x 2" one-llama one-llama near 4 $tp 2
if [ -z "$short" ]; then
	go_on "sequences shared by 2, gone on with one" shared-llama shared-llama near 1
	go_on "one, gone on with sequences shared by 2, x 2 slices" one-llama one-llama near 4 $cp 2 $tp 2
	go_on "2 slices, gone on with 2 slices x 2" two-llama two-llama same 4 $tp 2
	go_on "2 slices, gone on with 4" two-llama two-llama near 4 $tp 4
	# Weights alone, as a start.
	train "$B/lbworker" try 2 $tp 2 --training.steps 1 --checkpoint.initial_load_path \
		"$T/one-llama/step-00000003"
	mv "$T/try" "$T/loaded"
	train "$B/lbworker" try 1 --training.steps 1 --checkpoint.initial_load_path \
		"$T/one-llama/step-00000003" &&
		worst=$(python3 "$here/near.py" "$T/loaded/step-00000001/optimizer.safetensors" \
			"$T/try/step-00000001/optimizer.safetensors")
	verdict $? "weights of another model as a start, by 2 slices: $worst"
fi

# What does not divide is refused, with what would.
refused() { # refused NAME WORDS RANKS [OPTION…]
	refused_name=$1
	refused_words=$2
	shift 2
	train "$B/lbworker" refused "$@"
	[ "$status $(wc -l <"$T/refused.err") $(grep -c "$refused_words" "$T/refused.err")" = "2 1 1" ]
	verdict $? "$refused_name"
}
refused "slices that heads do not allow" \
	"tensor_parallel_degree: 8 must divide n_heads 8, n_kv_heads 4 and ffn_dim [0-9]*: 1, 2, 4$" 8 $tp 8
refused "ranks that slices do not divide" \
	"tensor_parallel_degree: 2 wants a multiple of 2 ranks, and there are 3: 1, 3 would do" 3 $tp 2
refused "stages that what slices leave does not allow" \
	"pipeline_parallel_degree: 2 wants a multiple of 2 ranks, and there are 3 for it beside the other degrees: 1, 3 would do" \
	6 $tp 2 --parallelism.pipeline_parallel_degree 2 --model.n_layers 4
refused "slices of an embedding that two stages would share" \
	"pipeline_parallel_degree: must be 1 where the head is the embedding" 2 \
	--parallelism.pipeline_parallel_degree 2 --model.n_layers 4 --model.tie_word_embeddings true
refused "stages of several layers' runs each" \
	"pipeline_parallel_schedule: must be \"1F1B\"" 2 --parallelism.pipeline_parallel_degree 2 --model.n_layers 4 \
	--parallelism.pipeline_parallel_schedule Interleaved1F1B
refused "stages of which one has no layer" "stages of 2 layers, .*: 1, 2 would do$" 4 --parallelism.pipeline_parallel_degree 4

refused "a sequence that its ranks do not divide" \
	"seq_len: .*seq_len 34 must be a multiple of 4 where 2 ranks share a sequence: 36 would do" 2 $cp 2 \
	--training.seq_len 34

# Without what makes it so it must not be so.
missed=0
for control in norms-apart:$tp norm-twice:$tp places:$cp; do
	if LB_CONTROL=${control%%:*} train "$B/controls/lbworker" control 2 "${control#*:}" 2 &&
		worst=$(near one-llama control 1 1e-5); then
		echo "not ok - control ${control%%:*}: nothing was seen"
		missed=$((missed + 1))
	else
		echo "ok - control ${control%%:*} is seen"
	fi
	rm -rf "$T/control"
done
echo "parallel: $compared comparisons, $failed failed, $missed of 3 controls missed"
[ "$failed$missed" = 00 ]
