#!/bin/sh
# SPDX-License-Identifier: MIT
# convert.t - weights out to Hugging Face's layout and in again, to the bit.
# B=build prove --exec sh tests/system/convert.t
. "$(dirname "$0")/trainer.sh"

lbworker() { "$B/lbworker" "$@" >"$T/out" 2>"$T/err"; }
refused() { # refused NAME PATTERN: status 2, one line on stderr that matches, nothing left behind
	[ $status = 2 ] && [ "$(grep -vc ' info lbworker: ' "$T/err")" = 1 ] &&
		grep -q "$2" "$T/err" &&
		! ls -d "$T"/never* >"$T/out" 2>&1
	ok $? "$1"
}

awk 'BEGIN { srand(3); for (i = 0; i < 20000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
	>"$T/text"
lbworker prepare --out "$T/text.tokens" "$T/text"
cat >"$T/small.toml" <<-END
	[lr_scheduler]
	warmup_steps = 5
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 4
	seq_len = 64
	steps = 40
	threads = 1
	[metrics]
	peak_tflops = 1
	log_freq = 1
END
lbworker train "$T/small.toml" --job.dump_folder "$T/run"
ok $? "a small training"
cp "$T/out" "$T/trained.log"
ours=$T/run/checkpoints/step-00000040
echo '{"version":"1.0"}' >"$T/tokenizer.json"

strace -qq -y -o "$T/strace" -e trace=fsync,rename "$B/lbworker" convert "$ours" "$T/synced" --max-shard-size 100KB >"$T/out" 2>"$T/err"
[ "$(sed '/^rename("[^"]*synced.tmp-[^"/]*",/,$d' "$T/strace" | grep -c '<.*/model-0.*safetensors>)')" = \
	"$(find "$T/synced" -name '*.safetensors' | wc -l)" ]
ok $? "all weights are on the disk when the folder gets its name"
tail -n 1 "$T/strace" | grep -q "^fsync([0-9]*<$T>)"
ok $? "and then its name is"

lbworker convert "$ours" "$T/exported"
ok $? "convert writes the layout of Hugging Face"
cmp "$ours/model.safetensors" "$T/exported/model.safetensors" >"$T/err" 2>&1
ok $? "as float32 every bit is the same"
lbworker convert "$ours" "$T/slash/" && cmp "$ours/model.safetensors" "$T/slash/model.safetensors" 2>"$T/err"
ok $? "a folder may be named with a slash behind it"
cp "$T/tokenizer.json" "$T/exported"
lbworker convert "$T/exported" "$T/brain" --dtype bfloat16
ok $? "convert to bfloat16"
cmp "$T/tokenizer.json" "$T/brain/tokenizer.json" >"$T/err" 2>&1
ok $? "the tokenizer comes along"
cp -r "$T/exported" "$T/beside"
side="chat_template.jinja vocab.json merges.txt added_tokens.json tekken.json tokenizer.tiktoken"
for name in $side; do
	echo "$name" >"$T/beside/$name"
done
lbworker convert "$T/beside" "$T/beside-out"
# shellcheck disable=SC2086 # names
same=$(cd "$T/beside-out" && cat $side 2>"$T/err")
# shellcheck disable=SC2086 # names
[ "$same" = "$(printf '%s\n' $side)" ]
ok $? "so do tokenizers of other kinds, and a template of chats"
lbworker convert "$T/brain" "$T/wide" && lbworker convert "$T/wide" "$T/again" --dtype bfloat16 &&
	cmp "$T/brain/model.safetensors" "$T/again/model.safetensors" >"$T/err" 2>&1
ok $? "bfloat16 to float32 and back is the same to the bit"
lbworker convert "$T/exported" "$T/half" --dtype float16 &&
	lbworker convert "$T/half" "$T/wide16" &&
	lbworker convert "$T/wide16" "$T/half2" --dtype float16 &&
	cmp "$T/half/model.safetensors" "$T/half2/model.safetensors" >"$T/err" 2>&1
