#!/bin/sh
# SPDX-License-Identifier: MIT
# traffic.sh - bytes that rank 0 sends in a step, counted, beside what `lbworker plan --ranks` says,
# for each way of sharing a model; off by more than a tenth fails.
#   make check-ranks, or B=build sh tests/ranks/traffic.sh; the last line counts
set -u
. "$(dirname "$0")/training.sh"
ranks_begin "$@"
ranks_config "$T" 3 20 100 >"$T/small.toml"
cat >>"$T/small.toml" <<-END
	enable = false
END
model="--model.dim 256 --model.n_layers 4 --model.n_heads 4 --model.n_kv_heads 4 --training.seq_len 64 --training.mixed_precision_param float32"
tp=--parallelism.tensor_parallel_degree
cp=--parallelism.context_parallel_degree
pp=--parallelism.pipeline_parallel_degree
copies=--parallelism.data_parallel_replicate_degree
shards=--parallelism.data_parallel_shard_degree

sent() { # sent STEPS RANKS [OPTION…]: MiB of rank 0
	sent_steps=$1
	sent_ranks=$2
	shift 2
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T" --device cpu --ranks "$sent_ranks" "$@" \
		--training.steps "$sent_steps" 2>"$T/err" | sed -n 's/^rank 0 sent \([0-9.]*\) MiB.*/\1/p'
}
measured() { echo "$(sent 3 "$@") $(sent 1 "$@")" | awk '{ printf "%.3f", ($1 - $2) / 2 }'; }
planned() { echo "$1" | sed -n 's/.*sends \([0-9.]*\) MiB.*/\1/p'; }
ranks_beside_plan 0.1 "MiB sent in a step" <<-END
	2 $copies 2 $shards 1
	2 --parallelism.zero_stage 1
	2 --parallelism.zero_stage 2
	2 --parallelism.zero_stage 3
	4 $copies 2 $shards 2
	4 --parallelism.reduction fast
	2 $tp 2
	4 $tp 2 --activation_checkpoint.mode full
	2 $cp 2
	4 $cp 2 $tp 2
	2 $pp 2
	4 $pp 2
	4 $pp 2 $tp 2
END
