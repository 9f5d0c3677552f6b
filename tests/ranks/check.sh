#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh - the same training on one rank and on several, in all the ways in which they can share a
# model: every file of every checkpoint must be the same, to the bit, and controls must not.
#   make check-ranks, or B=build sh tests/ranks/check.sh [short] [cuda]; the last line counts. cuda:
#   on emulated GPUs, arrays between ranks by the stand-in of NCCL, which takes its time
set -u
. "$(dirname "$0")/training.sh"
ranks_begin "$@"
export MALLOC_PERTURB_=170 # memory that nobody has written holds anything
export LB_NCCL_STANDIN=delay=300
compared=0
different=0
failed=0
family=llama # whose choices of products are kept in one folder, so that they are the same ones

# (short is also for sanitized programs, whose products take long)
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	dim = $([ -n "$short" ] && echo 64 || echo 128)
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
	LB_CHECKPOINT_DIR=$train_folder "$train_program" train "$T/small.toml" --job.dump_folder "$T/out-$family" --device $device \
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
	case $device:$short:$batch in cuda:1:8) continue ;; esac
	for family in llama $([ -n "$short" ] || echo gpt2); do
		whole=whole-$batch-$family
		options="--training.global_batch_size $batch --model.name $family"
		# shellcheck disable=SC2086 # words
		train "$B/lbworker" "$whole" 1 $options || { cat "$T/$whole.err"; exit 1; }
		for way in 2:2:1:-1 2:1:2:1 2:1:2:2 2:1:2:3 4:4:1:-1 4:1:4:1 4:1:4:3 4:2:2:1 4:2:2:2 4:2:2:3 \
			3:1:3:3 3:3:1:-1; do
			case $short:$batch:$way in
			1:4:2:1:2:1 | 1:8:4:2:2:3 | 1:4:3:1:3:3) ;;
			1:*) continue ;;
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

# The other families, whose layers have norms, windows and gates of their own.
for family in mistral qwen3 olmo2 gemma2 gemma3; do
	case $device$short:$family in cuda1:* | cpu1:mistral | cpu1:olmo2 | cpu1:gemma2) continue ;; esac
	options="--model.name $family"
	# a window that is shorter than a sequence
	case $family in mistral | gemma*) options="$options --model.sliding_window 9" ;; esac
	# shellcheck disable=SC2086 # words
	train "$B/lbworker" extra 1 $options || { cat "$T/extra.err"; exit 1; }
	for way in 2:2:1:-1 4:2:2:1 4:1:4:3; do
		case $short:$way in 1:4:2:2:1) continue ;; esac
		IFS=: read -r ranks replicate shard stage <<-WAY
			$way
		WAY
		# shellcheck disable=SC2086 # words
		same "$family: $ranks ranks, $replicate x $shard, ZeRO $stage" extra $ranks $options \
			--parallelism.data_parallel_replicate_degree $replicate \
			--parallelism.data_parallel_shard_degree $shard --parallelism.zero_stage $stage
	done
	rm -rf "$T/extra"
done

family=llama

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
	case $short:$ranks in 1:1 | 1:4) continue ;; esac
	case $device:$short:$ranks in cuda:1:3) continue ;; esac
	goes_on llama whole-4-llama $ranks
done

# Stages of a pipeline: one rank's bits, by whatever number of stages, however layers lie on them,
# and however each stage's ranks share samples and the stage. "1" is one rank, which all others are
# held against.
pp=--parallelism.pipeline_parallel_degree
copies=--parallelism.data_parallel_replicate_degree
shards=--parallelism.data_parallel_shard_degree
even="--parallelism.pipeline_parallel_first_stage_less_layers 0 --parallelism.pipeline_parallel_last_stage_less_layers 0"
train "$B/lbworker" deep 1 --model.n_layers 4 || exit 1
while read -r long ranks ways; do
	[ -n "$short" ] && [ "$long" = long ] && continue
	case $device:$short:$ranks in cuda:1:4) continue ;; esac
	# shellcheck disable=SC2086 # words
	same "stages, $ranks ranks: $ways" deep $ranks --model.n_layers 4 $ways
done <<-END
	short 2 $pp 2
	short 4 $pp 2 $copies 2 $shards 1
	long 4 $pp 2 $copies 1 $shards 2 --parallelism.zero_stage 1
	long 4 $pp 2 $copies 1 $shards 2 --parallelism.zero_stage 2
	short 4 $pp 2 $copies 1 $shards 2 --parallelism.zero_stage 3
	long 3 $pp 3
	long 4 $pp 4 $even
	long 2 $pp 2 --parallelism.pipeline_parallel_first_stage_less_layers 3
	long 6 $pp 2 $copies 1 $shards 3 --parallelism.zero_stage 3
