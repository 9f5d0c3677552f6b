#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - tokens per second on one GPU beside PyTorch's and llm.c's on the same GPU: B=build sh
# bench/gpu/run.sh
#
# In parts of at most eight minutes: PARTS="124M-ours 124M-pytorch" runs those (all that have no
# line yet, unless told); the most telling ones come first. What each measured, or why it has no
# figure, is kept in $LB_GPU_RESULTS as it comes: a call that is cut short goes on where it was with
# the next one (FRESH=1: anew). A figure is the median of the steps behind the warm-up, on random
# tokens. The table comes last: the best of each side, each at batch and recomputation of its own.
# What the machine lacks is installed by tests/gpu/prepare.sh, or said. Exit 77 without a GPU.
#
# LB_GPU_RESULTS  (build/gpu-bench) a folder: results, each part's output; history: those of other
#                 programs or GPUs
# LB_GPU_TOY      (no) a rehearsal: every shape is the smallest one, and PyTorch computes on the CPU
# LB_BENCH_ATTENTION  (cudnn,flash,efficient) the kinds of PyTorch's attention that are tried
# LB_BENCH_LLMC   a checkout of llm.c, fetched for the run and never part of this tree: its
#                 train_gpt2cu is built from a copy in the folder of results, with cuDNN's attention
#                 where the checkout holds cudnn-frontend/, and gets our tokens; without a checkout
#                 its row is empty
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
T=${LB_GPU_RESULTS:-$B/gpu-bench}
mkdir -p "$T" || exit 1
me="gpu-bench"
. tests/gpu/prepare.sh
SECONDS_MOST=480

prepare_libraries
status=$?
if [ $status = 77 ] && ! { lacks_library && has_driver; }; then
	cat "$T/probe"
	say "there is no GPU here, nothing was measured"
	exit 77
fi
grep -vi '^cuda\|agree:' "$T/probe" | head -n 3 # what it lacks: the peers do without
gpu=$(grep '^cuda: .* multiprocessors' "$T/probe")
gpu=${gpu:-$(nvidia-smi -L 2>/dev/null | head -n 1)}
# Of another GPU nothing holds; of other programs what is the peers'.
about=$(echo "$gpu" && cksum "$B/lbworker" "$LB_CUDA_LIBRARY" 2>/dev/null)
if [ -n "${FRESH:-}" ] || [ "$(cat "$T/about" 2>/dev/null)" != "$about" ]; then
	[ ! -s "$T/results" ] || cat "$T/about" "$T/results" >>"$T/history"
	[ -z "${FRESH:-}$(head -n 1 "$T/about" 2>/dev/null | grep -vxF "$gpu")" ] || rm -f "$T/results"
	[ ! -e "$T/results" ] || sed -i '/^[^ ]* *[^ ]* *\(ours\|FP8\) /d' "$T/results"
	echo "$about" >"$T/about"
fi
touch "$T/results"
# Any bytes below 256 are tokens of every vocabulary; how they are distributed does not change the
# work but for the embedding's gradient.
[ -s "$T/text.tokens" ] || {
	head -c 4000000 /dev/urandom >"$T/text"
	"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
}