ok $? "so is float16"
[ ! -s "$T/err" ]
ok $? "where all weights have a place in it"
cp -r "$T/exported" "$T/large"
# its last number is 2^17 then, and that before it Inf
size=$(wc -c <"$T/large/model.safetensors")
printf '\000\000\200\177\000\000\000\110' | dd of="$T/large/model.safetensors" bs=1 seek=$((size - 8)) conv=notrunc 2>"$T/err"
lbworker convert "$T/large" "$T/large-half" --dtype float16
[ "$(grep -c ': 1 number beyond 65504 is Inf in float16$' "$T/err")" = 1 ]
ok $? "one that has none is told"
lbworker convert "$T/large" "$T/large-brain" --dtype bfloat16 && [ ! -s "$T/err" ]
ok $? "and has one in bfloat16"

lbworker train "$T/small.toml" --job.dump_folder "$T/tuned" \
	--checkpoint.initial_load_path \
	"$T/exported" --training.steps 1 --lr_scheduler.warmup_steps 0
first=$(sed -n 's/^step 1\/.* loss \([0-9.]*\) .*/\1/p' "$T/out")
last=$(sed -n 's/^step 40\/.* loss \([0-9.]*\) .*/\1/p' "$T/trained.log")
awk "BEGIN { exit !($first < $last + 0.3) }"
ok $? "checkpoint.initial_load_path goes on from those weights (loss $last, then $first)"

lbworker eval "$T/exported" "$T/text.tokens" --seq-len 64 --samples 20
loss=$(sed -n 's/.* loss \([0-9.]*\), perplexity .*/\1/p' "$T/out")
awk "BEGIN { exit !($loss > $last - 0.4 && $loss < $last + 0.4) }"
ok $? "eval finds the loss of the training's end ($last, $loss)"
# The flavor's scaling of rotary waves is from 8192 positions.
cp -r "$T/exported" "$T/never"
sed -i 's/^{/{"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,\n"original_max_position_embeddings": 4096},/' \
	"$T/never/config.json"
for original in 4096 8192; do
	sed -i "s/^\"original_max_position_embeddings\": [0-9]*/\"original_max_position_embeddings\": $original/" "$T/never/config.json"
	lbworker train "$T/small.toml" --job.dump_folder "$T/from-$original" --model.flavor debugmodel --model.rope_scaling_factor 8 \
		--checkpoint.initial_load_path "$T/never" --training.steps 1 --lr_scheduler.warmup_steps 0
	[ $? = $((original == 4096 ? 2 : 0)) ]
	ok $? "weights scaled from $original positions begin a training scaled from 8192 only where that is the same"
done
rm -r "$T/never"
rm "$T/exported/tokenizer.json"	# it came along, but no text can be read with it
lbworker generate "$T/exported" --prompt abc --tokens 10 && cp "$T/out" "$T/said" &&
	[ "$(wc -c <"$T/said")" = 14 ] && lbworker generate "$ours" --prompt abc --tokens 10 &&
	cmp "$T/out" "$T/said" >"$T/err" 2>&1
ok $? "generate says the same of the checkpoint and of its export"
for seed in 1 2; do	# 80 tokens: beyond the 64 that it sees at once
	lbworker generate "$ours" --prompt abc --tokens 80 --seq-len 64 --seed $seed --cache off &&
		cp "$T/out" "$T/said" &&
		lbworker generate "$ours" --prompt abc --tokens 80 --seq-len 64 --seed $seed &&
		cmp "$T/out" "$T/said" >"$T/err" 2>&1
	ok $? "with and without a cache of keys and values it says the same (seed $seed)"