END
[ "$device$short" = cuda1 ] || goes_on deep deep 2 --model.n_layers 4 $pp 2
if [ -z "$short" ]; then
	goes_on deep deep 4 --model.n_layers 4 $pp 2
	# shellcheck disable=SC2086 # words
	goes_on deep deep 4 --model.n_layers 4 $pp 4 $even
	train "$B/lbworker" staged 2 --model.n_layers 4 $pp 2
	goes_on "from two stages" staged 1 --model.n_layers 4
	goes_on "from two stages" staged 3 --model.n_layers 4 $pp 3
	# Weights of another model as a start.
	# A pass is a micro-batch; validation is counted in whole batches.
	train "$B/lbworker" extra 1 --model.n_layers 4 --validation.steps 12
	same "two stages, local batches of 4 in micro-batches of 1" extra 2 --model.n_layers 4 $pp 2 \
		--training.local_batch_size 4 --validation.steps 3
	rm -rf "$T/extra"
	start="--model.n_layers 4 --checkpoint.initial_load_path $T/deep/step-00000004"
	# shellcheck disable=SC2086 # words
	{
		train "$B/lbworker" extra 1 $start
		same "two stages, begun with weights of another model" extra 2 $start $pp 2
		rm -rf "$T/extra"
	}
	while read -r extra; do
		# shellcheck disable=SC2086 # words
		{
			train "$B/lbworker" extra 1 --model.n_layers 4 $extra || cat "$T/extra.err"
			same "two stages x 2, $extra" extra 4 --model.n_layers 4 $extra $pp 2
		}
		rm -rf "$T/extra"
	done <<-END
		--model.name gpt2 --model.tie_word_embeddings false
		--model.name neox
		--model.name qwen3 --model.tie_word_embeddings false
		--model.name olmo2
		--training.document_end 97
		--training.label_smoothing 0.1 --training.z_loss 0.0001
		--u_mup.enable true --optimizer.weight_decay 0.0001 --optimizer.lr 0.5
		--activation_checkpoint.mode full
		--activation_checkpoint.mode selective
	END
	# Beside slices, and shared sequences: the bits of those without stages.
	for other in --parallelism.tensor_parallel_degree --parallelism.context_parallel_degree; do
		case $device in cuda) continue ;; esac
		train "$B/lbworker" extra 2 --model.n_layers 4 $other 2
		same "two stages, $other 2" extra 4 --model.n_layers 4 $other 2 $pp 2
		rm -rf "$T/extra"
	done
	# In bf16 the stream is rounded between two stages before it is normed: the bits are those
	# of so many stages.
	bf16="--training.mixed_precision_param bfloat16"
	# shellcheck disable=SC2086 # words
	{
		train "$B/lbworker" extra 2 --model.n_layers 4 $bf16 $pp 2
		same "two stages x 2, bf16" extra 4 --model.n_layers 4 $bf16 $pp 2
		rm -rf "$T/extra"
	}
fi
rm -rf "$T/deep" "$T/staged"

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

# Few bits: recipes, moments, weights without a copy of more bits; and Muon, which needs whole
# matrices. What is rounded by chance is so by its place in the model and its sample, whoever holds
# it.
printf 'base = "mxfp8"\n[forward]\nx = "e4m3fn 1x32 up stochastic"\n' >"$T/chance.toml"
while read -r extra; do
	case $device:$short:$extra in
	cuda:*quantize* | cuda:*dtype* | cuda:*8bit* | cuda:*Muon*) continue ;;
	cpu:1:*8bit* | cpu:1:*Muon* | cpu:1:*chance* | *::*) ;;
	*) continue ;;
	esac
	# shellcheck disable=SC2086 # words
	train "$B/lbworker" extra 1 $extra
	# shellcheck disable=SC2086 # words
	{
		same "$extra, 3 ranks, ZeRO 3" extra 3 $extra
		same "$extra, 4 ranks, 2 x 2, ZeRO 2" extra 4 $extra --parallelism.zero_stage 2 \
			--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2
		case $extra in *gpt2* | *mixed*) ;; *) same "$extra, 4 ranks, 2 stages, ZeRO 3" extra 4 $extra $pp 2 ;; esac
		goes_on "$extra" extra 2 $extra
	}
	rm -rf "$T/extra"
done <<-END
	--quantize.recipe nvfp4
	--quantize.recipe $T/chance.toml
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
# Exchanges take their time, so that what does not wait for them is too early.
for control in arrival same-samples local-norm last-unit stream too-early; do
	case $device:$short:$control in cuda:1:arrival | cuda:1:same-samples | cuda:*:stream) continue ;; esac
	before=$compared:$different
	stages=$([ "$control" = stream ] && echo 2 || echo 1)
	link=$([ "$control" = too-early ] && echo 2000)
	if LB_CONTROL=$control LB_LINK=$link train "$B/controls/lbworker" control 2 $pp "$stages" && compare whole-4-llama control; then
		echo "not ok - control $control: nothing was seen"
		missed=$((missed + 1))
	else
		echo "ok - control $control is seen: $(tail -n 1 "$T/control.err" | grep rank || echo "other bits")"
	fi
	compared=${before%:*}
	different=${before#*:}
	rm -rf "$T/control"
done
echo "ranks: $compared comparisons, $different differences, $failed failed trainings, $missed of 6 controls missed"
[ "$different$failed$missed" = 000 ]
