#!/bin/sh
# SPDX-License-Identifier: MIT
# trainer.sh - tokens/s of GPT-2 124M at batch 4 x 64 tokens, fp32, 2 threads: ours, llm.c's and
# PyTorch's, taking turns in one run, beside what this machine's fused multiply-adds could do in the
# same minute. It prints; it never passes or fails on time.
#
#   B=build sh bench/trainer.sh [ROUNDS]       (3)
#
# LB_BENCH_LLMC   a checkout of llm.c; built here at its best flags (-O3 -ffast-math -march=native
#                 -fopenmp: faster than its Makefile's -Ofast)
# LB_BENCH_TORCH  a Python that has PyTorch, like /usr/bin/python3
# LB_BENCH_BLAS   a folder with libblas.so.3 for it: Debian's openblas-openmp. Without one Debian's
#                 PyTorch multiplies by reference BLAS, some twenty times slower
#
# What makes PyTorch slow on Debian, and is set here so that it is not: one thread by default; an
# OpenBLAS that does not know new CPUs and takes SSE (OPENBLAS_CORETYPE); a BLAS with threads of its own
# beside OpenMP's; threads that wander (OMP_PROC_BIND). A first step pays for page faults: none counts.
#
# The ceiling is the rate at which a step's arithmetic alone (6 flop per multiplied parameter and token,
# plus attention) would run at the FMA peak; memory traffic makes it unreachable.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build}
rounds=${1:-3}
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
trap 'exit 130' HUP INT TERM
unset LB_SOCKET LB_RESUME_FROM LB_CHECKPOINT_DIR

${CC:-cc} -O2 -D_GNU_SOURCE -I. -o "$T/fma_peak" bench/fma_peak.c kernels/peak.c kernels/instructions.c kernels/cpus.c \
	-lpthread
awk 'BEGIN { srand(1); for (i = 0; i < 40000; i++) printf "%c", 32 + int(rand() * 90) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/log"
printf '[model]\nname = "gpt2"\nflavor = "124M"\n[checkpoint]\ninterval = 0\n[metrics]\nlog_freq = 1\n' \
	>"$T/config.toml"

# Each prints seconds of the steps after its first two (one, for the slow).
ours() {
	"$B/lbworker" train "$T/config.toml" --job.dump_folder "$T/run" \
		--training.dataset_path "$T/text.tokens" --training.seq_len 64 \
		--training.local_batch_size 4 --training.steps 8 --training.threads 2 \
		--lr_scheduler.warmup_steps 1 --metrics.peak_tflops 1 >"$T/log"
	rm -rf "$T/run"
	sed -n 's/^step \([0-9]*\)\/.* \([0-9]*\) tokens\/s.*$/\1 \2/p' "$T/log" |
		awk '$1 > 2 { print 256 / $2 }'
}
llmc() { OMP_NUM_THREADS=2 OMP_PROC_BIND=true "$T/peer_llmc" 4 64 3 2>>"$T/log" | grep -v num_ | tail -n +2; }
torch() {
	LD_LIBRARY_PATH=${LB_BENCH_BLAS:-} OMP_NUM_THREADS=2 OMP_PROC_BIND=true \
		OPENBLAS_CORETYPE=$core ATEN_CPU_CAPABILITY=$capability \
		"$LB_BENCH_TORCH" bench/peer_torch.py 4 64 6 2 2>>"$T/log" | tail -n +3
}
if grep -qw avx512f /proc/cpuinfo; then
	core=SKYLAKEX capability=avx512
else
	core=HASWELL capability=avx2
fi

peers=ours
if [ -n "${LB_BENCH_LLMC:-}" ] && ${CC:-cc} -O3 -ffast-math -march=native -fopenmp -w \
	-I"$LB_BENCH_LLMC" -DPEER='"train_gpt2.c"' -o "$T/peer_llmc" bench/peer_llmc.c -lm; then
	peers="$peers llmc"
fi
if [ -n "${LB_BENCH_TORCH:-}" ] && "$LB_BENCH_TORCH" -c 'import torch' 2>>"$T/log"; then
	peers="$peers torch"
fi
for _ in $(seq "$rounds"); do
	"$T/fma_peak" 2 >>"$T/peaks"
	for peer in $peers; do
		$peer >>"$T/$peer"
	done
done
"$T/fma_peak" 2 >>"$T/peaks"

report() { # report PEER NAME: from seconds a step
	[ -s "$T/$1" ] || {
		echo "trainer: $2: not given"
		return
	}
	sort -n "$T/$1" | awk -v peak="$(sort -n "$T/peaks" | tail -n 1)" -v name="$2" -v mine="$T/mine" '
		{ s[NR] = $1 }
		END {
			multiplied = 123568128		# the tied head is; tables are not
			attention = 12 * 12 * 768 * 64	# layers, width, sequence: 12 L D T, not halved
			flop = 6 * multiplied + attention
			best = 256 / s[1]
			median = 256 / s[int((NR + 1) / 2)]
			printf "trainer: %s: best %.0f, median %.0f tokens/s (of %d); ", name, best, median, NR
			printf "ratio to FMA peak %.2f, median %.2f", best * flop / (peak * 1e9),
				median * flop / (peak * 1e9)
			if (name ~ /^lbworker/)
				print best, median >mine
			else if ((getline line <mine) > 0) {
				split(line, m, " ")
				printf "; lbworker is %.1f times as fast, by median %.1f", m[1] / best, m[2] / median
			}
			print ""
		}'
}
echo "trainer: GPT-2 124M, 4 x 64 tokens, fp32, 2 threads; $(sort -n "$T/peaks" | awk '{ p[NR] = $1 }
	END { printf "FMA peak %d GF/s (lowest %d)", p[NR], p[1] }')"
report ours lbworker
report llmc "llm.c (LB_BENCH_LLMC)"
report torch "PyTorch (LB_BENCH_TORCH)"
