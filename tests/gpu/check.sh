#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh - everything that needs a GPU, in one run of at most eight minutes: B=build sh tests/gpu/check.sh
#
# Each part ends as ok, FAILED or skipped; the table comes last, so that the end of the output says all.
# Exit 77 without a GPU. LB_GPU_LOG: a folder that keeps each part's output. A rehearsal with the emulated
# library, tests/system/gpu-check.t, makes it shorter: LB_GPU_STEPS (even, over 40), LB_GPU_SEQ, LB_GPU_ROUNDS.
# shellcheck disable=SC2086 # $bf16, $fixed, $large: words
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
export LB_CUDA_LIBRARY="${LB_CUDA_LIBRARY:-$B/liblbcuda.so}"
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-gpu.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
LOG=${LB_GPU_LOG:-$T}
mkdir -p "$LOG"
steps=${LB_GPU_STEPS:-200} seq=${LB_GPU_SEQ:-128} rounds=${LB_GPU_ROUNDS:-20}
half=$(printf %08d $((steps / 2))) last=$(printf %08d "$steps")
large="--large --rounds 2"
[ -z "${LB_GPU_ROUNDS:-}" ] || large="--rounds $rounds"

"$B/gpu/ops" --rounds 0 >"$T/probe" 2>&1
if [ $? = 77 ]; then
	cat "$T/probe"
	echo "gpu-check: there is no GPU here, nothing was checked"
	exit 77
fi
first=$(date +%s)
: >"$T/table"
failures=0
part() { # part NAME COMMAND...: a line of the table; the last line that the command printed is its figure
	name=$1
	shift
	start=$(date +%s)
	log=$LOG/$(echo "$name" | tr ' /' '--').log
	"$@" >"$log" 2>&1
	status=$?
	end=$(date +%s)
	word=ok
	[ "$status" = 0 ] || { word=FAILED; failures=$((failures + 1)); }
	[ "$status" != 77 ] || { word=skipped; failures=$((failures - 1)); }
	printf '%-34s %-8s %4d s  %s\n' "$name" "$word" $((end - start)) "$(tail -n 1 "$log")" \
		| tee -a "$T/table"
	[ "$word" != FAILED ] || grep -v '^ok' "$log" | tail -n 15
}

# --- operations and whole models ---------------------------------------------------------------------
part "operations fp32" "$B/gpu/ops" --fp32 --rounds "$rounds"
part "operations bf16" "$B/gpu/ops" --rounds "$rounds"
part "operations fp32, large" "$B/gpu/ops" --fp32 $large
part "operations bf16, large" "$B/gpu/ops" $large
part "PyTorch goldens fp32" "$B/gpu/goldens"
part "PyTorch goldens bf16" "$B/gpu/goldens" --bf16
part "goldens bf16, deterministic" "$B/gpu/goldens" --bf16 --deterministic

# --- trainings ---------------------------------------------------------------------------------------
awk 'BEGIN { srand(5); for (i = 0; i < 400000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	[lr_scheduler]
	warmup_steps = 10
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 4
	global_batch_size = 8
	seq_len = $seq
	mixed_precision_param = "float32"
	steps = $steps
	[checkpoint]
	interval = $((steps / 2))
	keep_latest_k = 0
	[metrics]
	log_freq = 1
