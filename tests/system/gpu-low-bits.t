#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-low-bits.t - recipes of few bits on the CUDA backend, run on the host (tests/emulation): the
# CPU's codes and scales to the bit, by FP8 products of the library and emulated; whole trainings go
# as on the CPU, and go on to the bit.
#   B=build prove --exec sh tests/system/gpu-low-bits.t
. "$(dirname "$0")/gpu.sh"

# --- operands and products ------------------------------------------------------------------------
agree "every slot of every recipe has the CPU's codes and scales, to the bit" --fp32 --only few_bits --rounds 2
agree "and from bf16" --only few_bits --rounds 2 --seed 7
cp "$T/ops" "$T/forward"
agree "weights for other ranks have the CPU's codes, and come back to them" --only sent --rounds 3
agree "memory of parts in turn keeps ours and is less than all" --fp32 --only shares --rounds 1
LB_EMULATION_ORDER=reverse ops --only few_bits --rounds 2 --seed 7
cmp -s "$T/forward" "$T/ops"
ok $? "with threads and blocks in the other order the bits are the same"
for type in --fp32 --seed\ 3; do
	# shellcheck disable=SC2086 # words
	agree "products of few bits, by FP8 where the library has it (${type%% *})" $type --only few_bits_products --rounds 2
done
exact() { # exact NAME ARGUMENTS...: and $modes, how many products the library made in each mode of scales
	name=$1
	shift
	export LB_EMULATION_MODES="$T/modes"
	agree "$name" "$@"
	unset LB_EMULATION_MODES
	read -r modes <"$T/modes"
}
exact "a product whose sums have one term is codes times scales to the bit" --fp32 --only few_bits_exact --rounds 1
[ "$(echo "$modes" | cut -d ' ' -f 2,3)" = "0 0" ]
ok $? "… where a GPU has no blocks of scales without them ($modes)"
export LB_EMULATION_CAPABILITY=100
for type in --fp32 --seed\ 5; do
	# shellcheck disable=SC2086 # words
	exact "Blackwell's MXFP8 and NVFP4: codes, packed, and scales in boxes are the CPU's (${type%% *})" $type --only few_bits_exact --rounds 2
	echo "$modes" | grep -qE '^0 [1-9][0-9]* [1-9][0-9]* 0 0 0$'
	ok $? "… by its matrix units ($modes)"
	# shellcheck disable=SC2086 # words
	exact "products of each recipe there (${type%% *})" $type --only few_bits_products --rounds 2
	echo "$modes" | grep -qE '^[1-9][0-9]* [1-9][0-9]* [1-9][0-9]* 0 0 0$'
	ok $? "… by them, too, none in a mode of Hopper's alone ($modes)"
done
unset LB_EMULATION_CAPABILITY
LB_EMULATION_FP8=none agree "… where it has none" --fp32 --only few_bits_products --rounds 1
LB_CUDA_FEW_BITS=emulated agree "… and where it is not asked" --fp32 --only few_bits_products --rounds 1 --seed 5
for type in --fp32 --seed\ 3 --deterministic\ --seed\ 4; do
	# shellcheck disable=SC2086 # words
	agree "what is made with the operation that writes it has the same bits (${type%% *})" $type --only fused --rounds 1
done

# --- whole trainings ------------------------------------------------------------------------------
small_training "total_steps = 8"
losses() { sed -n 's/^step \([0-9]*\)\/[0-9]* loss \([0-9.]*\) .*/\1 \2/p' "$T/$1.log"; }
near() { # near FOLDER FOLDER STEPS TOLERANCE: as many steps, losses no further apart (relative)
	losses "$1" >"$T/a"
	losses "$2" >"$T/b"
	awk -v steps="$3" -v most="$4" '
	NR == FNR { loss[$1] = $2; next }
	$1 in loss { both++; d = (loss[$1] - $2) / $2; if (d > most || -d > most) bad = 1 }
	END { exit both != steps || bad }' "$T/a" "$T/b"
}
train none --device cuda
losses none >"$T/before"
for recipe in $("$B/lbworker" recipes | sed -n 's/^\([a-z][^ :]*\):.*/\1/p' | grep -vx none); do
	train "cpu-$recipe" --device cpu --quantize.recipe "$recipe" --checkpoint.enable false
	train "gpu-$recipe" --device cuda --quantize.recipe "$recipe" --checkpoint.enable false
	near "gpu-$recipe" "cpu-$recipe" 8 4e-4 && ! losses "gpu-$recipe" | cmp -s - "$T/before"
	ok $? "a training with $recipe goes as on the CPU"
	losses "gpu-$recipe" >"$T/before"
