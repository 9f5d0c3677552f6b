#!/bin/sh
# SPDX-License-Identifier: MIT
# Training beside plain weights: a mean of them, adapters of low rank, the noise of gradients. What
# a kill leaves goes on to the same bits; adapters are files of peft. Beside PyTorch and peft
# themselves: make check-torch.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { srand(5); for (i = 0; i < 9000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
lbworker prepare --out "$T/text.tokens" "$T/text" >/dev/null
cat >"$T/run.toml" <<-END
	[model]
	dim = 32
	n_layers = 2
	n_heads = 2
	vocab_size = 256
	[lr_scheduler]
	warmup_steps = 1
	total_steps = 6
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 2
	global_batch_size = 4
	seq_len = 16
	threads = 1
	[checkpoint]
	interval = 1
	keep_latest_k = 0
	[metrics]
	log_freq = 1
	peak_tflops = 1
END
train() {	# train FOLDER STEPS OPTION...
	tap_folder=$T/$1 tap_steps=$2
	shift 2
	LB_CHECKPOINT_DIR=$tap_folder lbworker train "$T/run.toml" --training.steps "$tap_steps" "$@"
}
last=step-00000006

# --- the mean of weights, and the noise -----------------------------------------------------------
exits 0 "a mean of the weights is kept, the noise of gradients told" \
	train whole 6 --optimizer.ema_decay 0.9 --metrics.noise_scale
like "$out" "^step 6/6 .* noise scale [0-9.e+]+ tokens" "in tokens"
exits 0 "ended after three steps" train parts 3 --optimizer.ema_decay 0.9 --metrics.noise_scale
exits 0 "it goes on" train parts 6 --optimizer.ema_decay 0.9 --metrics.noise_scale
for file in model model_ema optimizer; do
	ok "$file: the same bits" cmp "$T/whole/$last/$file.safetensors" "$T/parts/$last/$file.safetensors"
done
is "$(grep noise_ "$T/parts/$last/train_state.json")" "$(grep noise_ "$T/whole/$last/train_state.json")" "and the same noise"
exits 0 "without them" train plain 6
ok "weights are the same" cmp "$T/whole/$last/model.safetensors" "$T/plain/$last/model.safetensors"
exits 0 "the mean is a model" lbworker convert "$T/whole" "$T/mean" --weights ema
ok "its bits are there" cmp "$T/mean/model.safetensors" "$T/whole/$last/model_ema.safetensors"
cp -r "$T/whole/$last" "$T/other" && cp "$T/other/model.safetensors" "$T/other/model_ema.safetensors"
exits 1 "another mean is a difference" lbworker ckpt diff "$T/whole/$last" "$T/other"
like "$out" "^model.embed_tokens.weight: [0-9]* of [0-9]* differ" "it is said where"
rm "$T/other/model_ema.safetensors"
exits 1 "and so is none" lbworker ckpt diff "$T/whole/$last" "$T/other"
is "$out" "model_ema.safetensors: one of them has none" "it is said"
perplexity() { lbworker eval "$@" --text "$T/text" --seq-len 16 2>/dev/null; }
is "$(perplexity "$T/mean")" "$(perplexity "$T/whole" --weights ema)" "eval asks it, too"
ok "which are other weights" test "$(perplexity "$T/whole")" != "$(perplexity "$T/mean")"
exits 0 "and generate" lbworker generate "$T/whole" --weights ema --prompt abc --tokens 3
exits 2 "a training without a mean has none" lbworker eval "$T/plain" --text "$T/text" --weights ema
like "$err" "plain/$last: holds no model_ema.safetensors$" "it is said"
exits 2 "one micro-batch tells no noise" train never 6 --metrics.noise_scale --training.local_batch_size 4
like "$err" "metrics.noise_scale: needs several micro-batches a step" "it is said"