END
train() { # train FOLDER OPTIONS...
	folder=$1
	shift
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/$folder" "$@" >"$T/$folder.log"
}
losses() { sed -n 's/^step \([0-9]*\)\/[0-9]* loss \([0-9.]*\) grad_norm \([0-9.]*\) .*/\1 \2 \3/p' "$T/$1.log"; }
# The mean gap of the last 20 losses, and the largest of all from step FIRST on, against a tolerance each.
gap() { # gap HAVE WANT MEAN LARGEST [FIRST]
	losses "$1" >"$T/a" && losses "$2" >"$T/b"
	awk -v mean="$3" -v most="$4" -v first="${5:-1}" -v steps="$steps" '
	NR == FNR { loss[$1] = $2; next }
	$1 < first { next }
	{ d = (loss[$1] - $2) / $2; a = d < 0 ? -d : d; if (a > worst) { worst = a; at = $1 }
	  if ($1 > steps - 20) { sum += d; n++ } }
	END { m = n ? sum / n : 9; m = m < 0 ? -m : m
	  printf "mean gap of the last 20 losses %.5f %%, largest of all %.5f %% at step %d\n", 100 * m, 100 * worst, at
	  exit !(n == 20 && m <= mean && worst <= most) }' "$T/a" "$T/b"
}
same() { # same FOLDER FOLDER STEP: the same bits
	for file in model optimizer; do
		cmp "$T/$1/checkpoints/step-$3/$file.safetensors" "$T/$2/checkpoints/step-$3/$file.safetensors" ||
			return 1
	done
	echo "weights and moments of step $3 are the same to the bit"
}
bf16="--training.mixed_precision_param bfloat16"
# The truth, once: a second run into its folder would find its checkpoint and have nothing to do.
train cpu --device cpu || exit 1
training() { train "$1" --device cuda $2 && gap "$1" cpu "$3" "$4"; }
part "$steps steps fp32, against the CPU" training fp32 "" 1e-4 2e-3
part "$steps steps bf16, against the CPU" training bf16 "$bf16" 1e-3 2e-2
part "$steps steps bf16 moments" training moments "$bf16 --optimizer.moments bfloat16" 2.5e-3 3e-2
fixed="$bf16 --device.deterministic true"
twice() { train one --device cuda $fixed && train two --device cuda $fixed && same one two "$last"; }
part "two runs, deterministic" twice
# SIGKILL while it runs, as soon as the first checkpoint is told; then it goes on to the end.
killed() {
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/three" --device cuda $fixed >"$T/three.log" &
	worker=$!
	until grep -q '^checkpoint' "$T/three.log" 2>/dev/null || ! kill -0 $worker 2>/dev/null; do :; done
	kill -KILL $worker 2>/dev/null
	wait $worker 2>/dev/null
	train three --device cuda $fixed && same one three "$last"
}
part "kill -9 and resume" killed
across() {
	mkdir -p "$T/to-cpu/checkpoints" "$T/to-gpu/checkpoints"
	cp -r "$T/fp32/checkpoints/step-$half" "$T/to-cpu/checkpoints/"
	cp -r "$T/cpu/checkpoints/step-$half" "$T/to-gpu/checkpoints/"
	resumed=$((steps / 2 + 1))
	train to-cpu --device cpu && gap to-cpu cpu 1e-3 5e-3 "$resumed" && train to-gpu --device cuda &&
		gap to-gpu cpu 1e-3 5e-3 "$resumed"
}
part "checkpoints GPU to CPU and back" across
evaluated() {
	for device in cpu cuda; do
		"$B/lbworker" eval "$T/fp32/checkpoints/step-$last" "$T/text.tokens" --seq-len "$seq" --samples 20 \
			--device $device | tee "$T/eval-$device" || return 1
	done
	cat "$T/eval-cpu" "$T/eval-cuda" | awk '{ sub(/,/, "", $7); loss[NR] = $7 }
		END { d = (loss[2] - loss[1]) / loss[1]; d = d < 0 ? -d : d
		      printf "losses %.5f %% apart\n", 100 * d; exit !(NR == 2 && d <= 1e-5) }'
}
part "eval on the GPU" evaluated

# --- memory and races ----------------------------------------------------------------------------------
sanitized() { # sanitized TOOL
	command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed"; return 77; }
	compute-sanitizer --tool "$1" --error-exitcode 9 "$B/gpu/ops" --rounds 1 --seed 3
}
for tool in memcheck racecheck initcheck synccheck; do
	part "compute-sanitizer $tool" sanitized $tool
done

echo
echo "gpu-check, $(date -u +%F), $(sed -n 1p "$T/probe")"
cat "$T/table"
echo "$(grep -c ' ok ' "$T/table") ok, $failures failed, $(grep -c skipped "$T/table") skipped, $(($(date +%s) - first)) s"
[ "$failures" = 0 ]
