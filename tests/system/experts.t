#!/bin/sh
# SPDX-License-Identifier: MIT
# experts.t - models with experts, trained: the same bits on any number of ranks and threads and
# after a stop, even loads, counts, and what is refused.
# B=build prove --exec sh tests/system/experts.t
. "$(dirname "$0")/trainer.sh"

lbworker() { "$B/lbworker" "$@" >"$T/out" 2>"$T/err"; }

awk 'BEGIN { srand(5); for (i = 0; i < 20000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
	>"$T/text"
lbworker prepare --out "$T/text.tokens" "$T/text"
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	dim = 16
	n_layers = 2
	n_heads = 2
	n_kv_heads = 2
	ffn_dim = 24
	moe_inter_dim = 8
	[lr_scheduler]
	warmup_steps = 2
	total_steps = 6
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 1
	global_batch_size = 3
	seq_len = 16
	steps = 6
	threads = 1
	[parallelism]
	reduction_width = 4
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

train() { # train FOLDER OPTION…
	folder=$1
	shift
	lbworker train "$T/small.toml" --job.dump_folder "$T/$folder" --model.name "$family" "$@"
}

same() { # same FOLDER FOLDER: weights, moments, and where the tokens of the last step went
	for file in checkpoints/step-00000006/model.safetensors \
		checkpoints/step-00000006/optimizer.safetensors; do
		cmp "$T/$1/$file" "$T/$2/$file" >>"$T/err" 2>&1 || return 1
	done
	[ "$(tail -n 1 "$T/$1/experts.jsonl")" = "$(tail -n 1 "$T/$2/experts.jsonl")" ]
}

# The busiest expert of the last step, in multiples of the mean of its layer.
busiest() { sed -n 's/.*experts .* to \([0-9.]*\) of the mean.*/\1/p' "$T/out" | tail -n 1; }

for family in qwen3_moe dots1; do
	train "$family"
	ok $? "$family: a training"
	# 3 sequences of 16 tokens, 2 experts each
	sed -n 's/.*"tokens":\[\[\([0-9,]*\)\].*/\1/p' "$T/$family/experts.jsonl" |
		awk -F, '{ for (i = sum = 0; i++ < NF;) sum += $i; bad += sum != 96 || NF != 8 }
			END { exit !(NR == 6 && bad == 0) }'
	ok $? "$family: experts.jsonl has every choice of a layer, step by step"
	# the third pass of each step is one rank's alone
	train "$family.2" --parallelism.local_ranks 2 --parallelism.zero_stage 3 --training.threads 0 &&
		same "$family" "$family.2"
	ok $? "$family: the same bits on two ranks that share it"
	train "$family.part" --training.steps 3 && printf '{"step":4' >>"$T/$family.part/experts.jsonl" &&
		train "$family.part" && ! grep '.{' "$T/$family.part/experts.jsonl" &&
		grep -q 'step 6/6' "$T/out" && ! grep -q 'step 3/6' "$T/out" && same "$family" "$family.part"
	ok $? "$family: the same bits after a stop"
	train "$family.again" --activation_checkpoint.mode full && same "$family" "$family.again"
	ok $? "$family: the same bits with activations computed again"
	lbworker generate "$T/$family/checkpoints/step-00000006" --prompt-tokens 97,98,99 --tokens 9 \
		--temperature 0 --seq-len 16
	ok $? "$family: it goes on from a prompt"

	key=router_aux_loss_coef much=1
	[ $family = qwen3_moe ] || key=load_balance_coeff much=0.003
	longer="--training.steps 40 --lr_scheduler.total_steps 40 --optimizer.lr 1e-3 --checkpoint.enable false"
	# shellcheck disable=SC2086 # words
	train uneven $longer --training.$key 0
	without=$(busiest)
	# shellcheck disable=SC2086 # words
	train even $longer --training.$key $much
	with=$(busiest)
	awk "BEGIN { exit !($with < 0.8 * $without && $with >= 1) }"
	ok $? "$family: $key evens out ($without without it, $with with it)"
done

family=dots1
for bad in "parallelism.pipeline_parallel_degree 2" "parallelism.context_parallel_degree 2" \
	"parallelism.tensor_parallel_degree 2" "quantize.recipe rowwise" \
	"training.mixed_precision_param bfloat16" "training.dtype bfloat16" "lora.rank 4" \
	"parallelism.expert_parallel_degree 2" "model.top_k 9"; do
	# shellcheck disable=SC2086 # a key and its value
	train never --device.name cpu --$bad
	status=$?
	[ $status = 2 ] && [ ! -e "$T/never" ] && [ "$(grep -c "experts\|bf16\|${bad% *}" "$T/err")" = 1 ]
	ok $? "$family: refused in a line: $bad"
done

printf '[model]\nname = "qwen3_moe"\nflavor = "30B-A3B"\n' >"$T/large.toml"
lbworker plan "$T/large.toml"
grep -q ' 30532122624 parameters, 3353032704 of them active in a token, ' "$T/out" &&
	grep -q '^experts  *8 of 128, 768 wide, ' "$T/out"
ok $? "plan tells all parameters and those that a token meets"
echo "1..$count"
