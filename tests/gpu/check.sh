#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh - everything that needs a GPU, in parts of at most eight minutes each: B=build sh
# tests/gpu/check.sh
#
# PARTS="ops-bf16 steps-bf16" runs those (all, unless told); the most telling ones come first. Each
# is ok, FAILED or skipped. What came out is kept in $LB_GPU_RESULTS as it comes, one line a part: a
# call that is cut short goes on where it was with the next call, which leaves out what is ok
# already (FRESH=1: nothing is left out). The table of all parts comes last. Exit 77 without a GPU.
#
# LB_GPU_RESULTS  (build/gpu-check) a folder: results, each part's output, trainings that parts
#                 share
# What the machine lacks is installed by prepare.sh, or said: what can run without it runs.
# A rehearsal with the emulated library, tests/system/gpu-check.t, makes it shorter: LB_GPU_STEPS
# (even; the warm-up is 10), LB_GPU_SEQ, LB_GPU_ROUNDS, LB_GPU_RECIPES, LB_GPU_LONG_STEPS (a
# multiple of 20), _SEQ, _BATCH, _FLAVOR; LB_GPU_TOY=1: PyTorch computes on the CPU.
# shellcheck disable=SC2086 # $bf16, $fixed, $large: words
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
T=${LB_GPU_RESULTS:-$B/gpu-check}
mkdir -p "$T" || exit 1
me="gpu-check"
. tests/gpu/prepare.sh
MOST=480 # seconds
steps=${LB_GPU_STEPS:-200} seq=${LB_GPU_SEQ:-128} rounds=${LB_GPU_ROUNDS:-20}
half=$(printf %08d $((steps / 2))) last=$(printf %08d "$steps")
# How many losses at the end have their mean compared; what was resumed in the middle has no more.
tail=$((steps / 2 < 20 ? steps / 2 : 20))
large="--large --rounds 2"
[ -z "${LB_GPU_ROUNDS:-}" ] || large="--rounds $rounds"

prepare_libraries
status=$?
if [ $status = 77 ] || ! grep -q '^cuda: .* multiprocessors' "$T/probe"; then
	cat "$T/probe"
	[ $status != 77 ] || say "there is no GPU here, nothing was checked"
	[ $status = 77 ] || say "nothing was checked"
	exit $status
fi
grep -vi '^cuda\|agree:' "$T/probe" | head -n 3 # what it lacks
gpu=$(grep '^cuda: .* multiprocessors' "$T/probe")
# Another GPU, or other programs: nothing of what was seen holds for them.
about=$(cat "$T/probe" && cksum "$B/lbworker" "$LB_CUDA_LIBRARY")
if [ -n "${FRESH:-}" ] || [ "$(cat "$T/about" 2>/dev/null)" != "$about" ]; then
	[ ! -s "$T/results" ] || cat "$T/about" "$T/results" >>"$T/history"
	rm -rf "$T/results" "$T/cpu" "$T"/cpu-* "$T/one" "$T/fp32" "$T"/long-* "$T/pytorch.losses"
	echo "$about" >"$T/about"
fi
touch "$T/results"
failures=0 known=
is_wanted() { # is_wanted PART: named, or all are; and not done already
	known="$known $1"
	case " ${PARTS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
	! grep -q "^$1 *ok " "$T/results"
}
# part NAME COMMAND...: a line of the results; the last line that the command printed is its figure
part() {
	part=$1
	shift
	is_wanted "$part" || return 0
	start=$(date +%s)
	"$@" >"$T/$part.log" 2>&1 </dev/null
	status=$?
	word=ok
	[ "$status" = 0 ] || { word=FAILED; failures=$((failures + 1)); }
	[ "$status" != 77 ] || { word=skipped; failures=$((failures - 1)); }
	sed -i "/^$part /d" "$T/results"
	printf '%-26s %-8s %4d s  %s\n' "$part" "$word" $(($(date +%s) - start)) "$(tail -n 1 "$T/$part.log" | cut -c 1-200)" |
		tee -a "$T/results"
	[ "$word" != FAILED ] || grep -v '^ok' "$T/$part.log" | tail -n 15
}

# --- operations and whole models ------------------------------------------------------------------
part ops-bf16 limited $MOST "$B/gpu/ops" --rounds "$rounds"
part goldens-bf16 limited $MOST "$B/gpu/goldens" --bf16