# Why a part has no figure: the last words of what ran. 124 is that of timeout.
reason() { # reason STATUS
	[ "$1" != 124 ] || { echo "- (not through in $SECONDS_MOST s)"; return; }
	echo "- ($(grep -v '^[[:space:]]*$' "$T/$part.err" 2>/dev/null | tail -n 1 | cut -c 1-160))"
}
ours() { # ours MODEL/FLAVOR BATCH SEQ GRADIENTS MOMENTS STEPS [RECIPE]: what is computed again, as the plan has it
	[ -z "${LB_GPU_TOY:-}" ] || set -- "${1%/*}/debugmodel" 1 16 "$4" "$5" 8 "${7:-none}"
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
		[quantize]
		recipe = "${7:-none}"
		only_faster = true
		[checkpoint]
		enable = false
		[metrics]
		log_freq = 1
		[job]
		dump_folder = "$T/out-$part"
	END
	limited $SECONDS_MOST "$B/lbworker" train "$T/$part.toml" --device cuda >"$T/$part.log" 2>"$T/$part.err"
	status=$?
	rm -rf "$T/out-$part"
	sed -n 's/^step \([0-9]*\)\/.* \([0-9]*\) tokens\/s .*/\1 \2/p' "$T/$part.log" |
		awk '$1 > 5 { print $2 }' | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; exit !NR }' ||
		reason $status
}
pytorch() { # pytorch FLAVOR BATCH SEQ OPTIONS...: its own best of attention's kinds
	[ "$torch" = yes ] || { cp "$T/torch.err" "$T/$part.err"; reason 1; return; }
	peer $SECONDS_MOST bench/gpu/pytorch.py "$@" ${LB_BENCH_ATTENTION:+--attention "$LB_BENCH_ATTENTION"} \
		${LB_GPU_TOY:+--toy} >"$T/$part.log" 2>"$T/$part.err"
	status=$?
	sed -n 's/^\([0-9][0-9]*\) .*/\1/p' "$T/$part.log" | sort -n | tail -n 1 | grep . && return
	! grep -q '^# ' "$T/$part.err" || { grep '^# ' "$T/$part.err" | tail -n 1 >"$T/why"; mv "$T/why" "$T/$part.err"; }
	reason $status
}
# Our tokens in llm.c's format: 256 words of a header, then two bytes each.
llmc_tokens() {
	[ -s "$T/llmc.bin" ] || python3 - "$T/text" "$T/llmc.bin" 2>>"$T/$part.err" <<-'PYTHON'
		import array, struct, sys
		text = open(sys.argv[1], "rb").read()
		with open(sys.argv[2], "wb") as out:
		    out.write(struct.pack("<256i", 20240520, 1, len(text), *[0] * 253))
		    out.write(array.array("H", list(text)).tobytes())
	PYTHON
}
# In a copy. CUDA 13 names a place in memory by a struct; where only the driver is installed, its
# library of management has no name that a linker looks for; which GPU it is made for, llm.c's
# Makefile does not find out.
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
llmc() { # llmc BATCH SEQ: the mean of its last steps. Its validation (-v) divides by its interval: not 0, but past the end
	: >"$T/$part.err"
	[ -e "${LB_BENCH_LLMC:-}/Makefile" ] || { echo "- (LB_BENCH_LLMC names no checkout of llm.c)"; return; }
	llmc_build || { cp "$T/$part-build.log" "$T/$part.err"; reason 1; return; }
	llmc_tokens || { reason 1; return; }
	(cd "$T/llmc" && limited $SECONDS_MOST ./train_gpt2cu -i "$T/llmc.bin" -j "$T/llmc.bin" -e d12 -b "$1" -t "$2" -d $(($1 * $2)) -x 30 -v 1000 -m 1 -s 0 -h 0) \
		>"$T/$part.log" 2>>"$T/$part.err"
	status=$?
	sed -n 's/.* \([0-9]*\) tok\/s.*/\1/p' "$T/$part.log" | tail -n 1 | grep . && return
	[ -s "$T/$part.err" ] || tail -n 1 "$T/$part.log" >"$T/$part.err"
	reason $status
}
known='' torch=''
while read -r part shape side command; do
	known="$known $part"
	case " ${PARTS:-$part} " in *" $part "*) ;; *) continue ;; esac
	[ -n "${PARTS:-}" ] && ! grep -q "^$part .* [0-9][0-9]*$" "$T/results" && sed -i "/^$part /d" "$T/results"
	! grep -q "^$part " "$T/results" || continue
	if [ -z "$torch" ] && [ "$side" = PyTorch ]; then # found out once, for all parts
		prepare_torch >"$T/torch.err" && torch=yes || torch=no
	fi
	# shellcheck disable=SC2086 # words
	echo "$part $shape $side $($command </dev/null)" | tee -a "$T/results"
done <<-END
	124M-ours         124M ours    ours llama/124M 64 1024 float32 float32 30
	124M-pytorch      124M PyTorch pytorch 124M 64 1024
	8B-ours           8B   ours    ours llama/8B 1 8192 bfloat16 bfloat16 15
	8B-pytorch        8B   PyTorch pytorch 8B 1 8192 --selective
	1B-ours           1B   ours    ours llama/1B 4 8192 float32 float32 20
	1B-pytorch        1B   PyTorch pytorch 1B 4 8192
	8B-fp8            8B   FP8     ours llama/8B 1 8192 bfloat16 bfloat16 15 tensorwise
	1B-fp8            1B   FP8     ours llama/1B 4 8192 float32 float32 20 tensorwise
	124M-fp8          124M FP8     ours llama/124M 64 1024 float32 float32 30 tensorwise
	8B-fp8-rows       8B   FP8     ours llama/8B 1 8192 bfloat16 bfloat16 15 rowwise
	8B-fp8-blocks     8B   FP8     ours llama/8B 1 8192 bfloat16 bfloat16 15 blockwise
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
	# FP8 beside ours in bf16; at 8B also by itself (torchtitan on an H200: 10.9k).
	for (i = 1; i <= 3; i++) {
		a = best[shape[i], "FP8"]; b = best[shape[i], "ours"]; least = shape[i] == "8B" ? 1.28 : 1.00
		printf "%-6s %12s %-20s %12s %-20s %6s  >= %.2f x%s: %s\n", shape[i], a ? a : "-", by[shape[i], "FP8"], b ? b : "-",
			"ours in bf16", a && b ? sprintf("%.2f", a / b) : "-", least, shape[i] == "8B" ? " and >= 12000" : "",
			a && b ? (a >= least * b && (shape[i] != "8B" || a >= 12000) ? "met" : "NOT met") : "not measured"
	}
}' "$T/results"