done
# On Blackwell. Two sequences, so that 32 are summed over in the gradients of weights, too.
for recipe in mxfp8 nvfp4 rowwise; do
	train "cpu-32-$recipe" --device cpu --quantize.recipe "$recipe" --checkpoint.enable false --training.local_batch_size 2
	export LB_EMULATION_CAPABILITY=100 LB_EMULATION_MODES="$T/modes"
	train "blackwell-$recipe" --device cuda --quantize.recipe "$recipe" --checkpoint.enable false --training.local_batch_size 2
	unset LB_EMULATION_CAPABILITY LB_EMULATION_MODES
	# of e2m1 a last bit of a sum may make another code
	near "blackwell-$recipe" "cpu-32-$recipe" 8 1e-3 && grep -qE '^0 ([1-9][0-9]* 0|0 [1-9][0-9]*) 0 0 0' "$T/modes"
	ok $? "a training with $recipe by Blackwell's matrix units goes as on the CPU ($(cat "$T/modes"))"
done
# Other codes in the middle of a training are another program of the device.
for device in cpu cuda; do
	train "rules-$device" --device $device --quantize.recipe nvfp4 --checkpoint.enable false \
		--quantize.rules '["steps=5- recipe=tensorwise", "steps=7- layers=0 products=forward recipe=none"]'
done
near rules-cuda rules-cpu 8 4e-4 && ! near rules-cuda gpu-nvfp4 8 1e-6
ok $? "and one whose recipe changes on its way"

# In bf16, each step one program; killed in the middle it goes on to the bit.
narrow="--device cuda --training.mixed_precision_param bfloat16"
for recipe in tensorwise delayed blockwise rowwise mxfp4; do
	# shellcheck disable=SC2086 # words
	train "whole-$recipe" $narrow --quantize.recipe $recipe
	mkdir -p "$T/again-$recipe/checkpoints"
	cp -r "$T/whole-$recipe/checkpoints/step-00000004" "$T/again-$recipe/checkpoints/"
	# shellcheck disable=SC2086 # words
	train "again-$recipe" $narrow --quantize.recipe $recipe
	near "whole-$recipe" "cpu-$recipe" 8 1e-2 &&
		cmp "$T/whole-$recipe/checkpoints/step-00000008/model.safetensors" \
			"$T/again-$recipe/checkpoints/step-00000008/model.safetensors" >"$T/out"
	ok $? "$recipe in bf16: as on the CPU, and a resumed training ends with the same bits"
	# shellcheck disable=SC2086 # words
	LB_CUDA_FUSED=0 train "apart-$recipe" $narrow --quantize.recipe $recipe
	cmp "$T/whole-$recipe/checkpoints/step-00000008/model.safetensors" \
		"$T/apart-$recipe/checkpoints/step-00000008/model.safetensors" >"$T/out"
	ok $? "… and so does one whose operands are made by passes of their own"
done
# Without a gate, GELU makes its operand behind a product whose own lies in the same place, also
# where that is timed; the second one takes the algorithms that the first one chose.
for type in float32 bfloat16; do
	gelu="--device cuda --model.name gpt2 --quantize.recipe mxfp4 --training.mixed_precision_param $type --training.steps 2"
	# shellcheck disable=SC2086 # words
	train "timed-$type" $gelu
	mkdir "$T/known-$type" && cp -r "$T/timed-$type/cache" "$T/known-$type/"
	# shellcheck disable=SC2086 # words
	LB_CUDA_FUSED=0 train "known-$type" $gelu
	cmp "$T/timed-$type/checkpoints/step-00000002/model.safetensors" \
		"$T/known-$type/checkpoints/step-00000002/model.safetensors" >"$T/out"
	ok $? "a product that is timed with GELU behind it reads its own operands ($type)"