# --- trainings ------------------------------------------------------------------------------------
[ -s "$T/text.tokens" ] || {
	awk 'BEGIN { srand(5); for (i = 0; i < 400000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
	"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
}
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
train() { # train FOLDER OPTIONS...: anew
	folder=$1
	shift
	rm -rf "${T:?}/$folder"
	go_on "$folder" "$@"
}
go_on() { # go_on FOLDER OPTIONS...: from its checkpoint
	folder=$1
	shift
	limited $MOST "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/$folder" "$@" >"$T/$folder.log"
}
losses() { sed -n 's/^step \([0-9]*\)\/[0-9]* loss \([0-9.]*\) grad_norm \([0-9.]*\) .*/\1 \2 \3/p' "$T/$1.log"; }
# The mean gap of the last losses, and the largest of all from step FIRST on, against a tolerance
# each.
gap() { # gap HAVE WANT MEAN LARGEST [FIRST]
	losses "$1" >"$T/a" && losses "$2" >"$T/b"
	awk -v mean="$3" -v most="$4" -v first="${5:-1}" -v steps="$steps" -v tail="$tail" '
	NR == FNR { loss[$1] = $2; next }
	$1 < first { next }
	{ d = (loss[$1] - $2) / $2; a = d < 0 ? -d : d; if (a > worst) { worst = a; at = $1 }
	  if ($1 > steps - tail) { sum += d; n++ } }
	END { m = n ? sum / n : 9; m = m < 0 ? -m : m
	  printf "mean gap of the last %d losses %.5f %%, largest of all %.5f %% at step %d\n", n, 100 * m, 100 * worst, at
	  exit !(n == tail && m <= mean && worst <= most) }' "$T/a" "$T/b"
}
same() { # same FOLDER FOLDER STEP: the same bits
	for file in model optimizer; do
		cmp "$T/$1/checkpoints/step-$3/$file.safetensors" "$T/$2/checkpoints/step-$3/$file.safetensors" ||
			return 1
	done
	echo "weights and moments of step $3 are the same to the bit"
}
bf16="--training.mixed_precision_param bfloat16"
# The truth is made once, by whichever part needs it first.
truth() { [ -e "$T/cpu/checkpoints/step-$last" ] || train cpu --device cpu; }
training() { truth && train "$1" --device cuda $2 && gap "$1" cpu "$3" "$4"; }
part steps-bf16 training bf16 "$bf16" 1e-3 2e-2
part steps-fp32 training fp32 "" 1e-4 2e-3
part steps-bf16-moments training moments "$bf16 --optimizer.moments bfloat16" 2.5e-3 3e-2
fixed="$bf16 --device.deterministic true"
once() { [ -e "$T/one/checkpoints/step-$last" ] || train one --device cuda $fixed; }
# Each has a cache of its own: what one has measured, the other has not.
twice() { once && train two --device cuda $fixed && same one two "$last"; }
part deterministic-twice twice
# Operands of few bits, of every recipe: the CPU's codes and scales to the bit, then products of
# them, FP8 by the library where it has it, and MXFP8 and NVFP4 on Blackwell; products whose sums
# have one term are exact. Trainings beside the CPU's with the same recipe.
few_bits() {
	for type in --fp32 "--seed 9"; do
		limited $MOST "$B/gpu/ops" $type --only few_bits --rounds "$rounds" &&
			limited $MOST "$B/gpu/ops" $type --only few_bits_products --rounds 4 &&
			limited $MOST "$B/gpu/ops" $type --only few_bits_exact --rounds 4 &&
			limited $MOST "$B/gpu/ops" $type --only fused --rounds "$rounds" || return 1
	done
	# Two runs of attention's gradient have the same bits only so, with more than some keys.
	limited $MOST "$B/gpu/ops" --deterministic --only fused $large
}
part few-bits few_bits
steps_few_bits() {
	for recipe in ${LB_GPU_RECIPES:-tensorwise rowwise blockwise delayed mxfp8 nvfp4}; do
		[ -e "$T/cpu-$recipe/checkpoints/step-$last" ] || train "cpu-$recipe" --device cpu --quantize.recipe "$recipe" || return 1
		train "few-$recipe" --device cuda $bf16 --quantize.recipe "$recipe" || return 1
		gap "few-$recipe" "cpu-$recipe" 2.5e-3 3e-2 || { echo "$recipe"; return 1; }
		figures="${figures:-}$recipe: $(gap "few-$recipe" "cpu-$recipe" 1 1 | sed 's/mean gap of the last [0-9]* losses/gap/; s/, .*//') "
	done
	echo "$figures"
}
part steps-few-bits steps_few_bits
# From the checkpoint in the middle: the amax of past steps is in it.
few_bits_resumed() {
	train few-whole --device cuda $fixed --quantize.recipe delayed || return 1
	rm -rf "$T/few-again" && mkdir -p "$T/few-again/checkpoints" &&
		cp -r "$T/few-whole/checkpoints/step-$half" "$T/few-again/checkpoints/" &&
		go_on few-again --device cuda $fixed --quantize.recipe delayed && same few-whole few-again "$last"
}
part few-bits-resumed few_bits_resumed
# SIGKILL while it runs, as soon as the first checkpoint is told; then it goes on to the end.
killed() {
	once || return 1
	rm -rf "$T/three"
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/three" --device cuda $fixed >"$T/three.log" &
	worker=$!
	echo $worker >"$T/running"
	until grep -q '^checkpoint' "$T/three.log" 2>/dev/null || ! kill -0 $worker 2>/dev/null; do sleep 0.01; done
	kill -KILL $worker 2>/dev/null
	wait $worker 2>/dev/null
	go_on three --device cuda $fixed && same one three "$last"
}
part killed-and-resumed killed
on_gpu() { [ -e "$T/fp32/checkpoints/step-$last" ] || train fp32 --device cuda; }
across() {
	truth && on_gpu || return 1
	rm -rf "$T/to-cpu" "$T/to-gpu"
	mkdir -p "$T/to-cpu/checkpoints" "$T/to-gpu/checkpoints"
	cp -r "$T/fp32/checkpoints/step-$half" "$T/to-cpu/checkpoints/"
	cp -r "$T/cpu/checkpoints/step-$half" "$T/to-gpu/checkpoints/"
	resumed=$((steps / 2 + 1))
	go_on to-cpu --device cpu && gap to-cpu cpu 1e-3 5e-3 "$resumed" && go_on to-gpu --device cuda &&
		gap to-gpu cpu 1e-3 5e-3 "$resumed"
}
part checkpoints-across across
evaluated() {
	on_gpu || return 1
	for device in cpu cuda; do
		"$B/lbworker" eval "$T/fp32/checkpoints/step-$last" "$T/text.tokens" --seq-len "$seq" --samples 20 \
			--device $device | tee "$T/eval-$device" || return 1
	done
	cat "$T/eval-cpu" "$T/eval-cuda" | awk '{ sub(/,/, "", $7); loss[NR] = $7 }
		END { d = (loss[2] - loss[1]) / loss[1]; d = d < 0 ? -d : d
		      printf "losses %.5f %% apart\n", 100 * d; exit !(NR == 2 && d <= 1e-5) }'
}
part eval evaluated

