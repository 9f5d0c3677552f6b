#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu.t - all of the CUDA backend that can be shown without a GPU: its kernels and its calls, run on
# the host (tests/emulation), agree with the CPU backend, alone and in whole trainings; it says
# plainly that there is no GPU. What is built for GPUs: gpu-library.t.  B=build prove --exec sh
# tests/system/gpu.t
. "$(dirname "$0")/gpu.sh"

# --- operation by operation -----------------------------------------------------------------------
agree "every operation agrees with the CPU's in fp32" --fp32 --rounds 2 --seed 11
agree "and in bf16" --rounds 2 --seed 21
agree "… and where the same bits are asked for" --rounds 1 --seed 21 --deterministic
cp "$T/ops" "$T/forward"
LB_EMULATION_ORDER=reverse ops --rounds 1 --seed 21 --deterministic
cmp -s "$T/forward" "$T/ops"
ok $? "with threads and blocks in the other order the bits are the same"

for offered in bias none slow; do
	LB_EMULATION_EPILOGUES=$offered agree "products whose epilogues the library has like this: $offered" \
		--only gemm --rounds 40
done
agree "… and where no stopwatch chooses between them" --only gemm --rounds 400 --deterministic
# More shapes than plans are kept for.
agree "attention of forty shapes" --only attention --rounds 40
agree "and over more tokens than a block has memory for" --only attention_long --rounds 1 --fp32
LB_EMULATION_CUDNN=none ops --only swiglu --rounds 1
[ $? = 1 ] && grep -q 'cuda: open: no cuDNN' "$T/ops" && LB_EMULATION_CUDNN=none ops --fp32 --only swiglu --rounds 1
ok $? "bf16 without cuDNN is an error, fp32 does without"

goldens() { LB_CUDA_LIBRARY=$emulated "$B/gpu/goldens" "$@" >"$T/goldens" 2>"$T/err"; }
goldens && [ "$(grep -c '^ok' "$T/goldens")" = 36 ]
ok $? "whole models have PyTorch's gradients in fp32: eager, recorded, replayed"
goldens --bf16 && [ "$(grep -c '^ok' "$T/goldens")" = 36 ]
ok $? "and in bf16 within its rounding"

# --- whole trainings ------------------------------------------------------------------------------
small_training
losses() { sed -n 's/^step \([0-9]*\)\/[0-9]* loss \([0-9.]*\) grad_norm \([0-9.]*\) .*/\1 \2 \3/p' "$T/$1.log"; }
# near LOG LOG STEPS TOLERANCE: as many steps, losses and gradient norms no further apart (relative)
near() {
	losses "$1" >"$T/a"
	losses "$2" >"$T/b"
	awk -v steps="$3" -v most="$4" '
	function apart(x, y) { return (x > y ? x - y : y - x) / (y + 1e-9) }
	NR == FNR { loss[$1] = $2; norm[$1] = $3; next }
	$1 in loss { both++; if (apart(loss[$1], $2) > most || apart(norm[$1], $3) > 10 * most) bad = 1 }
	END { exit both != steps || bad }' "$T/a" "$T/b"
}
train cpu --device cpu
train gpu --device cuda
near gpu cpu 8 2e-4
ok $? "a training in fp32 goes as on the CPU"
narrow="--training.mixed_precision_param bfloat16 --optimizer.moments bfloat16"
# shellcheck disable=SC2086 # words
train narrow --device cuda $narrow
near narrow cpu 8 5e-3
ok $? "and one in bf16, with bf16 moments rounded by chance"
train cpu-one --device cpu --training.global_batch_size 1
# shellcheck disable=SC2086 # words
train gradients --device cuda --training.global_batch_size 1 $narrow --optimizer.gradients bfloat16
near gradients cpu-one 8 5e-3
ok $? "… and with bf16 gradients, where a step is one micro-batch"
# By a GPU's memory: one on which nothing fits beside what driver and libraries are left keeps the
# least.
# shellcheck disable=SC2086 # words
LB_EMULATION_BYTES=1000000000 train tight --device cuda $narrow
losses tight >"$T/a" && losses narrow >"$T/b" && [ -s "$T/a" ] && cmp -s "$T/a" "$T/b" &&
	grep -q '^again  *normed, qkv, attended, middle, up, hidden in every layer' "$T/tight.log" &&
	! grep -q '^again  ' "$T/narrow.log"
