#!/bin/sh
# SPDX-License-Identifier: MIT
# trainer.t - lbworker as a person and lbrun use it: exact resume after kill -9, orders, hostile
# configs, shards and checkpoints.  B=build prove --exec sh tests/system/trainer.t
. "$(dirname "$0")/trainer.sh"

is() { # is HAVE WANT NAME
	[ "$1" = "$2" ]
	ok $? "$3"
	[ "$1" = "$2" ] || printf '# have: %s\n# want: %s\n' "$1" "$2"
}

awk 'BEGIN { srand(3); for (i = 0; i < 30000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
	>"$T/text"
cat >"$T/small.toml" <<-END
	[run]
	name = "read-by-others"
	[model]
	flavor = "debugmodel"
	[lr_scheduler]
	warmup_steps = 5
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 2
	global_batch_size = 4
	seq_len = 16
	steps = 40
	threads = 2
	[checkpoint]
	interval = 10
	keep_latest_k = 0
	[metrics]
	log_freq = 1
	peak_tflops = 1
	[job]
	dump_folder = "$T/unused"
END
lbworker() { "$B/lbworker" "$@"; }
train() { lbworker train "$T/small.toml" "$@"; }
listing() { find "$1" -mindepth 1 -maxdepth 1 -printf "%f\n" | sort | paste -s -d " "; }
# The losses a log tells, one "step loss" a line, the last word on each step.
losses() { cat "$@" | sed -n 's/^\(step [0-9]*\)\/[0-9]* \(loss [0-9.]*\) .*/\1 \2/p' |
	awk '{ line[$2] = $0 } END { for (s in line) print line[s] }' | sort -k2n; }

lbworker prepare --out "$T/text.tokens" "$T/text" >"$T/out" 2>"$T/err"
ok $? "prepare writes a shard"

# --- a whole training, and the same one killed and resumed ---------------------------------------
train --job.dump_folder "$T/whole" >"$T/whole.log" 2>"$T/err"
ok $? "a training ends with status 0"
is "$(losses "$T/whole.log" | wc -l)" 40 "every step is told"
is "$(listing "$T/whole/checkpoints")" \
	"step-00000010 step-00000020 step-00000030 step-00000040" "checkpoints at each interval"
first=$(losses "$T/whole.log" | sed -n '1s/.* //p')
last=$(losses "$T/whole.log" | sed -n '$s/.* //p')
awk "BEGIN { exit !($last < $first - 0.5) }"
ok $? "the loss falls ($first to $last)"

# Killed at given lines of its output, between and during saves. Who reads may be late: the last
# save waits for it.
kill_after() { # kill_after FOLDER PATTERN LOG: SIGKILL once a line matches
	rm -f "$T/pipe"
	mkfifo "$T/pipe"
	LB_FAILPOINT=manifest.before:delay:600s@4 \
		"$B/lbworker" train "$T/small.toml" --job.dump_folder "$1" >"$T/pipe" 2>>"$T/err" &
	worker=$!
	while read -r line; do
		printf '%s\n' "$line"
		# shellcheck disable=SC2254 # a pattern is meant
		case $line in
		$2) kill -KILL "$worker" ;;	# and what it had printed meanwhile is read, too
		esac
	done <"$T/pipe" >"$3"
	wait "$worker" 2>/dev/null
	killed=$?
	worker=
}
for at in 3 10 17 29; do
	: >"$T/err"
	kill_after "$T/killed$at" "step $at/*" "$T/killed$at.log"
	is $killed 137 "kill -9 at step $at hits"
	train --job.dump_folder "$T/killed$at" >"$T/resumed$at.log" 2>>"$T/err"
	ok $? "started again, it ends well"
	losses "$T/whole.log" >"$T/want"
	losses "$T/killed$at.log" "$T/resumed$at.log" >"$T/have"
	[ -s "$T/want" ] && cmp "$T/want" "$T/have" >>"$T/err" 2>&1
	ok $? "its losses are those of the undisturbed one"
	for file in model.safetensors optimizer.safetensors; do
		cmp "$T/whole/checkpoints/step-00000040/$file" \
			"$T/killed$at/checkpoints/step-00000040/$file" >>"$T/err" 2>&1
		ok $? "its $file is the same to the bit"
	done
done

train --job.dump_folder "$T/one" --training.threads 1 >"$T/one.log" 2>"$T/err"
cmp "$T/whole/checkpoints/step-00000040/model.safetensors" \
	"$T/one/checkpoints/step-00000040/model.safetensors" >>"$T/err" 2>&1