# --- adapters -------------------------------------------------------------------------------------
lora() { train "$@" --init-from "$T/plain/$last" --lora.rank 2 --lora.target_modules '["q_proj", "down_proj"]' --optimizer.lr 0.01; }
exits 0 "adapters are trained" lora adapted 6
like "$out" "^adapters of rank 2 for 4 matrices: 1408 parameters are trained$" "and nothing else"
exits 0 "their gradients have a noise, too" lora noisy 6 --metrics.noise_scale
like "$out" "^step 6/6 .* noise scale [0-9.e+]+ tokens" "which is told"
exits 0 "ended after three steps" lora again 3
exits 0 "they go on" lora again 6
ok "to the same bits" diff -r -x manifest.json "$T/adapted/$last" "$T/again/$last"
exits 0 "an adapter is merged" lbworker convert "$T/plain" "$T/merged" --adapter "$T/adapted"
is "$(perplexity "$T/merged")" "$(perplexity "$T/adapted")" "into the model of its checkpoint"
exits 2 "not into one that has it already" lbworker convert "$T/adapted" "$T/never" --adapter "$T/adapted"
like "$err" "^lbworker: --adapter: what is trained in .*adapted/$last has it in its weights already" "it is said"
exits 2 "by another name" lbworker convert "$T/adapted" "$T/never" --adapter "$T/adapted/$last/"
cp -r "$T/adapted/$last" "$T/adapted/older"
exits 2 "nor that of another step of its training" lbworker convert "$T/adapted/$last" "$T/never" --adapter "$T/adapted/older"
like "$err" "adapted/$last has it in its weights already" "it is said"
rm -r "$T/adapted/older"
mkdir "$T/base" && cp "$T/plain/$last"/*.json "$T/plain/$last"/model.safetensors "$T/base"
python3 - "$T/base/model.safetensors" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-3, 2)
    f.write(b"\1")
PY
exits 2 "on another base they do not go on" train again 7 --init-from "$T/base" --lora.rank 2 \
	--lora.target_modules '["q_proj", "down_proj"]' --optimizer.lr 0.01
like "$err" "is not what its adapter makes of the model in checkpoint.initial_load_path" "it is said"
exits 2 "nor with another alpha" lora again 7 --lora.alpha 8
like "$err" "makes of the model in checkpoint.initial_load_path: that model, lora.alpha or lora.target_modules " "it is said"
exits 2 "nor without adapters" train again 7 --init-from "$T/plain/$last"
like "$err" "again/$last: was trained with lora.rank, the config has none: begin a new training with --init-from" "it is said"
exits 2 "nor all weights with them" train plain 7 --init-from "$T/adapted/$last" --lora.rank 2
like "$err" "plain/$last: was trained without lora.rank, the config has it: begin a new training with --init-from" "it is said"

refused() {	# refused ERE OPTION...
	tap_ere=$1
	shift
	exits 2 "refused: $*" train never 6 "$@"
	like "$err" "^lbworker: .*$tap_ere" "it is said"
}
refused "lora.rank: needs a model to adapt" --lora.rank 2
refused "lora.target_modules: no matrix of this llama is called \"query\"" --init-from "$T/plain" --lora.rank 2 \
	--lora.target_modules '["query"]'
refused "optimizer.ema_decay: goes without lora.rank" --init-from "$T/plain" --lora.rank 2 --optimizer.ema_decay 0.9
refused "optimizer.name: goes without lora.rank" --init-from "$T/plain" --lora.rank 2 --optimizer.name Muon
refused "lora.rank: must be 0 with several ranks" --init-from "$T/plain" --lora.rank 2 --ranks 2
refused "parallelism.reduction_width: must be 0 or 1 with lora.rank" --init-from "$T/plain" --lora.rank 2 \
	--parallelism.reduction_width 2
refused "metrics.noise_scale: goes without parallelism.reduction_width" --metrics.noise_scale --parallelism.reduction_width 2

# an adapter that is more than that, or less
bad() {	# bad ERE SED
	rm -rf "$T/bad" && cp -r "$T/adapted/$last" "$T/bad"
	sed -i "$2" "$T/bad/adapter_config.json"
	exits 2 "an adapter: $2" lbworker convert "$T/plain" "$T/never" --adapter "$T/bad"
	like "$err" "^lbworker: .*$1" "it is said"
}
bad "adapter_config.json: use_dora is not supported" 's/"bias"/"use_dora": true, "bias"/'
bad "adapter_config.json: bias is not supported" 's/"none"/"all"/'
bad "adapter_config.json: r and lora_alpha must be above 0" 's/"r": 2/"r": 0/'
bad "0 of its 8 tensors are adapters of rank 4 of matrices of this model" 's/"r": 2/"r": 4/'
bad 'adapter_config.json: init_lora_weights = "pissa_niter_4" changes the model that it adapts: save it as a plain one' \
	's/"bias"/"init_lora_weights": "pissa_niter_4", "bias"/'
bad "adapter_config.json: peft_type must be LORA" 's/LORA/IA3/'
head -c 100 "$T/adapted/$last/adapter_model.safetensors" >"$T/bad/adapter_model.safetensors"
cp "$T/adapted/$last/adapter_config.json" "$T/bad"
exits 2 "a torn one" lbworker convert "$T/plain" "$T/never" --adapter "$T/bad"
cp "$T/plain/$last/model.safetensors" "$T/bad/adapter_model.safetensors"
exits 2 "no adapter at all" lbworker convert "$T/plain" "$T/never" --adapter "$T/bad"
like "$err" "0 of its [0-9]+ tensors are adapters of rank 2 of matrices of this model" "it is said"
ok "nothing is left of them" test ! -e "$T/never"
done_testing
