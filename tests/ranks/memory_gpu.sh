#!/bin/sh
# SPDX-License-Identifier: MIT
# memory_gpu.sh - the most memory that a rank has taken of an emulated GPU, beside what `lbworker plan --ranks` says, for
# ways of sharing a model; off by more than a twelfth fails, and without shares of memory it must be more.
#   make check-ranks, or B=build sh tests/ranks/memory_gpu.sh [short]; the last line counts
set -u
B=$(cd "${B:-build}" && pwd -P) || exit 1
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-memory.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
unset LB_SOCKET LB_RUN LB_ATTEMPT LB_CHECKPOINT_DIR LB_RESUME_FROM LB_RANK
export LB_CUDA_LIBRARY="$B/liblbcuda-emulated.so" LB_NCCL_LIBRARY="$B/liblbnccl-standin.so" LB_EMULATION_COUNTS="$T/counts"
short=${1:-}
. "$(dirname "$0")/training.sh"
ranks_tokens "$B/lbworker" "$T" || exit 1
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

compared=0
off=0
while read -r long ranks ways; do
	[ -n "$short" ] && [ "$long" = long ] && continue
	compared=$((compared + 1))
	# shellcheck disable=SC2086 # words
	had=$(peak "$ranks" $model $ways)
	[ "$ranks:$ways" = "2:--parallelism.zero_stage 3" ] && last=$had
	# shellcheck disable=SC2086 # words
	planned=$("$B/lbworker" plan "$T/small.toml" --ranks "$ranks" $model $ways | sed -n '/^ranks /{n;p;}' |
		sed -n 's/.* \([0-9.]*\) GiB  *\(fits\|too much\).*/\1/p' | awk '{ printf "%.0f", $1 * 1024 }')
	if echo "$had ${planned:-0}" | awk '{ d = $1 / ($2 + 1e-9); exit !(d > 0.91 && d < 1.09) }'; then
		echo "ok - $ranks ranks, $ways: $had MiB at most, by plan $planned"
	else
		echo "not ok - $ranks ranks, $ways: $had MiB at most, by plan $planned"
		sed 's/^/# /' "$T/err"
		off=$((off + 1))
	fi
done <<-END
	long 2 $copies 2 $shards 1
	long 2 --parallelism.zero_stage 1
	long 2 --parallelism.zero_stage 2
	short 2 --parallelism.zero_stage 3
	long 4 --parallelism.zero_stage 2 --parallelism.reduction fast --model.n_layers 16
	long 4 --parallelism.zero_stage 3
	long 4 $copies 2 $shards 2
	long 2 $pp 2
END
# shellcheck disable=SC2086 # words
whole=$(LB_CUDA_SHARES=0 peak 2 $model --parallelism.zero_stage 3)
if echo "$whole $last" | awk '{ exit !($2 > 0 && $1 > 1.08 * $2) }'; then
	echo "ok - control: without shares of memory 2 ranks, ZeRO 3, take $whole MiB, not $last"
else
	echo "not ok - control: without shares of memory 2 ranks, ZeRO 3, take $whole MiB, with them $last"
	off=$((off + 1))
fi
# shellcheck disable=SC2086 # words
without=$(LB_EMULATION_MAPS=0 peak 2 $model --parallelism.zero_stage 3)
if [ "$without" = "$whole" ] && [ "$without" -gt 0 ]; then
	echo "ok - a GPU without virtual memory takes as much"
else
	echo "not ok - a GPU without virtual memory takes $without MiB, not $whole"
	sed 's/^/# /' "$T/err"
	off=$((off + 1))
fi
echo "memory: $compared ways, $off off by more than a twelfth"
[ "$off" = 0 ]