# --- the rest of the operations -------------------------------------------------------------------
part ops-fp32 limited $MOST "$B/gpu/ops" --fp32 --rounds "$rounds"
part ops-bf16-large limited $MOST "$B/gpu/ops" $large
part ops-fp32-large limited $MOST "$B/gpu/ops" --fp32 $large
part goldens-fp32 limited $MOST "$B/gpu/goldens"
part goldens-deterministic limited $MOST "$B/gpu/goldens" --bf16 --deterministic

# --- a long training on real text: this tree's own
# ------------------------------------------------------ Twice the same bits, the second time with
# three SIGKILL in between; each call goes on from the last checkpoint.
long_steps=${LB_GPU_LONG_STEPS:-10000} long_seq=${LB_GPU_LONG_SEQ:-1024}
long_last=$(printf %08d "$long_steps")
cat >"$T/long.toml" <<-END
	[model]
	name = "llama"
	flavor = "${LB_GPU_LONG_FLAVOR:-124M}"
	[optimizer]
	lr = 6e-4
	[lr_scheduler]
	warmup_steps = $((long_steps / 20))
	decay_type = "cosine"
	[training]
	dataset_path = "$T/long.tokens"
	local_batch_size = ${LB_GPU_LONG_BATCH:-8}
	seq_len = $long_seq
	mixed_precision_param = "bfloat16"
	steps = $long_steps
	[device]
	deterministic = true
	[checkpoint]
	interval = $((long_steps / 10))
	keep_latest_k = 2
	[metrics]
	log_freq = 1