ok $? "a GPU with less memory computes again what it has no room for, with the same losses"
while read -r family options; do
	# shellcheck disable=SC2086 # words
	for device in cpu cuda; do
		train "$device-$family" --device $device --model.name "$family" --training.steps 3 $options
	done
	near "cuda-$family" "cpu-$family" 3 2e-4
	ok $? "and those of $family $options"
done <<-END
	neox
	gpt2
	mistral --model.sliding_window 5
	qwen3
	olmo2
	gemma2 --model.sliding_window 5 --training.document_end 97
	gemma3 --training.label_smoothing 0.1 --training.z_loss 0.001
END
train mean --device cuda --optimizer.ema_decay 0.9
[ $? = 2 ] && grep -q '^lbworker: optimizer.ema_decay: must be 0 on this device, or device.name "cpu"$' "$T/err"
ok $? "a mean of weights is refused on a GPU, in one line"

# From the checkpoint in the middle, on the same device and on the other one.
resume() { # resume FROM FOLDER OPTIONS...
	from=$1 to=$2
	shift 2
	mkdir -p "$T/$to/checkpoints"
	cp -r "$T/$from/checkpoints/step-00000004" "$T/$to/checkpoints/"
	train "$to" "$@"
}
# shellcheck disable=SC2086 # words
resume narrow again --device cuda $narrow
for file in model optimizer; do
	cmp "$T/narrow/checkpoints/step-00000008/$file.safetensors" \
		"$T/again/checkpoints/step-00000008/$file.safetensors" || echo differ
done >"$T/out" 2>&1
[ ! -s "$T/out" ]
ok $? "a resumed training ends with the same bits"
# Each with a cache of its own: nothing that a stopwatch said may come between them.
fixed="--device.deterministic true"
for folder in fixed-one fixed-two; do
	# shellcheck disable=SC2086 # words
	train $folder --device cuda $narrow $fixed --training.steps 4
	mv "$T/$folder/checkpoints/step-00000004" "$T/$folder/end"
	sed -n 's/.*"device_choices": *\("[^"]*"\).*/\1/p' "$T/$folder/end/train_state.json" >"$T/$folder/choices"
done
for file in end/model.safetensors end/optimizer.safetensors choices; do
	[ -s "$T/fixed-one/$file" ] && cmp "$T/fixed-one/$file" "$T/fixed-two/$file" || echo differ
done >"$T/out" 2>&1
[ ! -s "$T/out" ]
ok $? "where the same bits are asked for, two folders end with them, by the same algorithms"
resume gpu to-cpu --device cpu
near to-cpu cpu 4 2e-4
ok $? "a checkpoint of the GPU goes on with the CPU"
resume cpu to-gpu --device cuda
near to-gpu cpu 4 2e-4
ok $? "and one of the CPU with the GPU"
train traced --device cuda --training.steps 2 --profiling.enable_profiling true \
	--profiling.profile_freq 2
"$B/lbworker" trace summary "$T/traced" --svg "$T/traced.svg" >"$T/out" 2>"$T/err" &&
	grep -q '^  compute ' "$T/out" && grep -q '^  gemm ' "$T/out" && grep -q '</svg>' "$T/traced.svg" &&
	grep -q '"cat":"kernel","pid":0,"tid":7' "$T"/traced/profile_traces/iteration_2/rank0.*.pt.trace.json &&
	grep -q '"ProfilerStep#2"' "$T"/traced/profile_traces/iteration_2/rank0.*.pt.trace.json
ok $? "a trace has the device's own times, and its summary says where they went"
grep -q device_choices "$T/gpu/checkpoints/step-00000008/train_state.json"
ok $? "the algorithms chosen are in the checkpoint"
[ -s "$T/gpu/cache/gemm-emulated-GPU-130100" ]
ok $? "and in the cache"