ok $? "one thread gives the same bits as two"

# --- other data -----------------------------------------------------------------------------------
head -c 20000 "$T/text" | sed 's/./&\x00/g; s/\n//g' >"$T/train.bin"
train --job.dump_folder "$T/mixed" --training.dataset_path "" --training.steps 10 \
	--training.dataset_mix "[\"3 $T/text.tokens\", \"1 $T/train.bin\"]" >"$T/out" 2>"$T/err"
ok $? "two sources, one of them raw uint16"
train --job.dump_folder "$T/mixed" --training.dataset_path "" --training.steps 20 \
	--training.dataset_mix "[\"1 $T/text.tokens\", \"1 $T/train.bin\"]" >"$T/out" 2>"$T/err"
is "$? $(grep -c 'was trained on other data' "$T/err")" "2 1" "resuming with another mix is refused"
printf 'a few words' >"$T/few-words"
lbworker prepare --out "$T/few.tokens" "$T/few-words" >"$T/out" 2>"$T/err"
train --job.dump_folder "$T/short" --training.dataset_path "$T/*.tokens" --training.steps 1 >"$T/out" 2>"$T/err"
is "$(grep 'shorter than' "$T/out")" "training.dataset_path: 1 file is shorter than one sample of 16 + 1 tokens, \
and not used: lbworker prepare --join makes one file of several" "a file that is too short for a sample is told"
for mode in selective full; do
	train --job.dump_folder "$T/$mode" --activation_checkpoint.mode $mode >"$T/out" 2>"$T/err"
	cmp "$T/whole/checkpoints/step-00000040/model.safetensors" \
		"$T/$mode/checkpoints/step-00000040/model.safetensors" >>"$T/err" 2>&1
	ok $? "activation checkpointing, $mode: the same bits"
done

# --- orders ---------------------------------------------------------------------------------------
rm -f "$T/pipe"
mkfifo "$T/pipe"
"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/stopped" --training.steps 1000000 \
	>"$T/pipe" 2>"$T/err" &
worker=$!
while read -r line; do
	printf '%s\n' "$line"
	case $line in "step 5/"*) kill -TERM "$worker" ;; esac
done <"$T/pipe" >"$T/stopped.log"
wait "$worker"
status=$?
worker=
is $status 0 "SIGTERM: a checkpoint, then status 0"
is "$(tail -n 1 "$T/stopped.log")" "stopped" "and it says so"
newest=$(listing "$T/stopped/checkpoints" | sed "s/.* //")
step=$(sed -n 's/^step \([0-9]*\)\/.*/\1/p' "$T/stopped.log" | tail -n 1)
is "$newest" "$(printf 'step-%08d' "$step")" "the checkpoint is of the last step"
# Who is asked before the first step ends, which is the last; how long it took others than rank 0 is
# told in the next one.
for ranks in 1 2; do
	python3 - "$T/asked.socket" "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/asked" --training.steps 1 \
		--ranks $ranks >"$T/out" 2>"$T/err" <<-'END'
		import os, socket, subprocess, sys
		path, *words = sys.argv[1:]
		server = socket.socket(socket.AF_UNIX)
		server.bind(path)
		server.listen()
		trainer = subprocess.Popen(words, env=dict(os.environ, LB_SOCKET=path))
		client = server.accept()[0]
		client.sendall(b'{"type":"stop"}\n')
		told = client.makefile().read()
		assert trainer.wait() == 0 and '{"type":"bye","status":"done"}' in told, told
		assert '"type":"step"' in told and '"step_ms":0.0' not in told, told
	END
	is "$? $(tail -n 1 "$T/out")" "0 done" "a training that is asked to stop behind its last step is done ($ranks of us)"
	rm -rf "$T/asked" "$T/asked.socket"
done

LB_CHECKPOINT_DIR=$T/given/deep train --training.steps 5 >"$T/out" 2>"$T/err"
[ -d "$T/given/deep/step-00000005" ] && [ ! -e "$T/unused/checkpoints" ]
ok $? "LB_CHECKPOINT_DIR overrides the folder of the config"
LB_RESUME_FROM=$T/whole/checkpoints/step-00000020 LB_CHECKPOINT_DIR=$T/other \
	train >"$T/out" 2>"$T/err"
