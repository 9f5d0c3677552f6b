#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - tokens per second on one GPU beside PyTorch on the same GPU, in one run: B=build sh bench/gpu/run.sh
#
# For each shape ours and PyTorch (bench/gpu/pytorch.py) run one after the other, on random tokens;
# median of the steps behind the warm-up. The table comes last: figure, share of PyTorch's, target, met or not.
# Exit 77 without a GPU; PyTorch's column is empty where it is not installed. LB_BENCH_SHAPES picks some.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
export LB_CUDA_LIBRARY="${LB_CUDA_LIBRARY:-$B/liblbcuda.so}"
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-gpu-bench.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT

"$B/gpu/ops" --rounds 0 >"$T/probe" 2>&1
if [ $? = 77 ]; then
	cat "$T/probe"
	echo "gpu-bench: there is no GPU here, nothing was measured"
	exit 77
fi
# Any bytes below 256 are tokens of every vocabulary; how they are distributed does not change the work
# but for the embedding's gradient.
head -c 4000000 /dev/urandom >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1

ours() { # ours FLAVOR BATCH SEQ MODE MOMENTS STEPS
	cat >"$T/bench.toml" <<-END
		[model]
		flavor = "$1"
		[optimizer]
		moments = "$5"
		[lr_scheduler]
		warmup_steps = 1
		[training]
		dataset_path = "$T/text.tokens"
		dataset_verify = false
		local_batch_size = $2
		seq_len = $3
		steps = $6
		mixed_precision_param = "bfloat16"
		[activation_checkpoint]
		mode = "$4"
		[checkpoint]
		interval = 0
		[metrics]
		log_freq = 1
		[job]
		dump_folder = "$T/out-$1"
	END
	"$B/lbworker" plan "$T/bench.toml" --device H200 >"$T/plan-$1" 2>&1
	timeout 300 "$B/lbworker" train "$T/bench.toml" --device cuda >"$T/ours-$1" 2>"$T/ours-$1.err" &
	worker=$!
	# The checkpoint at the end is not part of the measurement: gigabytes to a temporary folder.
	until grep -q "^step $6/" "$T/ours-$1" 2>/dev/null || ! kill -0 $worker 2>/dev/null; do sleep 0.2; done
	kill -KILL $worker 2>/dev/null
	wait $worker 2>/dev/null
	sed -n 's/^step \([0-9]*\)\/.* \([0-9]*\) tokens\/s .*/\1 \2/p' "$T/ours-$1" |
		awk '$1 > 5 { print $2 }' | sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'
	tail -n 3 "$T/ours-$1.err" >&2
}
theirs() { # theirs FLAVOR BATCH SEQ OPTION
	python3 -c 'import torch' 2>/dev/null || { echo "-"; return; }
	# shellcheck disable=SC2086 # none or one option
	timeout 400 python3 bench/gpu/pytorch.py "$1" "$2" "$3" $4 2>"$T/torch-$1.err" | tee -a "$T/torch" | cut -d ' ' -f 1
	tail -n 3 "$T/torch-$1.err" >&2
}
: >"$T/table"
# flavor batch seq recompute moments steps; PyTorch's option; target tokens/s, target ratio
while read -r flavor batch seq mode moments steps option target ratio; do
	case " ${LB_BENCH_SHAPES:-124M 1B 8B} " in *" $flavor "*) ;; *) continue ;; esac
	a=$(ours "$flavor" "$batch" "$seq" "$mode" "$moments" "$steps")
	b=$(theirs "$flavor" "$batch" "$seq" "${option#none}")
	echo "$flavor $batch $seq ${a:--} ${b:--} $target $ratio" | tee -a "$T/table"
done <<-END
	124M 64 1024 none      float32  30 none        600000 1.30
	1B   4  8192 none      float32  20 none        56000  1.15
	8B   1  8192 selective bfloat16 15 --selective 9000   1.10
END

echo
echo "gpu-bench, $(date -u +%F), $(sed -n 1p "$T/probe")"
[ ! -s "$T/torch" ] || sed 's/^[0-9]* [0-9]* /PyTorch: /' "$T/torch" | sort -u
awk 'BEGIN { printf "%-6s %5s %6s %12s %12s %7s  %s\n", "shape", "batch", "seq", "tokens/s", "PyTorch", "ratio", "target" }
function word(met) { return met ? "met" : "NOT met" }
{ r = $5 > 0 ? $4 / $5 : 0
  printf "%-6s %5d %6d %12s %12s %7s", $1, $2, $3, $4, $5, r ? sprintf("%.2f", r) : "-"
  printf "  >= %d: %s; >= %.2f x: %s\n", $6, word($4 >= $6), $7, r ? word(r >= $7) : "not measured" }' "$T/table"
