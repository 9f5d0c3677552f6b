#!/bin/sh
# SPDX-License-Identifier: MIT
# gather.sh - weights that go to other ranks as FP8: the bits of one rank, and of ranks that give
# each other whole weights, for fewer bytes; and a scale of a rank's own part must be seen.
#   make check-ranks, or B=build sh tests/ranks/gather.sh [short] [cuda]; the last line counts
set -u
. "$(dirname "$0")/training.sh"
ranks_begin "$@"
ranks_config "$T" 4 20 2 >"$T/small.toml"
cat >>"$T/small.toml" <<-END
	[quantize]
	recipe = "tensorwise"
	[validation]
	enable = true
	dataset_path = "$T/text.tokens"
	freq = 2
	steps = 2
END

train() { # train PROGRAM FOLDER RANKS [OPTION…]: $sent, MiB of rank 0
	train_program=$1
	train_folder=$T/$2
	train_ranks=$3
	shift 3
	rm -rf "$train_folder"
	LB_CHECKPOINT_DIR=$train_folder "$train_program" train "$T/small.toml" --job.dump_folder "$T/out" --device $device \
		--ranks "$train_ranks" "$@" >"$train_folder.log" 2>"$train_folder.err"
	train_status=$?
	grep -o '^step [0-9/]* loss [0-9.]* grad_norm [0-9.]*\|^validation .*' "$train_folder.log" >"$train_folder.losses"
	sent=$(sed -n 's/^rank 0 sent \([0-9.]*\) MiB.*/\1/p' "$train_folder.log")
	return $train_status
}
differ() { # differ FOLDER FOLDER: how many files
	differ_bad=0
	for file in "$T/$1"/step-*/* "$T/$1.losses"; do
		case $file in */MANIFEST*) continue ;; esac
		cmp -s "$file" "$T/$2${file#"$T/$1"}" || differ_bad=$((differ_bad + 1))
	done
	echo $differ_bad
}

compared=0
failed=0
for type in float32 bfloat16; do
	options="--training.mixed_precision_param $type"
	case $short$device:$type in 1cpu:bfloat16 | 1cuda:float32) continue ;; esac
	ran=$type
	# shellcheck disable=SC2086 # words
	train "$B/lbworker" one 1 $options || sed 's/^/# /' "$T/one.err"
	while read -r long ranks replicate shard stage more; do
		[ -n "$short" ] && [ "$long" = long ] && continue
		# in bf16 a CPU's stream is rounded between stages
		case $device:$type:$more in cpu:bfloat16:?*) continue ;; esac
		ways="--parallelism.data_parallel_replicate_degree $replicate --parallelism.data_parallel_shard_degree $shard"
		ways="$ways --parallelism.zero_stage $stage $more"
		compared=$((compared + 1))
		# shellcheck disable=SC2086 # words
		train "$B/lbworker" whole "$ranks" $options $ways || sed 's/^/# /' "$T/whole.err"
		whole=$sent
		# shellcheck disable=SC2086 # words
		train "$B/lbworker" codes "$ranks" $options $ways --quantize.fp8_gather true ||
			sed 's/^/# /' "$T/codes.err"
		if [ "$(differ one whole):$(differ one codes)" = 0:0 ] && grep -q '^weights of . of . layers go to other ranks as FP8' "$T/codes.log" &&
			echo "$sent $whole" | awk '{ exit !($1 > 0 && $1 < $2) }'; then
			echo "ok - $device, $type, $ranks ranks, $replicate x $shard, ZeRO $stage $more: rank 0 sent $sent MiB, not $whole"
		else
			echo "not ok - $device, $type, $ranks ranks, $replicate x $shard, ZeRO $stage $more: $(differ one whole) and $(differ one codes) files differ, $sent and $whole MiB"
			sed 's/^/# /' "$T/one.err" "$T/whole.err" "$T/codes.err"
			failed=$((failed + 1))
		fi
	done <<-END
		short 2 1 2 1
		long 2 1 2 2
		short 3 1 3 3
		long 2 1 2 3
		long 4 2 2 1
		long 4 2 2 3
		long 4 1 2 3 --parallelism.pipeline_parallel_degree 2
	END
done
LB_CONTROL=own-amax train "$B/controls/lbworker" control 3 --parallelism.zero_stage 3 --quantize.fp8_gather true \
	--training.mixed_precision_param "$ran"
status=$?
lines=$(wc -l <"$T/control.losses")
if [ "$status" = 0 ] && [ "$lines" = "$(wc -l <"$T/one.losses")" ] && [ "$lines" -ge 4 ] && [ "$(differ one control)" -gt 0 ]; then
	echo "ok - control: a scale of a rank's own part is seen"
else
	echo "not ok - control: a scale of a rank's own part is not seen (status $status, $lines lines)"
	sed 's/^/# /' "$T/control.err"
	failed=$((failed + 1))
fi
# what decides by the clock may read the weights as they are
if ! train "$B/lbworker" faster 2 --quantize.fp8_gather true --quantize.only_faster true &&
	grep -q 'quantize.fp8_gather: .* without .*quantize.only_faster' "$T/faster.err"; then
	echo "ok - not with only_faster"
else
	echo "not ok - with only_faster it is not refused"
	failed=$((failed + 1))
fi
echo "gather: $compared ways, $failed failed"
[ "$failed" = 0 ]