cmp "$T/whole/checkpoints/step-00000040/model.safetensors" \
	"$T/other/step-00000040/model.safetensors" >>"$T/err" 2>&1
ok $? "LB_RESUME_FROM goes on from there, to the same bits"

train --job.dump_folder "$T/few" --checkpoint.interval 2 --checkpoint.keep_latest_k 2 \
	--checkpoint.keep_every 15 --training.steps 32 >"$T/out" 2>"$T/err"
is "$(listing "$T/few/checkpoints")" "step-00000030 step-00000032" \
	"retention keeps the latest two and multiples of keep_every"

train --job.dump_folder "$T/none-kept" --checkpoint.enable false >"$T/out" 2>"$T/err"
status=$?
[ $status = 0 ] && [ ! -e "$T/none-kept" ] && grep -q '^checkpoint.enable = false: ' "$T/out"
ok $? "checkpoint.enable = false: none is written, which is said"
LB_SLURM_JOB_ID=7 SLURM_JOB_ID=8 LB_CHECKPOINT_DIR=$T/parent LB_RESUME_FROM=$T/whole/checkpoints/step-00000020 \
	train --job.dump_folder "$T/child" --training.steps 1 >"$T/out" 2>"$T/err"
grep -q '^step 1/' "$T/out" && [ -d "$T/child/checkpoints/step-00000001" ] && [ ! -e "$T/parent" ]
ok $? "a job that a run submitted neither begins from the run's checkpoint nor saves among them"
LB_RESUME_FROM=$T/whole/checkpoints/step-00000020 train --checkpoint.enable false >"$T/tail" \
	2>"$T/err"
is "$(losses "$T/tail")" "$(losses "$T/whole.log" | sed -n '21,$p')" \
	"and LB_RESUME_FROM is gone on from all the same"

# --- saving goes wrong, or is not for us any more -------------------------------------------------
train --job.dump_folder /proc/none >"$T/out" 2>"$T/err"
status=$?
[ $status = 1 ] && grep -q '^lbworker: checkpoint.folder: /proc/none' "$T/err" && ! grep -q '^step ' "$T/out"
ok $? "where nothing can be saved, training does not begin"
train --job.dump_folder "$T/whole" --training.steps 30 >"$T/out" 2>"$T/err"
is "$? $(grep -c '^step 40 of 30: nothing is left to train' "$T/out")" "0 1" "what is done is said to be done"

# A library that never comes stands for a set-up that takes long.
mkfifo "$T/slow.so"
for ranks in 1 2; do
	LB_CUDA_LIBRARY=$T/slow.so "$B/lbworker" train "$T/small.toml" --ranks $ranks >"$T/out" 2>"$T/err" &
	worker=$!
	exec 9>"$T/slow.so"	# returns when lbworker has it open
	kill -TERM "$worker"
	exec 9>&-
	wait "$worker" 2>/dev/null
	is "$? $(cat "$T/err")" "143 " "SIGTERM before there is anything to save ends it at once ($ranks of us), without a complaint"
done
worker=

# The soft limit on file sizes stands for a full disk; it is lifted while the training goes on.
rm -f "$T/pipe"
mkfifo "$T/pipe"
prlimit --fsize=51200:unlimited "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/disk" \
	--training.steps 2000 >"$T/pipe" 2>"$T/err" &
worker=$!
while read -r line; do
	printf '%s\n' "$line"
	case $line in
	"step 25/"*) ls "$T/disk/checkpoints" >"$T/while-full" ; prlimit --pid $worker --fsize=unlimited ;;
	"checkpoint "*) kill -TERM "$worker" ;;
	esac
done <"$T/pipe" >"$T/disk.log"
wait "$worker"
status=$?
worker=
[ $status = 0 ] && grep -q 'checkpoint of step 10:.*File too large' "$T/err"
ok $? "a full disk is said and costs no training"
is "$(grep -c 'step-0*[12]0$' "$T/while-full") $(find "$T/disk/checkpoints" -name '*.*-*')" "0 " \
	"it leaves nothing behind"
lbworker ckpt verify "$T/disk/checkpoints" >"$T/out" 2>"$T/err" &&
	grep -q '^good .*step-000' "$T/out"
ok $? "with room again, the next one is written"

