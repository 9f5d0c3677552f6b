#!/bin/sh
# SPDX-License-Identifier: MIT
# ranks.sh - tokens/s of a Llama of 5 million parameters, fp32, on one and on two processes of this
# machine: lbworker's sums in order and its fast ones beside PyTorch's DDP and FSDP (gloo), in
# turns; and the bytes that a rank sent beside the formula of docs/RANKS.md.
#
#   B=build sh bench/ranks.sh [ROUNDS]       (3)
#
# LB_BENCH_SCALING  "strong:8 weak:16", or one of them; LB_BENCH_TORCH  a Python with PyTorch 2, else its rows are left out. Two threads in all: one rank has both, of
# two each has one. "strong": 8 sequences a step, "weak": 8 for each rank; passes of 2.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build}
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
trap 'exit 130' HUP INT TERM
unset LB_SOCKET LB_RESUME_FROM LB_CHECKPOINT_DIR LB_CPU_ISA LB_RANK
steps=10
awk 'BEGIN { srand(1); for (i = 0; i < 200000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null
cat >"$T/ranks.toml" <<-END
	[model]
	dim = 256
	n_layers = 6
	n_heads = 4
	n_kv_heads = 4
	ffn_dim = 512
	vocab_size = 4096
	tie_word_embeddings = true
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 2
	seq_len = 128
	steps = $steps
	[checkpoint]
	enable = false
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

ours() { # ours RANKS SEQUENCES THREADS [OPTION…]: the median of all steps but the first two
	ours_ranks=$1 ours_batch=$2 ours_threads=$3
	shift 3
	"$B/lbworker" train "$T/ranks.toml" --device cpu --ranks "$ours_ranks" --training.global_batch_size "$ours_batch" \
		--training.threads "$ours_threads" "$@" >"$T/log" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
	sed -n 's/^step .* \([0-9]*\) tokens\/s.*/\1/p' "$T/log" | sed 1,2d | sort -n | sed -n $(((steps - 1) / 2))p
}
torch() { # torch ddp|fsdp RANKS SEQUENCES THREADS
	"$LB_BENCH_TORCH" bench/peer_torch_ranks.py "$1" "$2" 2 $(($3 / $2 / 2)) $steps "$4" 2>"$T/err" ||
		{ tail -n 3 "$T/err" >&2; echo -; }
}
row() { # row NAME COMMAND…: the best and the middle of all rounds
	row_name=$1
	shift
	"$@" >>"$T/$row_name"
	printf '# %s: %s\n' "$row_name" "$(tail -n 1 "$T/$row_name")" >&2
}

for round in $(seq "${1:-3}"); do
	for rows in ${LB_BENCH_SCALING:-strong:8 weak:16}; do
		size=${rows%:*}
		two=${rows#*:}
		one=8
		row "$size 1 lbworker" ours 1 $one 2
		row "$size 1 lbworker, tree of 4" ours 1 $one 2 --parallelism.reduction_width 4
		row "$size 2 lbworker, copies, exact" ours 2 "$two" 1 --parallelism.data_parallel_replicate_degree 2
		row "$size 2 lbworker, copies, fast" ours 2 "$two" 1 --parallelism.data_parallel_replicate_degree 2 \
			--parallelism.reduction fast
		row "$size 2 lbworker, ZeRO-3, exact" ours 2 "$two" 1
		row "$size 2 lbworker, ZeRO-3, fast" ours 2 "$two" 1 --parallelism.reduction fast
		if [ -n "${LB_BENCH_TORCH:-}" ]; then
			row "$size 1 PyTorch" torch ddp 1 $one 2
			row "$size 2 PyTorch, DDP" torch ddp 2 "$two" 1
			row "$size 2 PyTorch, FSDP" torch fsdp 2 "$two" 1
		fi
	done
	: "$round"
done
echo "scaling, ranks, who: tokens/s, best and median of ${1:-3} rounds"
for rows in "$T"/strong* "$T"/weak*; do
	[ -e "$rows" ] || continue
	printf '%-40s %s %s\n' "$(basename "$rows")" "$(sort -n "$rows" | tail -n 1)" \
		"$(sort -n "$rows" | sed -n $(((${1:-3} + 1) / 2))p)"
done
# P = 4 bytes x parameters, 2 rounds of passes, R = S = 2: P of gradients and 2 P of weights a step
ours 2 8 1 >/dev/null
parameters=$(sed -n 's/^llama.*: \([0-9]*\) parameters.*/\1/p' "$T/log")
sent=$(sed -n 's/^rank 0 sent \([0-9.]*\) MiB.*/\1/p' "$T/log")
awk -v p="$parameters" -v s="$sent" -v n=$steps 'BEGIN { printf "sent by rank 0 (ZeRO-3, 2 ranks): %.2f MiB a step; ", s / n;
	printf "by the formula %.2f\n", 3 * 4 * p / 1048576 }'