# An epilogue that is slower than our own kernel behind the product is left alone, in the next
# launch, too.
# shellcheck disable=SC2086 # words
LB_EMULATION_EPILOGUES=slow train slow --device cuda --model.name gpt2 $narrow
near slow cpu-gpt2 3 5e-3 && grep -q ' refused' "$T/slow/checkpoints/step-00000008/train_state.json"
ok $? "an epilogue that costs more than it saves is not used"
# shellcheck disable=SC2086 # words
resume slow slow-again --device cuda --model.name gpt2 $narrow
cmp "$T/slow/checkpoints/step-00000008/model.safetensors" "$T/slow-again/checkpoints/step-00000008/model.safetensors" \
	>"$T/out" 2>&1 && grep -q ' refused' "$T/slow-again/checkpoints/step-00000008/train_state.json"
ok $? "… nor by the next launch, which ends with the same bits"

# --- which GPU ------------------------------------------------------------------------------------
LB_EMULATION_DRIVER=12080 ops --rounds 1
[ $? = 77 ] && grep -q '^cuda: the driver is for CUDA 12.8, liblbcuda.so for 1[3-9]\.[0-9]*: ' "$T/ops"
ok $? "a driver older than the library is named, with both versions"
LB_EMULATION_GPU=taken ops --rounds 1
[ $? = 77 ] && grep -q '^cuda: GPU 0 does not open: ' "$T/ops"
ok $? "a GPU that another process has for itself is no missing one"
LB_EMULATION_GPU=taken LB_EMULATION_GPUS=2 train second --device cuda --device.index 1 --training.steps 4 &&
	[ -e "$T/second/checkpoints/step-00000004" ] && [ ! -s "$T/err" ]
ok $? "nor is one beside it touched, by the thread that writes checkpoints either"
LB_EMULATION_CODE=none ops --rounds 1
[ $? = 77 ] && grep -q '^cuda: this liblbcuda.so has no code for emulated GPU (9.0): no kernel image .*; make release ' "$T/ops"
ok $? "a GPU that the library has no code for is told before any work"
LB_EMULATION_BYTES=60000000 ops --rounds 1
[ $? = 77 ] && grep -q '^cuda: out of memory on emulated GPU, of which 57 MiB are free: nvidia-smi' "$T/ops"
ok $? "so is one that others have filled"
LB_EMULATION_BROKEN=0 ops --rounds 1
[ $? = 77 ] && grep -q '^cuda: alloc .*: uncorrectable ECC error' "$T/ops" &&
	! LB_EMULATION_BROKEN=1 train broken --device cuda && [ "$(wc -l <"$T/err")" = 1 ] &&
	grep -q '^lbworker: cuda: .*: uncorrectable ECC error' "$T/err" && [ ! -e "$T/broken/memory_snapshot" ]
ok $? "one that fails while it is opened or a training is set up is not told as one without memory"
! LB_CUDA_LIBRARY=$emulated LB_EMULATION_BROKEN=1 "$B/lbworker" check --device cuda --folder "$T" >"$T/out" 2>"$T/err" &&
	grep -q 'node check: memory: cuda: .*: uncorrectable ECC error' "$T/err"
ok $? "nor by a node's check"
LB_EMULATION_COUNTS=$T/counts train whole --device cuda
read -r _ queued _ <"$T/counts" && ! LB_EMULATION_BROKEN=$((queued - 4)) train later --device cuda &&
	grep -q 'step 8: cuda: .*: uncorrectable ECC error encountered, in this or an operation before it; LB_CUDA_WAIT=1 tells' "$T/err" &&
	! LB_CUDA_WAIT=1 LB_EMULATION_BROKEN=$((queued - 4)) train sooner --device cuda &&
	grep -q 'step [0-9]*: cuda: .*: uncorrectable ECC error encountered (' "$T/err"
ok $? "whoever hears of a failure in a step says that it may be an earlier operation's, unless each is waited for"
LB_EMULATION_CODE=80 ops --rounds 1 --only swiglu
ok $? "code of a generation before grids began early lets none begin early"
LB_EMULATION_GPUS=2 train missing --device cuda --device.index 2
[ $? = 1 ] && grep -q 'there is no GPU 2, visible are 2, from 0 on' "$T/err"
ok $? "a GPU that is not there is said by its number"
LOCAL_RANK=3 LB_EMULATION_GPUS=2 train missing --device cuda
[ $? = 1 ] && grep -q 'there is no GPU 3' "$T/err" && LOCAL_RANK=3 train alone --device cuda --training.steps 2
ok $? "a rank takes its own, or the only one that it sees"