done
# How much is queued, call by call, of one step more.
queued() { LB_EMULATION_CAPTURE=refused LB_EMULATION_COUNTS=$T/counts train "queued-$1" --device cuda --training.steps "$1" \
	--quantize.recipe "$2" --model.name "${3:-llama}" --checkpoint.enable false && cut -d' ' -f2 "$T/counts"; }
for recipe in tensorwise mxfp8 rowwise delayed blockwise\ gpt2; do
	for fused in 0 1; do
		export LB_CUDA_FUSED=$fused
		# shellcheck disable=SC2086 # words
		echo $(($(queued 3 $recipe) - $(queued 2 $recipe)))
	done >"$T/out"
	unset LB_CUDA_FUSED
	[ "$(sed -n 1p "$T/out")" -gt "$(sed -n 2p "$T/out")" ]
	ok $? "a step with $recipe queues less than in passes of their own ($(paste -s -d' ' "$T/out"))"
done
# Of what the library turns out to lack no step makes codes again. (What folders know is of one that
# has it.)
rm -rf "$T"/queued-*
echo $(($(LB_EMULATION_FP8=none queued 3 tensorwise) - $(LB_EMULATION_FP8=none queued 2 tensorwise))) \
	$(($(LB_CUDA_FEW_BITS=emulated queued 3 tensorwise) - $(LB_CUDA_FEW_BITS=emulated queued 2 tensorwise))) >"$T/out"
read -r lacks emulated_calls <"$T/out"
[ "$lacks" = "$emulated_calls" ] && [ "$lacks" -gt 0 ]
ok $? "where the library lacks FP8 a step queues what an emulated one does ($lacks, $emulated_calls)"
# What FP8 makes slower stays as it is, also in the next launch: here all of it does, in all steps.
LB_EMULATION_FP8=slow train slow --device cuda --quantize.recipe tensorwise --quantize.only_faster true
mkdir -p "$T/slow-again/checkpoints" && cp -r "$T/slow/checkpoints/step-00000004" "$T/slow-again/checkpoints/"
train slow-again --device cuda --quantize.recipe tensorwise --quantize.only_faster true
losses slow >"$T/a" && losses none | cmp -s - "$T/a" &&
	cmp "$T/slow/checkpoints/step-00000008/model.safetensors" \
		"$T/slow-again/checkpoints/step-00000008/model.safetensors" >"$T/out"
ok $? "products that FP8 does not make faster stay as they are, where that is asked for"
# What is emulated is never faster.
train no-mode --device cuda --quantize.recipe mxfp8 --quantize.only_faster true --checkpoint.enable false
losses no-mode >"$T/a" && losses none | cmp -s - "$T/a"
ok $? "nor does what no matrix unit multiplies become slower by being emulated, there"
"$B/lbworker" plan "$T/small.toml" --device H100 --training.mixed_precision_param bfloat16 --quantize.recipe nvfp4 >"$T/out" 2>"$T/err" &&
	grep -q '^few bits  *[0-9.]* GiB of the activations' "$T/out"
ok $? "the plan has the memory of codes and scales"
# With two steps more there are four graphs more (two micro-batches), 12 copies, and one of random
# keys for each pass.
counts() { LB_EMULATION_COUNTS=$T/counts train "counted-$1" --device cuda --training.steps "$1" --quantize.recipe delayed \
	--checkpoint.interval 0 && cat "$T/counts"; }
counts 6 >"$T/a" && counts 8 >"$T/b"
seen=$(paste "$T/a" "$T/b" | awk '{ print $5 - $1, $6 - $2, $7 - $3 }')
[ "$seen" = "4 18 0" ]
ok $? "a micro-batch is one graph; beside it keys, and a step of the histories; nothing is allocated ($seen)"
echo "1..$count"
