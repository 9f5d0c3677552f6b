#!/bin/sh
# SPDX-License-Identifier: MIT
# memory.sh - what a rank's memory has been at most (VmHWM, less that of a model of no size), beside
# what `lbworker plan --ranks` says, for each way of sharing a model; off by more than a fifth
# fails.
#   make check-ranks, or B=build sh tests/ranks/memory.sh; the last line counts
set -u
. "$(dirname "$0")/training.sh"
ranks_begin "$@"
ranks_config "$T" 4 60 100 >"$T/small.toml"
echo "enable = false" >>"$T/small.toml"
model="--model.dim 384 --model.n_layers 6 --model.n_heads 6 --model.n_kv_heads 6 --model.vocab_size 4096 --training.mixed_precision_param float32"
tp=--parallelism.tensor_parallel_degree
pp=--parallelism.pipeline_parallel_degree
copies=--parallelism.data_parallel_replicate_degree
shards=--parallelism.data_parallel_shard_degree

# MiB that rank 0 has had at most, as often as it can be looked at.
peak() { # peak RANKS [OPTION…]
	peak_ranks=$1
	peak_kib=0
	shift
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T" --device cpu --ranks "$peak_ranks" "$@" \
		>"$T/log" 2>"$T/err" &
	worker=$!
	first=
	while kill -0 $worker 2>/dev/null; do
		[ -n "$first" ] || first=$(pgrep -P $worker | head -n 1)
		now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${first:-none}/status" 2>/dev/null)
		[ "${now:-0}" -gt "$peak_kib" ] && peak_kib=$now
		grep -q '^step 4/' "$T/log" && break
		sleep 0.1
	done
	wait $worker
	worker=
	echo $((peak_kib / 1024))
}

empty=$(peak 2)
measured() { echo $(($(peak "$@") - empty)); }
planned() { ranks_planned_memory "$1"; }
ranks_beside_plan 0.2 "MiB of memory at most" <<-END
	2 $copies 2 $shards 1
	2 --parallelism.zero_stage 1
	2 --parallelism.zero_stage 2
	2 --parallelism.zero_stage 3
	4 --parallelism.zero_stage 3
	4 $copies 2 $shards 2
	2 $tp 2
	2 $pp 2
END