# --- a copy to the host that is refused
# ------------------------------------------------------------------- Each step brings down a
# decision; behind that of step 4 come three copies for its checkpoint.
for most in 4 5 6 7; do
	LB_EMULATION_FETCHES=$most train "lost-$most" --device cuda && echo "$most: it did not fail"
	[ ! -e "$T/lost-$most/checkpoints/step-00000004" ] || echo "$most: published"
done >"$T/out"
[ "$(cat "$T/out")" = "7: published" ]
ok $? "a checkpoint of which a copy failed is never published"

# --- a step as one program
# ------------------------------------------------------------------------------ Two steps more are
# two graphs more (with two micro-batches four), and nothing beside them but what goes up (tokens,
# targets, the host's half of a decision) and what comes down (the decision).
counts() { # counts STEPS BATCH: graphs, what was queued outside of them, allocations, bytes at most
	LB_EMULATION_COUNTS=$T/counts train "counted-$1-$2-$4" --device cuda --training.steps "$1" \
		--training.global_batch_size "$2" --checkpoint.interval 0 "$3" "$4" && cat "$T/counts"
}
more() { # more BATCH MOMENTS: the same of two steps in the middle of a training
	counts 6 "$1" --optimizer.moments "$2" >"$T/a" && counts 8 "$1" --optimizer.moments "$2" >"$T/b" &&
		paste "$T/a" "$T/b" | awk '{ print $5 - $1, $6 - $2, $7 - $3 }'
}
seen="$(more 1 float32), $(more 1 bfloat16), $(more 2 float32)"
[ "$seen" = "2 8 0, 2 8 0, 4 12 0" ]
ok $? "a step is one graph, with a micro-batch more one more; nothing is allocated ($seen)"
[ "$(sed -n 's/^step 8.* \([0-9.]*\) GiB$/\1/p' "$T/counted-8-2-float32.log")" = "$(awk '{ printf "%.2f", $4 / 2 ^ 30 }' "$T/counts")" ]
ok $? "a step's memory is what is held of the GPU's"
train spiky --device cuda --training.steps 8 --training.max_norm 0.5
train spiky-cpu --device cpu --training.steps 8 --training.max_norm 0.5
near spiky spiky-cpu 8 2e-4
ok $? "a clipped gradient is clipped within the graph as on the CPU"

LB_EMULATION_CAPTURE=refused train unrecorded --device cuda
cp "$T/err" "$T/said"
near unrecorded gpu 8 1e-7 && [ "$(grep -c 'is not recorded, it goes call by call' "$T/said")" = 2 ]
ok $? "what cannot be recorded is said and goes call by call, with the same losses"
# Eight sizes of a batch have 22 programs, six more than are kept: the oldest give way.
for device in cpu cuda; do
	train "ramp-$device" --device "$device" --training.steps 30 --training.global_batch_size 8 \
		--training.batch_ramp "[1, 1, 70]" --checkpoint.interval 0
done
near ramp-cuda ramp-cpu 30 2e-4
ok $? "more programs than are kept"

# --- what a profiler sees -------------------------------------------------------------------------
tap=$(realpath "$B/gpu/nvtx_tap.so")
LB_NVTX_TAP=$T/ranges NVTX_INJECTION64_PATH=$tap train ranged --device cuda --training.steps 2
cat >"$T/wanted" <<-END
	step 1
	  data
	  forward
	    embed_forward
	    rmsnorm_forward
	    gemm
END
grep -v '^!' "$T/ranges" | sed -n '/^step 1/,/gemm/p' | cmp -s - "$T/wanted" && ! grep '^!' "$T/ranges" &&
	grep -q '^  update' "$T/ranges" && grep -q '^    adamw' "$T/ranges" && grep -q '^checkpoint' "$T/ranges"
ok $? "a profiler sees steps, phases and operations, each range closed"
sed -n '/^step 1/,/gemm/p' "$T/ranges" | diff "$T/wanted" - | sed 's/^/# /'

