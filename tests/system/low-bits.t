#!/bin/sh
# SPDX-License-Identifier: MIT
# low-bits.t - recipes of few bits as a person uses them: docs/LOW-BITS.md as it stands; a training
# that is interrupted goes on to the bit in every recipe; mistakes.  B=build prove --exec sh
# tests/system/low-bits.t
. "$(dirname "$0")/trainer.sh"

top=$(cd "$(dirname "$0")/../.." && pwd -P)
cd "$T" || exit 1
PATH=$B:$PATH
export PATH

# --- the document --------------------------------------------------------------------------------
cp "$top/README.md" .
mkdir docs && cp "$top"/docs/*.md docs
# Its files by name, then its commands in order.
awk -v want=toml '/^```/ { inside = $0 == "```" want && !inside ? 1 : 0; if (inside) n++; next }
	inside { print > ("block-" n) }' docs/LOW-BITS.md
mv block-1 small.toml && mv block-2 mine.toml
awk '/^```/ { inside = $0 == "```sh" ? 1 : 0; next } inside' docs/LOW-BITS.md >commands
sh -ex commands >out.log 2>err.log
ok $? "every command of docs/LOW-BITS.md runs"
tail -n 3 err.log | sed 's/^/# /'
echo 'peak_tflops = 1' >>small.toml	# which each training would measure
awk -F'"binades":\\[' '{ split($2, b, /[],]/); sum = 0; for (i = 2; i in b; i++) sum += b[i]; match($0, /"count":[0-9]+/)
	count = substr($0, RSTART + 8, RLENGTH - 8); if (sum > count || sum < 0.9 * count) bad++ } END { exit bad || NR == 0 }' out/precision.jsonl
ok $? "and its histograms hold its elements, but for zeros"
lbworker train small.toml --job.dump_folder charts --quantize.recipe nvfp4 --metrics.enable_tensorboard true >out.log 2>err.log &&
	strings charts/tb/events* 2>/dev/null | grep -q 'precision/weight.g/log2/layers.0.down'
ok $? "TensorBoard gets them, too"
[ "$(grep -c '<tr><td>' nvfp4.html)" = 24 ] && ! grep -q 'http\|src=' nvfp4.html && grep -q '<b class="u">underflows' nvfp4.html
ok $? "the page has a row for each operand, needs nothing else, and says where NVFP4 underflows"
lbworker precision out -o page.html | grep -q '^48 operands: 0 saturate, 0 underflow' &&
	lbworker train small.toml --job.dump_folder floor --quantize.recipe mxfp8-floor >out.log 2>err.log &&
	lbworker precision floor -o page.html | grep -q '^48 operands: 48 saturate'
ok $? "MXFP8 with scales up never saturates, with the specification's it does everywhere"
lbworker precision . 2>err.log
[ $? = 1 ] && grep -q 'precision.jsonl: No such file' err.log
ok $? "a folder without statistics is named"
head -c -40 out/precision.jsonl | cat - out-nvfp4/precision.jsonl >half.jsonl # a kill, and the next launch
mkdir half && mv half.jsonl half/precision.jsonl
lbworker precision half -o page.html 2>err.log | grep -q '^[0-9]* operands' && grep -q 'no line of JSON: 1$' err.log
ok $? "half a line, as a kill leaves it, is left out, and said"
[ "$(grep -c '"step":20,.*"slot":"forward.x".*"sqnr_db"' out/precision.jsonl)" = 8 ]
ok $? "precision.jsonl has each operand of each layer"
grep -q '"layer":0' out-nvfp4/precision.jsonl && ! grep -q '"layer":1' out-nvfp4/precision.jsonl
ok $? "a layer that is left out leaves no line"
grep -v -e '^.quantize.$' -e '^recipe = ' small.toml | cat - block-3 >both.toml
lbworker train both.toml --check >check.log 2>err.log && grep -q 'layers=0 modules=down' check.log
ok $? "and its rules are taken"

# --- to the bit ----------------------------------------------------------------------------------
train() { # train FOLDER STEPS RECIPE THREADS [OPTION…]
	run_folder=$1 run_steps=$2 run_recipe=$3 run_threads=$4
	shift 4
	exec lbworker train small.toml --job.dump_folder "$run_folder" --training.steps "$run_steps" \
		--quantize.recipe "$run_recipe" --lr_scheduler.total_steps 8 --checkpoint.interval 4 \
		--training.threads "$run_threads" "$@"
}
run() { (train "$@") >"$1.log" 2>&1; }
last_is_equal() { # last_is_equal A B
	for file in model optimizer; do
		cmp "$1/checkpoints/step-00000008/$file.safetensors" "$2/checkpoints/step-00000008/$file.safetensors" ||
			return 1
	done
}
for recipe in $(lbworker recipes | sed -n 's/^\([a-z][^ :]*\):.*/\1/p'); do
	run whole 8 "$recipe" 1 && run parts 4 "$recipe" 2 && run parts 8 "$recipe" 2 &&
		grep -q 'step 5/' parts.log && ! grep -q 'step 4/' parts.log && last_is_equal whole parts
	ok $? "$recipe goes on to the bit, on another number of threads"
	[ "$recipe" = none ] || ! cmp -s whole/checkpoints/step-00000008/model.safetensors none.weights
	ok $? "$recipe is not the recipe before it"
	cp whole/checkpoints/step-00000008/model.safetensors none.weights
	rm -rf whole parts
done

