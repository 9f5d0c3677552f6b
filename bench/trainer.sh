#!/bin/sh
# SPDX-License-Identifier: MIT
# trainer.sh - tokens/s of a Llama of GPT-2 small's size (124 M) at batch 4 x 64 tokens, fp32,
# 2 threads, beside what this machine's fused multiply-adds could do in the same minute.
#
#   B=build sh bench/trainer.sh [STEPS]
#
# One line: value, peer, ratio. It prints; it never passes or fails on time. The peer is the rate at
# which the step's arithmetic alone (6 flop per parameter and token, plus attention) would run at
# the FMA peak, measured before and after; memory traffic makes it unreachable.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build}
steps=${1:-12}
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
trap 'exit 130' HUP INT TERM
unset LB_SOCKET LB_RESUME_FROM LB_CHECKPOINT_DIR

${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/fma_peak" bench/fma_peak.c kernels/cpu/peak.c kernels/cpus.c -lpthread
awk 'BEGIN { srand(1); for (i = 0; i < 40000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log"

before=$("$T/fma_peak" 2)
"$B/lbworker" train etc/train/llama-124m.toml --job.dump_folder "$T" \
	--training.dataset_path "$T/text.tokens" --training.seq_len 64 \
	--training.global_batch_size 4 --training.steps "$steps" --training.threads 2 \
	--lr_scheduler.warmup_steps 1 >>"$T/log"
after=$("$T/fma_peak" 2)

# The first two steps warm caches and the GEMM library.
sed -n 's/^step \([0-9]*\)\/.* \([0-9]*\) tokens\/s.*$/\1 \2/p' "$T/log" | awk '$1 > 2 { print $2 }' |
	sort -n >"$T/rates"
awk -v before="$before" -v after="$after" '
	{ rate[NR] = $1 }
	END {
		peak = before > after ? before : after
		matrices = 123568128		# parameters that multiply; the tied head is one
		attention = 12 * 12 * 768 * 64	# layers, width, sequence: 12 L D T, not halved
		flop = 6 * matrices + attention
		median = rate[int((NR + 1) / 2)]
		printf "trainer: Llama 124M, 4 x 64 tokens, fp32, 2 threads: %d tokens/s (median of %d, best %d)" \
			"; FMA peak %d GF/s = %.0f tokens/s; ratio %.2f\n",
			median, NR, rate[NR], peak, peak * 1e9 / flop, median * flop / (peak * 1e9)
	}' "$T/rates"