# --- memory ---------------------------------------------------------------------------------------
train timed --device cuda --training.steps 2 --profiling.enable_memory_snapshot true
grep -q '"GPU memory (MiB)".*"matrix products":64.000.*"weights":[0-9.]*,"gradients":[0-9.]*,"activations":' \
	"$T/timed/memory_snapshot/iteration_1/rank0_memory.json" &&
	grep -q '"memory (MiB)".*"weights":0.000' "$T/timed/memory_snapshot/iteration_1/rank0_memory.json"
ok $? "the timeline of memory has the GPU's, by who holds it"
snapshot=memory_snapshot/iteration_1/rank0_out_of_memory.json
! LB_EMULATION_BYTES=69206016 train refused --device cuda &&
	grep -q 'not enough memory' "$T/err" && grep -q '^weights  *[0-9.]* *0.0$' "$T/err" &&
	grep -q '"why": "not enough memory' "$T/refused/$snapshot" && ! [ -e "$T/refused/checkpoints" ]
ok $? "a training that the plan does not fit in is refused with a table, before it begins"
# Room for exactly what the plan counts, and 256 bytes, in which a decision fits: the first work
# area of a reduction is one too many.
room=$(sed -n 's/.*"\(planned\|held\)_bytes": \([0-9]*\).*/\2/p' "$T/refused/$snapshot" |
	awk '{ sum += $1 } END { print sum + 256 }')
! LB_EMULATION_BYTES=$room train late --device cuda &&
	grep -q 'out of memory (kernels/cuda/' "$T/err" && grep -q 'no room for .* of reductions' "$T/err" &&
	grep -q '"refused": "reductions"' "$T/late/$snapshot" && grep -q '"held_bytes": [1-9]' "$T/late/$snapshot"
ok $? "one that runs out of it in a step says what for, and who holds the rest"

# --- what a model says ----------------------------------------------------------------------------
ours=$T/gpu/checkpoints/step-00000008
says() { # says FILE COMMAND ARGUMENTS...: its output, on the emulated GPU where asked for
	file=$T/$1
	shift
	LB_CUDA_LIBRARY=$emulated "$B/lbworker" "$@" --seq-len 16 >"$file" 2>"$T/err"
}
says cpu-eval eval "$ours" "$T/text.tokens" --samples 3 --device cpu &&
	says gpu-eval eval "$ours" "$T/text.tokens" --samples 3 --device cuda &&
	says narrow-eval eval "$ours" "$T/text.tokens" --samples 3 --device cuda --dtype bfloat16 &&
	cat "$T/cpu-eval" "$T/gpu-eval" "$T/narrow-eval" | awk '{ sub(/,/, "", $7); loss[NR] = $7 }
		function apart(i) { return (loss[i] > loss[1] ? loss[i] - loss[1] : loss[1] - loss[i]) / loss[1] }
		END { exit !(NR == 3 && loss[1] > 1 && apart(2) <= 1e-5 && apart(3) > 0 && apart(3) <= 5e-3) }'
ok $? "eval on the GPU, in fp32 and bf16, has the loss of the CPU"
says cpu-said generate "$ours" --prompt abc --tokens 5 --temperature 0 --device cpu &&
	says gpu-said generate "$ours" --prompt abc --tokens 5 --temperature 0 --device cuda &&
	[ -s "$T/gpu-said" ] && cmp "$T/cpu-said" "$T/gpu-said" >"$T/out"
ok $? "generate says the same"
LB_CUDA_LIBRARY=$T/nowhere.so "$B/lbworker" eval "$ours" "$T/text.tokens" --device cuda >"$T/out" 2>"$T/said"
[ $? = 1 ] && grep -q -e '--device cuda: ' "$T/said" && says bad eval "$ours" "$T/text.tokens" --device gpu
[ $? = 2 ] && grep -q -e '--device: there is no "gpu", allowed are auto, cpu, cuda' "$T/err" && : >"$T/err"
ok $? "a device that is not there is said by the name of the option"
# A wheel has a file of the name that the library needs, in which is another one.
wheel=$T/venv/lib/python3.9/site-packages/nvidia/x/lib
mkdir -p "$wheel" && echo 'int nothing;' >"$T/empty.c" &&
	gcc -shared -fPIC -Wl,-soname,libneeded.so.1 -o "$T/libneeded.so.1" "$T/empty.c" &&
	gcc -shared -fPIC -Wl,-soname,libother.so.1 -o "$wheel/libneeded.so.1" "$T/empty.c" &&
	gcc -shared -fPIC -o "$T/needy.so" "$T/empty.c" -Wl,--no-as-needed "$T/libneeded.so.1" &&
	VIRTUAL_ENV=$T/venv LB_CUDA_LIBRARY=$T/needy.so "$B/lbworker" eval "$ours" "$T/text.tokens" --device cuda \
		>"$T/out" 2>"$T/said"