END
long_text() {
	[ -s "$T/long.tokens" ] && return 0
	find README.md docs common daemon worker kernels ctl slurm -name '*.md' -o -name '*.scd' -o -name '*.[ch]' | sort |
		xargs cat >"$T/long.text" && "$B/lbworker" prepare --out "$T/long.tokens" "$T/long.text"
}
long() { # long FOLDER: to its end, or as far as the minutes go
	long_text >"$T/prepare.log" 2>&1 || return 1
	[ -e "$T/$1/checkpoints/step-$long_last" ] ||
		limited $MOST "$B/lbworker" train "$T/long.toml" --job.dump_folder "$T/$1" --device cuda >>"$T/$1.log" || return 1
	[ -e "$T/$1/checkpoints/step-$long_last" ] || { echo "not at its end yet: call again"; return 1; }
	losses "$1" | tail -n 1 | sed 's/^\([0-9]*\) \([0-9.]*\) .*/loss \2 after \1 steps/'
}
reached() { losses "$1" | awk -v at="$2" '$1 >= at { seen = 1 } END { exit !seen }'; }
long_killed() {
	for kill in 1 2 3; do
		at=$((kill * long_steps / 4 + 1))
		[ ! -e "$T/long-killed.$kill" ] || continue
		"$B/lbworker" train "$T/long.toml" --job.dump_folder "$T/long-killed" --device cuda >>"$T/long-killed.log" &
		worker=$!
		echo $worker >"$T/running"
		until reached long-killed "$at" || ! kill -0 $worker 2>/dev/null; do sleep 0.05; done
		kill -KILL $worker 2>/dev/null || return 1
		wait $worker 2>/dev/null
		touch "$T/long-killed.$kill"
	done
	long long-killed && long long-whole && same long-killed long-whole "$long_last"
}
# The mean loss of each tenth beside that of the same model, text and schedule in PyTorch.
long_beside() {
	prepare_torch || return 77
	long long-whole || return 1
	[ -s "$T/pytorch.losses" ] ||
		peer $MOST bench/gpu/pytorch.py "${LB_GPU_LONG_FLAVOR:-124M}" "${LB_GPU_LONG_BATCH:-8}" "$long_seq" \
			--steps "$long_steps" --text "$T/long.text" ${LB_GPU_TOY:+--device cpu} >"$T/pytorch.losses.new" || return 1
	[ -s "$T/pytorch.losses" ] || mv "$T/pytorch.losses.new" "$T/pytorch.losses"
	losses long-whole >"$T/a"
	awk -v steps="$long_steps" '
	NR == FNR { ours[int(($1 - 1) * 10 / steps)] += $2; n[int(($1 - 1) * 10 / steps)]++; next }
	$1 == "loss" { theirs[int(($2 - 1) * 10 / steps)] += $3 }
	END { for (i = 0; i < 10; i++) printf "# tenth %d: %.4f, PyTorch %.4f\n", i + 1, ours[i] / n[i], theirs[i] * 10 / steps
	      d = (ours[9] / n[9]) / (theirs[9] * 10 / steps) - 1
	      printf "mean loss of the last tenth %.2f %% from that of PyTorch\n", 100 * d
	      exit !(d < 0.03) }' "$T/a" "$T/pytorch.losses"
}
part long-text long long-whole
part long-kills long_killed
part long-beside-pytorch long_beside

# --- memory and races -----------------------------------------------------------------------------
sanitized() { # sanitized TOOL
	[ -z "${LB_GPU_TOY:-}" ] || { echo "there is no GPU in a rehearsal"; return 77; }
	prepare_sanitizer || return 77
	limited $MOST compute-sanitizer --tool "$1" --error-exitcode 9 "$B/gpu/ops" --rounds 1 --seed 3
}
# In the libraries' own kernels it takes writes of the copy engine for races; told to leave these
# out it ends in an error of its own (2025.3 on an H200). So what it says of ours counts.
races() {
	sanitized racecheck
	status=$?
	[ $status = 9 ] || return $status
	ours=$(grep '^=========.*\(Race reported between\|   and \).* at ' "$T/racecheck.log" |
		grep -vc ' at \(nvjet_\|cudnn_\|void cudnn::\|void cublasLt::\|sm[0-9]*_xmma_\|void cutlass\)')
	echo "$ours of our kernels, $(sed -n 's/.*RACECHECK SUMMARY: //p' "$T/racecheck.log")"
	[ "$ours" = 0 ] && grep -q '^agree: ' "$T/racecheck.log"
}
part memcheck sanitized memcheck
part racecheck races
part initcheck sanitized initcheck
part synccheck sanitized synccheck

for name in ${PARTS:-}; do
	case " $known " in *" $name "*) ;; *)
		echo "gpu-check: PARTS: there is no $name, allowed are:$known" >&2
		exit 2
		;;
	esac
done
echo
echo "gpu-check, $(date -u +%F), $gpu"
cat "$T/results"
echo "$(grep -c ' ok ' "$T/results") ok, $(grep -c ' FAILED ' "$T/results") failed, $(grep -c ' skipped ' "$T/results") skipped;" \
	"what each printed: $T"
[ "$failures" = 0 ]
