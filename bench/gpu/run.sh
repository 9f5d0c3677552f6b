#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - tokens per second on one GPU beside PyTorch's and llm.c's on the same GPU: B=build sh bench/gpu/run.sh
#
# In parts of at most eight minutes: PARTS="124M-ours 124M-pytorch" runs those (all, unless told); the most telling
# ones come first. What each measured is kept in $LB_GPU_RESULTS as it comes: a call that is cut short goes on where it was
# with the next one (FRESH=1: anew). A figure is the median of the steps behind the warm-up, on random tokens. The table
# comes last: the best of each side, each at batch and recomputation of its own. Exit 77 without a GPU.
#
# LB_GPU_RESULTS  (build/gpu-bench) a folder: results, each part's output
# LB_BENCH_LLMC   a checkout of llm.c, fetched for the run and never part of this tree: its train_gpt2cu is built from a
#                 copy in the folder of results, with cuDNN's attention where the checkout holds cudnn-frontend/, and gets our
#                 tokens; without a checkout its row is empty
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
export LB_CUDA_LIBRARY="${LB_CUDA_LIBRARY:-$B/liblbcuda.so}"
T=${LB_GPU_RESULTS:-$B/gpu-bench}
mkdir -p "$T" || exit 1
SECONDS_MOST=480

"$B/gpu/ops" --rounds 0 >"$T/probe" 2>&1
if [ $? = 77 ]; then
	cat "$T/probe"
	echo "gpu-bench: there is no GPU here, nothing was measured"
	exit 77
fi
gpu=$(sed -n 1p "$T/probe")
about=$(cat "$T/probe" && cksum "$B/lbworker" "$LB_CUDA_LIBRARY")
if [ -n "${FRESH:-}" ] || [ "$(cat "$T/about" 2>/dev/null)" != "$about" ]; then
	rm -f "$T/results"
	echo "$about" >"$T/about"
fi
touch "$T/results"
# Any bytes below 256 are tokens of every vocabulary; how they are distributed does not change the work
# but for the embedding's gradient.
[ -s "$T/text.tokens" ] || {
	head -c 4000000 /dev/urandom >"$T/text"
	"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
}

ours() { # ours MODEL/FLAVOR BATCH SEQ GRADIENTS MOMENTS STEPS: what is computed again, as the plan has it
	cat >"$T/$part.toml" <<-END
		[model]
		name = "${1%/*}"
		flavor = "${1#*/}"
		[optimizer]
		gradients = "$4"
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
		[checkpoint]
		enable = false
		[metrics]
		log_freq = 1
		[job]
		dump_folder = "$T/out-$part"
	END
	timeout $SECONDS_MOST "$B/lbworker" train "$T/$part.toml" --device cuda >"$T/$part.log" 2>"$T/$part.err" </dev/null
	rm -rf "$T/out-$part"
	sed -n 's/^step \([0-9]*\)\/.* \([0-9]*\) tokens\/s .*/\1 \2/p' "$T/$part.log" |
		awk '$1 > 5 { print $2 }' | sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'
}
pytorch() { # pytorch FLAVOR BATCH SEQ OPTIONS...: its own best of attention's kinds
	python3 -c 'import torch' 2>/dev/null || { echo "-"; return; }
	timeout $SECONDS_MOST python3 bench/gpu/pytorch.py "$@" >"$T/$part.log" 2>"$T/$part.err" </dev/null
	sed -n 's/^\([0-9][0-9]*\) .*/\1/p' "$T/$part.log" | sort -n | tail -n 1 | grep . || echo "-"
}
# Our tokens in llm.c's format: 256 words of a header, then two bytes each.
llmc_tokens() {
	[ -s "$T/llmc.bin" ] || python3 - "$T/text" "$T/llmc.bin" <<-'PYTHON'
		import array, struct, sys
		text = open(sys.argv[1], "rb").read()
		with open(sys.argv[2], "wb") as out:
		    out.write(struct.pack("<256i", 20240520, 1, len(text), *[0] * 253))
		    out.write(array.array("H", text).tobytes())
	PYTHON
}
# In a copy. CUDA 13 names a place in memory by a struct; where only the driver is installed, its library of
# management has no name that a linker looks for; which GPU it is made for, llm.c's Makefile does not find out.
llmc_build() {
	[ ! -x "$T/llmc/train_gpt2cu" ] || return 0
	rm -rf "$T/llmc" && cp -r "$LB_BENCH_LLMC" "$T/llmc" && mkdir -p "$T/lib" || return 1
	case $(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p') in
	[0-9] | 1[0-2]) ;;
	*) sed -i 's/PreferredLocation, cudaCpuDeviceId)/PreferredLocation, cudaMemLocation{ cudaMemLocationTypeHost, 0 })/' "$T"/llmc/llmc/*.cuh ;;
	esac
	driver=$(ldconfig -p | sed -n 's/.*libnvidia-ml\.so\.1 .* => //p' | head -n 1)
	[ -z "$driver" ] || ln -sf "$driver" "$T/lib/libnvidia-ml.so"
	# shellcheck disable=SC2046 # a word or none
	LIBRARY_PATH="$T/lib:${LIBRARY_PATH:-}" make -C "$T/llmc" train_gpt2cu NO_MULTI_GPU=1 \
		GPU_COMPUTE_CAPABILITY="${LB_BENCH_SM:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)}" \
		$([ ! -d "$T/llmc/cudnn-frontend/include" ] || echo USE_CUDNN=1) >"$T/$part-build.log" 2>&1
}
llmc() { # llmc BATCH SEQ: the mean of its last steps
	[ -e "${LB_BENCH_LLMC:-}/Makefile" ] || { echo "-"; return; }
	llmc_build || { tail -n 5 "$T/$part-build.log" >&2; echo "-"; return; }
	llmc_tokens || { echo "-"; return; }
	(cd "$T/llmc" && timeout $SECONDS_MOST ./train_gpt2cu -i "$T/llmc.bin" -j "$T/llmc.bin" -e d12 -b "$1" -t "$2" -d $(($1 * $2)) -x 30 -v 0 -s 0 -h 0) \
		>"$T/$part.log" 2>"$T/$part.err" </dev/null
	sed -n 's/.* \([0-9]*\) tok\/s.*/\1/p' "$T/$part.log" | tail -n 1 | grep . || echo "-"
}
known=
while read -r part shape side command; do
	known="$known $part"
	case " ${PARTS:-$part} " in *" $part "*) ;; *) continue ;; esac
	! grep -q "^$part .* [0-9][0-9]*$" "$T/results" || continue
	sed -i "/^$part /d" "$T/results"
	# shellcheck disable=SC2086 # words
	echo "$part $shape $side $($command)" | tee -a "$T/results"
	tail -n 3 "$T/$part.err" 2>/dev/null >&2