if strace -qq -e trace=none true 2>/dev/null; then
	train --job.dump_folder "$T/eio" --training.steps 12 >"$T/out" 2>"$T/err"
	rm -r "$T/eio/checkpoints/step-00000012"
	cp -r "$T/eio" "$T/eio.before"
	strace -f -qq -o "$T/strace" -e inject=fsync:error=EIO "$B/lbworker" train "$T/small.toml" \
		--job.dump_folder "$T/eio" --training.steps 12 >"$T/out" 2>"$T/err"
	is "$? $(grep -c 'Input/output error' "$T/err")" "1 1" \
		"a disk that fails at the end: status 1"
	diff -r "$T/eio" "$T/eio.before" >>"$T/err" 2>&1
	ok $? "and the checkpoint before is as it was"
	train --job.dump_folder "$T/again" --training.steps 12 >"$T/out" 2>"$T/err"
	: >"$T/again/checkpoints/step-00000012/note"
	cp -r "$T/again" "$T/again.before"
	LB_RESUME_FROM=$T/again/checkpoints/step-00000010 strace -f -qq -o "$T/strace" -e inject=renameat2:error=EINVAL \
		-e inject=rename:error=EIO:when=4 "$B/lbworker" train "$T/small.toml" \
		--job.dump_folder "$T/again" --training.steps 12 >"$T/out" 2>"$T/err"
	is "$? $(grep -c 'step-00000012: Input/output error' "$T/err")" "1 1" "a checkpoint that cannot take the place of one"
	diff -r "$T/again" "$T/again.before" >>"$T/err" 2>&1
	ok $? "leaves that one there"
	mkdir "$T/shards" && cp "$T/text.tokens" "$T/shards/a.tokens" && cp "$T/text.tokens" "$T/shards/b.tokens"
	strace -f -qq -o "$T/strace" -P "$T/shards" -e inject=getdents64:error=EIO:when=2 "$B/lbworker" train "$T/small.toml" \
		--training.dataset_path "$T/shards" --job.dump_folder "$T/partly" --training.steps 1 >"$T/out" 2>"$T/err"
	is "$? $(grep -c 'shards: Input/output error' "$T/err")" "1 1" "a folder of data that could not be listed to its end is not taken for all of it"
fi

mkdir -p "$T/run/attempts/1" "$T/run/attempts/2"
echo '{}' | tee "$T/run/attempts/1/claim" >"$T/run/attempts/2/claim"
LB_RUN_DIR=$T/run LB_ATTEMPT=2 train --job.dump_folder "$T/newer" --training.steps 10 \
	>"$T/out" 2>"$T/err"
ok $? "the newest attempt publishes"
LB_RUN_DIR=$T/run LB_ATTEMPT=1 train --job.dump_folder "$T/fenced" >"$T/out" 2>"$T/err"
is "$? $(grep -c 'replaced by attempt 2' "$T/err") $(find "$T/fenced/checkpoints" -mindepth 1)" \
	"1 1 " \
	"a replaced attempt publishes nothing and ends"

gone=$(sh -c 'echo $$')
here=$(uname -n)
old=$T/newer/checkpoints
mkfifo "$T/unreaped"	# as in a container whose first process asks for nobody's end
python3 -c 'import os, signal, sys
pid = os.fork() or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
open(sys.argv[1], "w").write(f"{pid}\n")
signal.pause()' "$T/unreaped" &
worker=$!
read -r unreaped <"$T/unreaped"
mkdir "$old/step-00000006.tmp-$unreaped-$here" "$old/step-00000007.tmp-$gone" "$old/step-00000008.new-$gone-$here" \
	"$old/step-00000008.tmp-$$-$here" "$old/step-00000009.tmp-$gone-elsewhere" \
	"$old/step-00000009.bad-1234" "$old/notes.tmp-$gone"
train --job.dump_folder "$T/newer" --training.steps 10 >"$T/out" 2>"$T/err"
is "$(ls "$old")" "notes.tmp-$gone
step-00000008.tmp-$$-$here
step-00000009.bad-1234
step-00000009.tmp-$gone-elsewhere
step-00000010" \
	"what dead writers of this host left is removed, nothing else"
kill -KILL "$worker" && wait "$worker" 2>/dev/null
worker=

sh tests/faults/checkpoint.sh 40 >"$T/out" 2>"$T/err"
ok $? "$(tail -n 1 "$T/out")"

train --job.dump_folder "$T/sync" --checkpoint.async_mode disabled >"$T/out" 2>"$T/err"
lbworker ckpt diff "$T/whole/checkpoints/step-00000030" "$T/sync/checkpoints/step-00000030" \
	>"$T/out" 2>"$T/err"
