#!/bin/sh
# SPDX-License-Identifier: MIT
# audit.t - lbworker audit: a saved checkpoint is computed once more, and one bit that was computed
# otherwise is found, with whose fault it is.  B=build prove --exec sh tests/system/audit.t
. "$(dirname "$0")/trainer.sh"

awk 'BEGIN { srand(3); for (i = 0; i < 30000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	dim = 64
	n_layers = 2
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 2
	global_batch_size = 4
	seq_len = 16
	steps = 14
	threads = 1
	[checkpoint]
	interval = 4
	keep_latest_k = 0
	[metrics]
	peak_tflops = 1
	[job]
	dump_folder = "$T/dump"
END
export TMPDIR="$T"
control=$B/controls/lbworker
train() { # train FOLDER [OPTION…], by $program
	folder=$T/$1
	shift
	LB_CHECKPOINT_DIR=$folder "${program:-$B/lbworker}" train "$T/small.toml" --device cpu "$@" >"$T/log" 2>"$T/err"
}
audit() { # audit FOLDER [OPTION…]: $status, and what it said in $T/out
	folder=$T/$1
	shift
	"${program:-$B/lbworker}" audit "$T/small.toml" --of "$folder" --device cpu "$@" >"$T/out" 2>"$T/err"
	status=$?
}
said() { grep -q "$1" "$T/out"; }

train good
audit good
[ $status = 0 ] && said '^audit: step 12 to 14: the same bits, [0-9]* files$'
ok $? "the newest checkpoint, which is that of the last step, has the same bits"
audit good --interval 8
[ $status = 0 ] && said '^audit: step 4 to 8: the same bits'
ok $? "one in the middle, too, and the replay ends there"
[ -z "$(find "$T" -maxdepth 1 -name 'lb-audit.*')" ]
ok $? "nothing is left behind"
audit good --interval 8 --ranks 2 --parallelism.reduction_width 2
two=$status
train ranks --ranks 2 --parallelism.reduction_width 2
audit ranks --parallelism.reduction_width 2 --interval 8
[ "$two $status" = "4 0" ]
ok $? "what two ranks have saved, one computes again; another order of sums is seen"

# Passes: two a step. The 19th is of step 10, between the checkpoints of steps 8 and 12.
for what in weight gradient activation; do
	at=19
	[ $what != gradient ] || at=20 # the last of step 10: there the update is made
	export LB_CONTROL=flip-$what LB_FLIP_AT=$at
	program=$control train "flip-$what"
	unset LB_CONTROL LB_FLIP_AT
	audit "flip-$what" --interval 12
	[ $status = 4 ] && said 'step 8 to 12: [0-9]* of [0-9]* files differ' && said 'was not computed so where it was saved'
	ok $? "one bit of a $what was the other one: found in its interval, and not laid to this machine"
done
audit flip-weight --interval 8
before=$status
audit flip-weight
[ "$before $status" = "0 0" ]
ok $? "the intervals before and behind are as they should be"

# The machine that replays is the broken one.
export LB_CONTROL=flip-anywhere LB_FLIP_AT=3
program=$control
audit good --interval 8
[ $status = 4 ] && said 'this machine computes something else each time'
ok $? "a machine that computes something else each time is told from one that did so once"
unset LB_CONTROL LB_FLIP_AT program

audit good --interval 8 --optimizer.lr 1e-3
[ $status = 4 ] && said 'the config is not the one' && ! said 'replay 2'
ok $? "another config is no broken hardware"
audit good --interval 4
[ $status = 2 ] && grep -q 'step 4 is the oldest checkpoint of .*: an audit begins at the one before' "$T/err"
ok $? "there must be one before"
audit good --interval 5
[ $status = 2 ] && grep -q -- '--interval 5: .* has no checkpoint of that step' "$T/err"
ok $? "and one of that step"
file=$(find "$T/good/step-00000008" -name '*.safetensors' | head -n 1)
printf x | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
audit good --interval 8
[ $status -ne 0 ] && [ $status -ne 4 ] && ! said replay && grep -q "step-00000008" "$T/err"
ok $? "a damaged file is the disk's fault, and nothing is computed"
echo "1..$count"
