#!/bin/sh
# SPDX-License-Identifier: MIT
# memory_gpu.sh - the most memory that a rank has taken of an emulated GPU, beside what `lbworker
# plan --ranks` says, for ways of sharing a model; off by more than a twelfth fails, and without
# shares of memory it must be more.
#   make check-ranks, or B=build sh tests/ranks/memory_gpu.sh [short]
set -u
. "$(dirname "$0")/training.sh"
ranks_begin cuda "$@"
export LB_EMULATION_COUNTS="$T/counts"
ranks_config "$T" 4 60 100 >"$T/small.toml"
echo "enable = false" >>"$T/small.toml"
model="--model.dim 384 --model.n_layers 6 --model.n_heads 6 --model.n_kv_heads 6 --model.vocab_size 4096"
[ -z "$short" ] || model="$model --model.n_layers 4 --model.vocab_size 1024"
model="$model --training.mixed_precision_param bfloat16"
pp=--parallelism.pipeline_parallel_degree
copies=--parallelism.data_parallel_replicate_degree
shards=--parallelism.data_parallel_shard_degree

peak() { # peak RANKS [OPTION…]: MiB; 0 where the training failed
	peak_ranks=$1
	shift
	rm -f "$T/counts"
	peak_bytes=0
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T" --device cuda --ranks "$peak_ranks" \
		--training.steps 1 --training.global_batch_size "$peak_ranks" "$@" >"$T/log" 2>"$T/err" &&
		read -r _ _ _ peak_bytes <"$T/counts"
	echo $((peak_bytes >> 20))
}

measured() { peak "$@" | tee "$T/last"; }
planned() { ranks_planned_memory "$1"; }
failed=0
{
	[ -n "$short" ] || cat <<-END
		2 $copies 2 $shards 1
		2 --parallelism.zero_stage 1
		2 --parallelism.zero_stage 2
		4 --parallelism.zero_stage 2 --parallelism.reduction fast --model.n_layers 16
		4 --parallelism.zero_stage 3
		4 $copies 2 $shards 2
		2 $pp 2
	END
	echo 2 --parallelism.zero_stage 3
} >"$T/ways"
ranks_beside_plan 0.09 "MiB of a GPU's memory at most" <"$T/ways" || failed=1
read -r last <"$T/last"
# shellcheck disable=SC2086 # words
whole=$(LB_CUDA_SHARES=0 peak 2 $model --parallelism.zero_stage 3)
if echo "$whole $last" | awk '{ exit !($2 > 0 && $1 > 1.08 * $2) }'; then
	echo "ok - control: without shares of memory 2 ranks, ZeRO 3, take $whole MiB, not $last"
else
	echo "not ok - control: without shares of memory 2 ranks, ZeRO 3, take $whole MiB, with them $last"
	failed=1
fi
# shellcheck disable=SC2086 # words
without=$(LB_EMULATION_MAPS=0 peak 2 $model --parallelism.zero_stage 3)
if [ "$without" = "$whole" ] && [ "$without" -gt 0 ]; then
	echo "ok - a GPU without virtual memory takes as much"
else
	echo "not ok - a GPU without virtual memory takes $without MiB, not $whole"
	sed 's/^/# /' "$T/err"
	failed=1
fi
[ "$failed" = 0 ]