[ $? = 1 ] && grep -q -e '--device cuda: LB_CUDA_LIBRARY: libneeded.so.1: cannot open' "$T/said"
ok $? "a library that stays away though a wheel has its file is named"

python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' bench/gpu/pytorch.py 2>"$T/err" &&
	sh -n bench/gpu/run.sh && sh -n tests/gpu/check.sh
ok $? "what only a GPU can run is at least well formed"

# --- no GPU ---------------------------------------------------------------------------------------
LB_CUDA_LIBRARY=$T/nowhere.so "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/no" \
	--training.steps 1 --lr_scheduler.warmup_steps 0 >"$T/out" 2>"$T/err"
status=$?
[ "$status" = 0 ] && [ "$(grep -c 'the CPU computes' "$T/out")" = 1 ] && [ ! -s "$T/err" ] && grep -q '^cpu:' "$T/out"
ok $? "without the library the CPU computes, and one line says so"
echo >"$T/empty.c"
gcc -shared -fPIC -Wl,-soname,libcublasLt.so.99 -o "$T/libcublasLt.so.99" "$T/empty.c" &&
	gcc -shared -fPIC -o "$T/needy.so" "$T/empty.c" -Wl,--no-as-needed "$T/libcublasLt.so.99" && rm "$T/libcublasLt.so.99"
LB_CUDA_LIBRARY=$T/needy.so "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/no" --device cuda >"$T/out" 2>"$T/said"
[ $? = 1 ] && grep -q 'LB_CUDA_LIBRARY: libcublasLt.so.99: cannot open .*; the module of that CUDA has it, or pip install' "$T/said"
ok $? "a library of the toolkit that is missing is said with where it is to be had"
# in_job GPUS NAME: the same in a job that was given these
in_job() {
	LB_RUN=some CUDA_VISIBLE_DEVICES=$1 LB_CUDA_LIBRARY=$T/nowhere.so "$B/lbworker" train "$T/small.toml" \
		--job.dump_folder "$T/no-$2" --training.steps 1 --lr_scheduler.warmup_steps 0 >"$T/out" 2>"$T/said"
}
in_job GPU-1234abcd held
[ "$? $(wc -l <"$T/said")" = "1 1" ] && grep -q 'nowhere.so.*; the job holds GPUs (CUDA_VISIBLE_DEVICES=GPU-1234abcd)' "$T/said" &&
	in_job "" none && grep -q 'the CPU computes' "$T/out"
ok $? "a job that was given GPUs does not hold them for nothing"
LB_CUDA_LIBRARY=$T/nowhere.so "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/no2" \
	--device cuda >"$T/out" 2>"$T/said"
status=$?
[ "$status" = 1 ] && grep -q 'device.name = "cuda"' "$T/said"
ok $? "asked for by name it is an error"
LB_CUDA_LIBRARY=$T/nowhere.so "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/no3" \
	--device cpu --training.mixed_precision_param bfloat16 >"$T/out" 2>"$T/said"
status=$?
[ $status = 0 ] && grep -q 'computes in bfloat16' "$T/out"
ok $? "bf16 without the library, on the CPU"

# --- the GPU's memory is none of the host's -------------------------------------------------------
if ! python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).pkey_alloc(0, 1) < 0)' 2>"$T/err"; then
	ok 0 "host code that reads it dies # SKIP this processor, or its kernel, has no protection keys"
elif [ -n "${SAN:-}" ]; then
	ok 0 "host code that reads it dies # SKIP a sanitizer keeps the books of small tensors"
else
	ops --rounds 0 --peek
	[ $? = 139 ] && ! grep -q 'the host reads' "$T/ops"
	ok $? "host code that reads it dies"
fi

echo "1..$count"