# Beside recipes: bf16 everywhere, weights without a copy of more bits, moments of 8 bits, Muon. The
# second training is killed when it has told step 5, and its checkpoint of step 4 is the newest:
# that of step 8 waits for it.
: >seen
while read -r options; do
	rm -rf whole parts
	mkfifo pipe
	# shellcheck disable=SC2086 # words
	run whole 8 none 1 $options && {
		LB_FAILPOINT=manifest.before:delay:600s@2 train parts 8 none 2 $options --metrics.log_freq 1 \
			--checkpoint.async_mode disabled >pipe 2>&1 &
		worker=$!
		while read -r line; do
			case $line in "step 5/"*) kill -KILL $worker && break ;; esac
		done <pipe
		wait $worker
		worker=
		[ -d parts/checkpoints/step-00000004 ] && ! [ -d parts/checkpoints/step-00000008 ] &&
			run parts 8 none 2 $options && grep -q 'at step 4$' parts.log && last_is_equal whole parts
	}
	ok $? "$options: killed, and on to the bit, on another number of threads"
	rm -f pipe
	cksum <whole/checkpoints/step-00000008/model.safetensors >>seen
done <<-END
	--training.mixed_precision_param bfloat16
	--training.dtype bfloat16
	--training.dtype bfloat16 --optimizer.bf16_stochastic_round true
	--training.dtype bfloat16 --optimizer.kahan_sum true --optimizer.moments 8bit
	--optimizer.moments bfloat16
	--optimizer.name AdamW8bit
	--optimizer.name Muon
	--optimizer.name Muon --optimizer.nesterov false --optimizer.adjust_lr_fn original
END
[ "$(sort -u seen | wc -l)" = 8 ]
ok $? "all of them train something else"
run whole 9 none 1 --checkpoint.interval 9 # the last one was Muon's
[ $? = 2 ] && grep -q 'was trained with optimizer.name = "Muon", whose moments are of no use to AdamW' whole.log
ok $? "AdamW does not go on from Muon's momentum"
lbworker convert whole/checkpoints/step-00000008 theirs --to dcp --moments on 2>err.log
[ $? = 2 ] && grep -q "they are Muon's, and must be AdamW's" err.log
ok $? "nor does it go to others as AdamW's moments"
run whole 4 none 1 --training.dtype bfloat16 --checkpoint.folder plain &&
	run whole 8 none 1 --training.dtype bfloat16 --checkpoint.folder plain --optimizer.kahan_sum true &&
	grep -q 'at step 4$' whole.log
ok $? "what rounding loses can be kept from any step on"
rm -rf whole parts
moments() { lbworker plan small.toml --model.flavor 124M "$@" | sed -n 's/^memory .* moments \([0-9.]*\),.*/\1/p'; }
[ "$(moments)" = 0.92 ] && [ "$(moments --optimizer.name Muon)" = 0.60 ]
ok $? "plan: Muon's matrices have one moment, not two"
while IFS='|' read -r options said; do
	# shellcheck disable=SC2086 # words
	lbworker train small.toml $options 2>err.log
	[ $? = 2 ] && grep -q "$said" err.log
	ok $? "$options is refused: $said"
done <<-END
	--optimizer.kahan_sum true|optimizer.kahan_sum: needs training.dtype = "bfloat16"
	--training.dtype bfloat16 --optimizer.kahan_sum true --optimizer.bf16_stochastic_round true|goes without
	--optimizer.name Muon --optimizer.moments 8bit|optimizer.name: Muon goes without
	--training.dtype bfloat16 --device.name cuda|training.dtype: needs device.name = "cpu"
	--optimizer.name AdamW8bit --model.vocab_size 257|needs matrices of multiples of 256 elements
END

# --- a saved model -------------------------------------------------------------------------------
lbworker inspect out --recipe mxfp8 >inspect.log 2>err.log
status=$?
[ $status = 0 ] && [ "$(grep -c 'forward.w' inspect.log)" = "$(grep -c 'input.w' inspect.log)" ] &&
	awk '/self_attn.q_proj/ { seen++; bad += $3 < 28 || $3 > 36 || $4 != 0 } END { exit !(seen == 4 && !bad) }' inspect.log
ok $? "inspect: the error of MXFP8 is that of a mantissa of three bits"
lbworker train small.toml --model.name neox --job.dump_folder neox --training.steps 1 >out.log 2>err.log &&
	lbworker inspect neox --recipe mxfp8 >inspect.log 2>err.log && grep -q '^embed_out.weight' inspect.log && ! grep -q embed_in inspect.log
ok $? "inspect: a head is a product, a table is none"
lbworker inspect out --recipe ./mine4.toml 2>err.log
status=$?
[ $status != 0 ] && grep -q 'mine4.toml' err.log
ok $? "inspect: a recipe that is not there is named"
lbworker inspect out 2>err.log
[ $? = 2 ] && grep -q 'takes a MODEL and --recipe NAME' err.log
ok $? "inspect without a recipe: exit 2"

# --- mistakes ------------------------------------------------------------------------------------
lbworker train small.toml --quantize.recipe mxfp9 2>err.log
[ $? = 2 ] && grep -q 'quantize.recipe: there is no recipe "mxfp9"; allowed: none, bf16, tensorwise' err.log
ok $? "an unknown recipe: exit 2, and what there is"
lbworker recipes mxfp9 2>err.log
[ $? = 2 ] && grep -q 'there is no recipe "mxfp9"' err.log
ok $? "recipes says it, too"
printf '[input]\ng = "e5m2 1x32 upp"\n' >wrong.toml
lbworker recipes ./wrong.toml 2>err.log
[ $? = 2 ] && grep -q 'wrong.toml:2: input.g: "e5m2 1x32 upp": "upp" is not known; a slot is' err.log
ok $? "a slot that cannot be read: the line, and what can be said"

echo "1..$count"