is "$? $(head -n 1 "$T/out")" "1 train_state.json: differs" \
	"a synchronous save holds the same tensors (only the config's digest differs)"
lbworker ckpt diff "$T/whole/checkpoints/step-00000030" "$T/whole/checkpoints/step-00000040" \
	>"$T/out" 2>"$T/err"
is "$? $(grep -c 'model.norm.weight: 64 of 64 differ' "$T/out")" "1 3" \
	"ckpt diff tells which differ"
is "$(lbworker ckpt ls "$T/whole/checkpoints" | cut -c1-13)" "step-00000040
step-00000030
step-00000020
step-00000010" "ckpt ls lists them, newest first"

# --- checkpoints that do not hold -----------------------------------------------------------------
flip() { printf '\377' | dd of="$1" bs=1 seek=9000 conv=notrunc 2>/dev/null; }
cp -r "$T/whole" "$T/bent"
flip "$T/bent/checkpoints/step-00000040/optimizer.safetensors"
train --job.dump_folder "$T/bent" >"$T/out" 2>"$T/err"
status=$?
grep -q "step-00000040 is passed over" "$T/err" && grep -q "^resumed from.*step-00000030" "$T/out"
ok $? "a flipped bit: that checkpoint is passed over, and said"
is $status 0 "and the training ends well"
cmp "$T/whole/checkpoints/step-00000040/model.safetensors" \
	"$T/bent/checkpoints/step-00000040/model.safetensors" >>"$T/err" 2>&1
ok $? "with the damaged one replaced"

for one in "$T"/bent/checkpoints/step-*; do flip "$one/model.safetensors"; done
train --job.dump_folder "$T/bent" >"$T/out" 2>"$T/err"
status=$?
[ $status != 0 ] && ! grep -q '^step ' "$T/out"
ok $? "no valid checkpoint among several: it stops, and never starts from 0"
LB_RESUME_FROM=$T/bent/checkpoints/step-00000040 train >"$T/out" 2>"$T/err"
status=$?
[ $status != 0 ] && ! grep -q '^step ' "$T/out" && grep -q LB_RESUME_FROM "$T/err"
ok $? "LB_RESUME_FROM that does not hold: it stops"
LB_RESUME_FROM=$T/nowhere train >"$T/out" 2>"$T/err"
status=$?
[ $status != 0 ] && ! grep -q '^step ' "$T/out"
ok $? "LB_RESUME_FROM that does not exist: it stops"
for other in "training.seq_len=32" "training.seed=9"; do
	train --job.dump_folder "$T/whole" "--$other" >"$T/out" 2>"$T/err"
	is "$? $(grep -c "${other%%=*}" "$T/err")" "2 1" \
		"resuming with another ${other%%=*} is refused"
done
for other in model.n_layers=1 model.tie_word_embeddings=true model.rope_theta=77 model.norm_eps=1e-3; do
	LB_RESUME_FROM=$T/whole/checkpoints/step-00000010 train --job.dump_folder "$T/other" "--$other" >"$T/out" 2>"$T/err"
	is "$? $(grep -c 'cannot resume: .* of \[model\]\|cannot resume: .* \[model\], was' "$T/err") $(grep -c '^step' "$T/out")" "2 1 0" \
		"a checkpoint does not go on as another model: $other"
done
LB_RESUME_FROM=$T/whole/checkpoints/step-00000010 train --model.flavor bytes-4M \
	>"$T/out" 2>"$T/err"
is "$? $(grep -c 'the model needs F32 256x256' "$T/err")" "2 1" \
	"a checkpoint of another shape is refused"

# --- bad input: one line, status 2 ----------------------------------------------------------------
refused() { # refused NAME PATTERN: "$T/err" is one line with the pattern, status was 2
	[ "$status" = 2 ] && [ "$(grep -vc ' info lbworker: ' "$T/err")" = 1 ] &&
		grep -q -- "$2" "$T/err"
	ok $? "$1"
}
bad_config() { # bad_config LINE PATTERN
	printf '%s\n' "$1" | cat "$T/small.toml" - >"$T/bad.toml"
	lbworker train "$T/bad.toml" >"$T/out" 2>"$T/err"
	status=$?
	refused "config: $(printf %s "$1" | tr "\n" " ")" "$2"
}
bad_config '[optimizer]
lrr = 1' 'bad.toml:23: optimizer.lrr.*lr'
bad_config '[optimiser]
lr = 1' 'bad.toml:22: optimiser'
bad_config '[optimizer]
lr = "fast"' 'bad.toml:23: optimizer.lr'
bad_config '[optimizer]
name = "SGD"' 'AdamW'
bad_config '[optimizer' 'bad.toml:22'
for words in "--training.step 5:--training.step: unknown key; did you mean" \
	"--training.steps:--training.steps: must be an integer" "--model.flavor 8b:--model.flavor: there is no" \
	"--chek:--chek: there is no such option" "-x:-x: there is no such option" \
	"--device:--device needs a name" "--device gpu:--device.name: must be one of"; do
	# shellcheck disable=SC2086 # words are meant
	train ${words%%:*} >"$T/out" 2>"$T/err"
	status=$?
	refused "train ${words%%:*}" "^lbworker: ${words#*:}"