done <<-END
	124M-ours         124M ours    ours llama/124M 64 1024 float32 float32 30
	124M-pytorch      124M PyTorch pytorch 124M 64 1024
	8B-ours           8B   ours    ours llama/8B 1 8192 bfloat16 bfloat16 15
	8B-pytorch        8B   PyTorch pytorch 8B 1 8192 --selective
	1B-ours           1B   ours    ours llama/1B 4 8192 float32 float32 20
	1B-pytorch        1B   PyTorch pytorch 1B 4 8192
	gpt2-ours         gpt2 ours    ours gpt2/124M 64 1024 float32 float32 30
	gpt2-llmc         gpt2 llm.c   llmc 64 1024
	124M-pytorch-tuned  124M PyTorch pytorch 124M 64 1024 --mode max-autotune-no-cudagraphs
	124M-pytorch-graphs 124M PyTorch pytorch 124M 64 1024 --mode reduce-overhead
	8B-ours-two       8B   ours    ours llama/8B 2 8192 bfloat16 bfloat16 12
	8B-pytorch-two    8B   PyTorch pytorch 8B 2 8192 --selective
	8B-pytorch-whole  8B   PyTorch pytorch 8B 1 8192
	1B-pytorch-tuned  1B   PyTorch pytorch 1B 4 8192 --mode max-autotune-no-cudagraphs
	1B-ours-eight     1B   ours    ours llama/1B 8 8192 float32 float32 15
	1B-pytorch-eight  1B   PyTorch pytorch 1B 8 8192 --selective
END
for name in ${PARTS:-}; do
	case " $known " in *" $name "*) ;; *)
		echo "gpu-bench: PARTS: there is no $name, allowed are:$known" >&2
		exit 2
		;;
	esac
done

echo
echo "gpu-bench, $(date -u +%F), $gpu"
grep -h '^# ' "$T"/*-pytorch*.log 2>/dev/null | sort -u
awk '$4 != "-" && $4 > best[$2, $3] { best[$2, $3] = $4; by[$2, $3] = $1 }
END {
	printf "%-6s %12s %-20s %12s %-20s %6s  %s\n", "shape", "ours", "", "peer", "", "ratio", "target"
	split("124M 1B 8B gpt2", shape); split("1.10 1.10 1.10 1.20", target)
	for (i = 1; i <= 4; i++) {
		peer = shape[i] == "gpt2" ? "llm.c" : "PyTorch"
		a = best[shape[i], "ours"]; b = best[shape[i], peer]
		printf "%-6s %12s %-20s %12s %-20s %6s  >= %s x: %s\n", shape[i], a ? a : "-", by[shape[i], "ours"], b ? b : "-",
			by[shape[i], peer], a && b ? sprintf("%.2f", a / b) : "-", target[i],
			a && b ? (a >= target[i] * b ? "met" : "NOT met") : "not measured"
	}
}' "$T/results"