done
# A model of 300 tokens: numbers in; out numbers, or text by a tokenizer file of llm.c.
python3 - "$T/exported" "$T/wider" 2>"$T/err" <<-'END'
	import glob, json, os, struct, sys
	old, new = sys.argv[1:]
	raw = open(old + "/model.safetensors", "rb").read()
	size = struct.unpack("<Q", raw[:8])[0]
	header, out, data = json.loads(raw[8:8 + size]), {}, b""
	for name, t in header.items():
	    if name == "__metadata__":
	        continue
	    rows = raw[8 + size:][t["data_offsets"][0]:t["data_offsets"][1]]
	    if t["shape"][0] == 256 and ("embed" in name or "lm_head" in name):
	        rows, t["shape"][0] = rows + rows[:44 * 4 * t["shape"][1]], 300
	    out[name] = dict(t, data_offsets=[len(data), len(data) + len(rows)])
	    data += rows
	text = json.dumps(out).encode()
	text += b" " * (-len(text) % 8)
	os.mkdir(new)
	open(new + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
	config = json.load(open(old + "/config.json"))
	json.dump(dict(config, vocab_size=300), open(new + "/config.json", "w"))
END
{ printf '\310\327\064\001\002\000\000\000\003\000\000\000' && head -c 1012 /dev/zero &&
	printf '\002ab\001c\003def'; } >"$T/tokenizer.bin"
lbworker generate "$T/wider" --prompt-tokens "0, 2,299" --tokens 1 \
	--temperature 0 --seq-len 8
grep -qE '^0 2 299 [0-9]+ $' "$T/out"
ok $? "generate from token numbers"
lbworker generate "$T/wider" --prompt-tokens "0, 2,1,299" --tokens 1 \
	--seq-len 8 --tokenizer "$T/tokenizer.bin"
grep -q '^abdefc<299>' "$T/out"
ok $? "as text by a tokenizer file"
for bad in "--prompt abc" "--prompt-tokens 1,300" "--prompt-tokens -1" "--prompt-tokens ," \
	"--prompt-tokens 1 --tokenizer $T/text"; do
	# shellcheck disable=SC2086 # an option and its value
	lbworker generate "$T/wider" --seq-len 8 $bad
	status=$?
	refused "generate $bad" "token"
done
lbworker generate "$ours" --prompt abc --top-p 90
status=$?
refused "generate --top-p 90" 'must be a share above 0, and at most 1'
cp -r "$T/exported" "$T/diverged"
head -c -4 "$T/exported/model.safetensors" >"$T/diverged/model.safetensors" # the last weight becomes NaN
printf '\000\000\300\177' >>"$T/diverged/model.safetensors"
lbworker generate "$T/diverged" --prompt abc --tokens 3
[ $? = 1 ] && grep -q "logits that are no finite numbers" "$T/err"
ok $? "a model that has diverged says nothing"
echo '{"query":"a","choices":["b","c"],"gold":0}' >"$T/question.jsonl"
lbworker eval "$T/diverged" --choices "$T/question.jsonl"
[ $? = 1 ] && grep -q "logits that are no finite numbers" "$T/err"
ok $? "nor is its first answer right each time"
for family in neox gpt2 mistral qwen3 olmo2 gemma2 gemma3 qwen3_moe dots1; do
	lbworker train "$T/small.toml" --job.dump_folder "$T/$family" --model.name $family \
		--training.steps 2 --lr_scheduler.warmup_steps 0 &&
		lbworker convert "$T/$family/checkpoints/step-00000002" "$T/$family.hf" &&
		cmp "$T/$family/checkpoints/step-00000002/model.safetensors" \
			"$T/$family.hf/model.safetensors" >"$T/err" 2>&1
	ok $? "$family: out and in to the bit"
	lbworker convert "$T/$family.hf" "$T/$family.meta" --to meta
	status=$?
	refused "$family as Meta's files" "not for this $family"
done
lbworker train "$T/small.toml" --job.dump_folder "$T/seen" --training.steps 4 \
	--lr_scheduler.warmup_steps 0 --metrics.enable_tensorboard true --validation.enable true \
	--validation.dataset_path "$T/text.tokens" --validation.freq 2 --validation.steps 2 \
	--profiling.enable_profiling true --profiling.profile_freq 4
[ "$(grep -c '^validation at step [24]: loss' "$T/out")" = 2 ] &&
	[ -n "$(find "$T/seen/tb" -name 'events.out.tfevents.*' -size +0)" ] &&
	grep -q '"name":"gemm"' "$T"/seen/profile_traces/iteration_4/rank0.*.pt.trace.json
ok $? "validation, TensorBoard events and a trace of the chosen step"
head -c 400 "$T/text" >"$T/part" && lbworker prepare --out "$T/part.tokens" "$T/part"
for ranks in 1 2; do
	lbworker train "$T/small.toml" --job.dump_folder "$T/all-$ranks" --training.steps 1 --ranks $ranks \
		--validation.enable true --validation.dataset_path "$T/part.tokens"
	said=$(sed -n 's/^validation at step 1: loss \(.*\),.*/\1/p' "$T/out")
	lbworker eval "$T/all-$ranks" "$T/part.tokens" --seq-len 64
	[ -n "$said" ] && [ "$said" = "$(awk '/^384 tokens in 6 samples/ { printf "%.4f", $7 }' "$T/out")" ]
	ok $? "$ranks ranks: validation on all data counts each sample once, where they are no whole batches"
done

# --- several files -------------------------------------------------------------------------------
lbworker convert "$ours" "$T/pieces" --max-shard-size 100KB
[ "$(find "$T/pieces" -name 'model-0000[1-9]-of-0000[1-9].safetensors' | wc -l)" -gt 3 ] &&
	[ ! -e "$T/pieces/model.safetensors" ] && [ -s "$T/pieces/model.safetensors.index.json" ] &&
	[ -z "$(find "$T/pieces" -name 'model-*' -size +110k)" ]
ok $? "--max-shard-size: several files and an index"
lbworker convert "$T/pieces" "$T/whole" &&
	cmp "$ours/model.safetensors" "$T/whole/model.safetensors" >"$T/err" 2>&1
ok $? "read again they are the same to the bit"
rm "$T/pieces/model-00002-of-"*
lbworker convert "$T/pieces" "$T/never"
status=$?
refused "one of several files is missing" "model-00002-of"

# --- u-muP ---------------------------------------------------------------------------------------
umup() { lbworker train "$T/small.toml" --job.dump_folder "$T/umup" --u_mup.enable true \
	--optimizer.lr 0.5 --optimizer.weight_decay 1e-4 "$@"; }
umup && last=$(sed -n 's/^step 40\/.* loss \([0-9.]*\) .*/\1/p' "$T/out") &&
	awk "BEGIN { exit !($last < 3.2) }"
ok $? "a training with u-muP (loss $last)"
lbworker convert "$T/umup/checkpoints/step-00000040" "$T/plain"
grep -q '"model_type": "llama"' "$T/plain/config.json" && ! grep -q u_mup "$T/plain/config.json" &&
	! grep -q '"llama"' "$T/umup/checkpoints/step-00000040/config.json"
ok $? "convert makes a plain Llama of it"
lbworker eval "$T/umup/checkpoints/step-00000040" "$T/text.tokens" --seq-len 64 --samples 20
theirs=$(sed -n 's/.* loss \([0-9.]*\), .*/\1/p' "$T/out")
lbworker eval "$T/plain" "$T/text.tokens" --seq-len 64 --samples 20
plain=$(sed -n 's/.* loss \([0-9.]*\), .*/\1/p' "$T/out")
awk "BEGIN { d = $theirs - $plain; exit !(d < 1e-5 && d > -1e-5 && $theirs < $last + 0.4) }"
ok $? "which has the same loss ($theirs, $plain)"
umup --u_mup.attention 2 --training.steps 41
status=$?
refused "going on with another multiplier" "u_mup is not that of the training"
umup --optimizer.weight_decay 0.1
status=$?
refused "the usual decay with u-muP" "optimizer.weight_decay: is independent"

for family in llama neox gpt2; do
	lbworker train "$T/small.toml" --job.dump_folder "$T/traced" --model.name $family \
		--training.steps 3 --lr_scheduler.warmup_steps 0 --checkpoint.interval 2 \
		--profiling.enable_profiling true --profiling.profile_freq 3 \
		--profiling.enable_memory_snapshot true
	# A span for each operation of a step; every class of memory, after set-up, 3 steps, 2
	# saves.
	python3 - "$T/traced" $family >"$T/out" 2>"$T/err" <<-'END'
		import glob, json, sys
		folder, family = sys.argv[1:]
		name = sorted(glob.glob(folder + "/profile_traces/iteration_3/rank0.*.pt.trace.json"))[-1]
		spans = json.load(open(name))["traceEvents"]
		have = {s["name"] for s in spans if s["ph"] == "X"}
		norm = "rmsnorm" if family == "llama" else "layernorm"
		want = {"gemm", "ProfilerStep#3", "adamw", "cross_entropy", "attention_backward",
		        norm + "_forward", norm + "_backward"}
		want |= {"swiglu_backward"} if family == "llama" else {"gemm_gelu", "gemm_gelu_backward", "gemm_bias_backward"}
		want |= {"positions_backward"} if family == "gpt2" else {"rope"}
		assert want <= have, want - have
		assert all(s["dur"] >= 0 and s["ts"] > 0 for s in spans if s["ph"] == "X")
		events = json.load(open(folder + "/memory_snapshot/iteration_1/rank0_memory.json"))
		counters = [e for e in events if e["ph"] == "C"]
		assert len(counters) == 1 + 3 + 2 * 2, len(counters)
		assert [e["ts"] for e in counters] == sorted(e["ts"] for e in counters)
		first, last = counters[0]["args"], counters[-1]["args"]
		assert first["weights"] == first["gradients"] == first["moments"] / 2 > 0.1
		assert first["checkpoint copy"] == 0 and last["activations"] > 0 and last["files"] > 0
		steps = [e["name"] for e in events if e["ph"] == "i" and e["name"].startswith("step")]
		assert steps == ["step 1", "step 2", "step 3"], steps
	END
	ok $? "$family: a trace of each operation, and a timeline of memory"
	rm -rf "$T/traced"
done

lbworker convert "$ours" "$T/exported"
status=$?
refused "a folder that exists is not written over" "exists already"
lbworker convert "$T/nowhere" "$T/never"
status=$?
refused "no such model" "nowhere"
lbworker convert "$(dirname "$ours")" "$T/newest" && cmp "$T/newest/model.safetensors" "$T/exported/model.safetensors"
ok $? "the folder of all checkpoints means the newest"
cp -r "$(dirname "$ours")" "$T/torn" && cp -r "$ours" "$T/torn/step-00000099" &&
	truncate -s 1000 "$T/torn/step-00000099/model.safetensors"
lbworker generate "$T/torn" --prompt abc --tokens 1 && grep -q "is passed over" "$T/err"
ok $? "the newest valid one"
mkdir "$T/bare"
lbworker convert "$T/bare" "$T/never"
status=$?
refused "a folder without any" "bare: holds no model (config.json) and no checkpoint yet"
timeout 60 "$B/lbworker" eval "$T/exported" "$T/text.tokens" --seq-len 1000000 >"$T/out" 2>"$T/err"
status=$?
refused "eval of sequences that the data have not" "not one sample of 1000000"
lbworker eval "$T/exported" "$T/text.tokens" --tokens 5
status=$?
refused "eval with an option of generate" "^lbworker: --tokens: eval has no such option"
lbworker generate "$T/exported" "$T/text.tokens" --prompt x
status=$?
refused "generate with data" "one argument too many"
cp -r "$T/exported" "$T/cut"
head -c 9000 "$T/exported/model.safetensors" >"$T/cut/model.safetensors"
lbworker convert "$T/cut" "$T/never"
status=$?
refused "weights cut short" "model.safetensors"
cp -r "$T/exported" "$T/taller"
sed 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' \
	"$T/exported/config.json" >"$T/taller/config.json"
lbworker convert "$T/taller" "$T/never"
status=$?
refused "a config that wants more than there is" "no tensor model.layers.2"
lbworker train "$T/small.toml" --job.dump_folder "$T/never" --model.flavor bytes-4M \
	--checkpoint.initial_load_path "$T/exported"
status=$?
rm -rf "$T/never"
refused "weights of another shape" "initial_load_path"

mkdir "$T/dropout"
echo '{"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 256}' \
	>"$T/dropout/config.json"
printf '[training]\nsteps = 3\nseq_len = 32\n[checkpoint]\ninitial_load_path = "%s"\n' "$T/dropout" >"$T/dropout.toml"
lbworker plan "$T/dropout.toml" && grep -q "dropout.toml:5: checkpoint.initial_load_path: .*dropout" "$T/err"
ok $? "a plan needs no dataset, and names the dropout that Hugging Face has and we have not"
echo "1..$count"