done
train --metrics.enable_tensorboard --check >"$T/out" 2>"$T/err"
is "$? $(grep -c '^enable_tensorboard = true' "$T/out")" "0 1" "a key without a value is a flag"
for command in train plan prepare convert eval generate ckpt trace; do
	lbworker $command --help >"$T/out" 2>"$T/err" && lbworker help $command | cmp - "$T/out" >>"$T/err" &&
		grep -q "^  lbworker $command " "$T/out" && [ "$(wc -l <"$T/out")" -lt 5 ]
	ok $? "lbworker $command --help"
done
for pair in training.steps=0 training.seq_len=-5 training.global_batch_size=3 model.flavor=71B \
	training.dataset_path="$T/none" lr_scheduler.total_steps=0 model.name=nexo \
	model.init_std=0; do
	train "--$pair" >"$T/out" 2>"$T/err"
	status=$?
	refused "$pair" "${pair%%=*}"
done
head -c 1000 "$T/text.tokens" >"$T/cut.tokens"
train --training.dataset_path "$T/cut.tokens" >"$T/out" 2>"$T/err"
status=$?
refused "a shard cut short" "cut.tokens.*cut short"
mkfifo "$T/fifo.tokens"
timeout 60 "$B/lbworker" train "$T/small.toml" --training.dataset_path "$T/fifo.tokens" >"$T/out" 2>"$T/err"
is "$? $(grep -c 'fifo.tokens: not a regular file' "$T/err")" "1 1" "a pipe for data keeps nobody waiting"
head -c 4000 "$T/text" | sed 's/./&\x00\x00\x00/g; s/\n//g' >"$T/wide.bin"
train --training.dataset_path "$T/wide.bin" >"$T/out" 2>"$T/err"
status=$?
refused "raw tokens of four bytes" "wide.bin: every second token is 0, or nearly, as if they were uint32"
gzip -c "$T/text" >"$T/packed.gz"
printf '\050\265\057\375rest' >"$T/packed"
for words in "--out $T/x.tokens:at least one text file" "$T/text:--out FILE.tokens" \
	"--out $T/x.tokens --document-start 1 $T/text:goes with --join" \
	"--out $T/x.tokens --join --document-start abc $T/text.tokens:must be the number of a token" \
	"--out $T/x.tokens --joined $T/text:--joined: there is no such option" \
	"--out $T/text $T/text.tokens:text: is there already, and no file of tokens" \
	"--out $T $T/text:is a folder; name a file in it" "--out $T/no/x $T/text:there is no folder $T/no" \
	"--out $T/x.tokens $T/absent:absent: no such file" \
	"--out $T/x.tokens $T/text $T/packed.gz:is compressed, prepare takes plain text" \
	"--out $T/x.tokens $T/packed:is compressed, prepare takes plain text"; do
	# shellcheck disable=SC2086 # words are meant
	lbworker prepare ${words%:*} >"$T/out" 2>"$T/err"
	status=$?
	refused "prepare: ${words##*:}" "${words##*:}"
done
lbworker eval "$T/whole/checkpoints/step-00000040" --text "$T/packed.gz" >"$T/out" 2>"$T/err"
status=$?
refused "eval --text of a compressed file" 'is compressed, eval --text takes plain text'
lbworker prepare --join "$T/text.tokens" --out "$T/x.tokens" >"$T/out" 2>"$T/err"
is "$? $(cat "$T/out")" "0 $T/x.tokens: 30000 tokens in 1 document" "prepare takes its options in any order"
lbworker train "$T/no-such.toml" >"$T/out" 2>"$T/err"
status=$?
refused "no such config" "no-such.toml"
lbworker train >"$T/out" 2>"$T/err"
status=$?
refused "train without a config" "config"
lbworker trian >"$T/out" 2>"$T/err"
status=$?
refused "a misspelt command" "did you mean train"

train --check >"$T/out" 2>"$T/err"
status=$?
[ $status = 0 ] && grep -q '^steps = 40$' "$T/out" && ! grep -q '^\[run\]' "$T/out"
ok $? "--check prints the effective config and trains nothing"
lbworker train "$T/out" --check 2>"$T/err" | cmp - "$T/out" >>"$T/err" 2>&1
ok $? "which reads back as itself"

for sample in etc/train/*.toml; do
	lbworker train "$sample" --check >"$T/out" 2>"$T/err" && lbworker plan "$sample" \
		>"$T/plan" 2>>"$T/err" && grep -q '^H200 .*tokens/s' "$T/plan"
	ok $? "$sample is sound"
done
train --model.flavor 70B >"$T/out" 2>"$T/err"
status=$?
refused "more memory than there is: refused before it starts, with numbers" \
	'GiB needed (weights 262.*GiB available'
# What a control group leaves, in both versions, as a batch job or a container has it.
limited() { # limited FOLDER FILE=TEXT...: train where our group says that, below /sys/fs/cgroup
	as_root=
	[ "$(id -u)" = 0 ] || as_root=-r
	# shellcheck disable=SC2016,SC2086 # of the inner shell; one word or none
	unshare -m $as_root sh -c 'folder=/sys/fs/cgroup$3
		mount -t tmpfs none /sys/fs/cgroup && mkdir -p "$folder" || exit
		worker=$1 config=$2 && shift 3
		for said; do echo "${said#*=}" >"$folder/${said%%=*}"; done
		exec "$worker" train "$config" --checkpoint.enable false --training.steps 1 \
			--lr_scheduler.warmup_steps 0 --training.threads 0' \
		sh "$B/lbworker" "$T/small.toml" "$@" >"$T/out" 2>"$T/err"
	status=$?
}
if unshare -m true 2>/dev/null; then
	group=$(sed -n 's/^0:://p' /proc/self/cgroup)
	limited "$group" memory.max=1048576 memory.current=524288
	refused "a group's memory: refused before it starts" 'GiB needed.* 0.00 GiB available'
	limited "$group" "cpu.max=150000 100000"
	grep -q '^cpu: [12] thread' "$T/out"
	ok $? "a group's time of one and a half CPUs: no more than two threads"
	limited "$group" "cpu.max=max 100000" memory.max=max
	is "$status" 0 "a group without limits"
	group=$(sed -n 's/^[0-9]*:memory:/\/memory/p' /proc/self/cgroup)
	limited "${group:-/memory}" memory.limit_in_bytes=1048576 memory.usage_in_bytes=524288
	[ -z "$group" ] || refused "the older kind's memory" 'GiB needed.* 0.00 GiB available'
	group=$(awk -F: '$2 ~ /(^|,)cpu(,|$)/ { print "/cpu" $3 }' /proc/self/cgroup)
	limited "${group:-/cpu}" cpu.cfs_quota_us=100000 cpu.cfs_period_us=100000
	[ -z "$group" ] || { grep -q '^cpu: 1 thread,' "$T/out" && [ "$status" = 0 ]; }
	ok $? "the older kind's time of one CPU"
fi
printf '[training]\nbatch_size = 2\ndata_set = "c4"\n' >"$T/foreign.toml"
lbworker train "$T/foreign.toml" --training.dataset_path x --check --lenient >"$T/out" 2>"$T/err"
is "$? $(grep -c '^local_batch_size = 2' "$T/out") $(head -n 1 "$T/err")" \
	"0 1 $T/foreign.toml:3: training.data_set: ignored, it is not known" \
	"--lenient lists what it ignores"
grep -q 'mixed_precision_param: there bfloat16' "$T/err"
ok $? "and what a file of torchtitan means otherwise there"
lbworker train "$T/foreign.toml" --training.steps none >"$T/out" 2>"$T/err"
is "$? $(wc -l <"$T/out") $(grep -c '^lbworker: ' "$T/err")" "2 0 3" "every mistake has its line, and all are told"
printf '[model]\ndim = 30\nn_layers = 1\nn_heads = 3\nhead_dim = 14\nvocab_size = 256\nffn = 37\n' >"$T/odd.toml"
lbworker plan "$T/small.toml" --training.batch_ramp "[2, 2, 20]" >"$T/out" 2>"$T/err" # 10 steps of 2, 30 of 4
grep -q "^step  *64 tokens: 2 x 2 sequences of 16, once the batch has grown from 2 sequences$" "$T/out" &&
	grep -q "^training  *2240 tokens," "$T/out"
ok $? "a batch that grows counts as it grows"
lbworker plan "$T/odd.toml" --device H200 >"$T/out" 2>"$T/err"
is "$? $(grep -c 'llama of its own shape: 23820 parameters' "$T/out") $(wc -c <"$T/err")" "0 1 0" "plan needs no dataset"
lbworker train "$T/odd.toml" --dataset "$T/text.tokens" --job.dump_folder "$T/odd" --training.steps 3 \
	--training.seq_len 32 --checkpoint.export_dtype bfloat16 >"$T/out" 2>"$T/err"
is "$? $(tail -n 1 "$T/out")" "0 done" "a shape of one's own trains on what --dataset names"
lbworker eval "$T/odd/checkpoints/export-bfloat16" "$T/text.tokens" --seq-len 32 --samples 2 >"$T/out" 2>>"$T/err"
is "$? $(grep -c '"dtype": "bfloat16"\|"torch_dtype": "bfloat16"' "$T/odd/checkpoints/export-bfloat16/config.json")" \
	"0 1" "export_dtype leaves the last weights as a model of Hugging Face"
cat >"$T/from.toml" <<-END
	[checkpoint]
	initial_load_path = "$T/odd/checkpoints/export-bfloat16"
	[training]
	dataset_path = "$T/text.tokens"
	seq_len = 32
	steps = 4
	[job]
	dump_folder = "$T/from"
END
lbworker train "$T/from.toml" >"$T/out" 2>"$T/err"
is "$? $(grep -c 'of its own shape: 23820 parameters' "$T/out")" "0 1" "initial_load_path brings its shape"
rm -r "$T/odd"
lbworker train "$T/from.toml" --training.steps 6 >"$T/out" 2>"$T/err"
is "$? $(grep -c '^resumed' "$T/out")" "0 1" "which a training that goes on needs no more"

train --job.dump_folder "$T/wild" --optimizer.lr 100 --model.init_std 10 --training.max_norm 0 \
	--lr_scheduler.warmup_steps 0 >"$T/out" 2>"$T/err"
is "$? $(grep -c 'diverged' "$T/err")" "3 1" "a loss that is no number: status 3"
[ ! -e "$T/wild/checkpoints/step-00000040" ]
ok $? "and no checkpoint of it"

wild() { train --optimizer.lr 100 --model.init_std 10 --training.max_norm 0 \
	--lr_scheduler.warmup_steps 0 "$@"; }
# The last four steps without a gradient follow each other; those before them are another matter.
wild --job.dump_folder "$T/wilder" --training.max_skipped_steps 3 >"$T/out" 2>"$T/err"
is "$? $(sed -n 's/.*: step \([0-9]*\).*\(is left out\|diverged\).*/\1/p' "$T/err" |
	awk '{ row = $1 == last + 1 ? row + 1 : 1; last = $1 } END { print row }') $(grep -c diverged "$T/err")" "3 4 1" \
	"max_skipped_steps: so many are left out, then it has diverged"
# lbrun hears of each step, though JSON has no word for what is no number; people hear at the end.
cat >"$T/told.py" <<-'END'
	import json, os, socket, subprocess, sys
	path, *words = sys.argv[1:]
	server = socket.socket(socket.AF_UNIX)
	server.bind(path)
	server.listen()
	trainer = subprocess.Popen(words, env=dict(os.environ, LB_SOCKET=path))
	told = [json.loads(line) for line in server.accept()[0].makefile()]
	trainer.wait()
	steps = [line for line in told if line["type"] == "step"]
	print([s["step"] for s in steps] == [*range(1, 41)], None in [s["grad_norm"] for s in steps])
END
is "$(python3 "$T/told.py" "$T/wild.socket" "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/wildest" \
	--optimizer.lr 100 --model.init_std 10 --training.max_norm 0 --lr_scheduler.warmup_steps 0 \
	--training.max_skipped_steps 100 2>"$T/err" | tail -n 3)" "$(grep -c 'is left out' "$T/err") of 40 steps were left out: loss or gradient was no number
done
True True" "steps that are left out are told, and counted at the end"

echo "1..$count"
