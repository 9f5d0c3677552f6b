#!/bin/sh
# SPDX-License-Identifier: MIT
# checkpoint.stage: the trainer saves to a folder of its node, and lbrun brings what is whole from
# there to where it is shared. Killed at each step between, nothing half counts, and every launch
# starts from a whole one.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"
. "$suite/stage.sh"
trainer=$src/tests/stage/trainer.py

# staged NUMBER LAST [IN_PLACE [RATE]]
staged() {
	mkdir -p "$S"
	attempt "$1" "[\"python3\",\"$trainer\",\"$2\"]" "${3:-0}"
	sed -i "s|}\$|,\"checkpoint_stage\":\"$S\",\"stage_rate\":${4:-0}}|" "$F/attempt.json"
}
shared() { find "$C" -mindepth 1 -maxdepth 1 -name "$1" | sed 's|.*/||' | sort -V | tr '\n' ' '; }
left() { find "$S" -mindepth 2 -maxdepth 2 2>/dev/null | wc -l; }

# --- the way of a checkpoint ------------------------------------------------------------------
for layout in folder deepspeed dcp numpy; do
	again
	staged 1 3
	STAGE_LAYOUT=$layout run
	is $? 0 "$layout: a training with a stage ends"
	like "$(shared '*3*')" 3 "its last checkpoint is where it is shared"
	is "$(hidden) $(left)" "0 0" "and nothing else is left, there or in the stage"
	like "$(cat "$F/spool.jsonl")" '"checkpoint_valid".*"step":3.*"valid":true' "which is told"
	staged 2 4
	STAGE_LAYOUT=$layout run
	is "$(log wrong)" "" "the next launch finds every byte of it"
	like "$(log started)" '^0 3 $' "and goes on from there"
done
is "$(cat "$C/latest" 2>/dev/null)" "" "no pointer without the layout"

# --- in place, from the stage -------------------------------------------------------------------
again
staged 1 6 1 1000000
STAGE_DIE_AT=4 STAGE_PAUSE=0.2 run
like "$(log source)" " $S/.*/ckpt_3 \$" "after a crash the trainer starts from the node's own newest whole one"
is "$(log wrong)$(shared 'ckpt_6')" "ckpt_6 " "and the last one is drained before the job ends"

# logind removes what a user has in /dev/shm once they have logged out (RemoveIPC)
cat >"$T/gone.sh" <<'END'
mkdir "$LB_CHECKPOINT_DIR/ckpt_$LB_LAUNCH" || exit 4
echo whole >"$LB_CHECKPOINT_DIR/ckpt_$LB_LAUNCH/w"
[ "$LB_LAUNCH" -gt 1 ] || { rm -r "$LB_CHECKPOINT_DIR"; exit 1; }
END
again
staged 1 1 1
sed -i "s|\"python3\",\"$trainer\"|\"sh\",\"$T/gone.sh\"|" "$F/attempt.json"
run
is $? 0 "a stage that somebody has removed is there again for the next launch"
is "$(shared 'ckpt_*')$(left)" "ckpt_2 0" "and what is saved there is drained"

# what a trainer may find missing when it is back
cat >"$T/odd.sh" <<'END'
c=$LB_CHECKPOINT_DIR/ckpt_1
mkdir -p "$c/empty" "$c/tokenizer" && echo whole >"$c/tokenizer/w" && ln -s tokenizer "$c/link" &&
	truncate -s 64M "$c/hole" && echo whole >>"$c/hole"
END
again
staged 1 1
sed -i "s|\"python3\",\"$trainer\"|\"sh\",\"$T/odd.sh\"|" "$F/attempt.json"
run
is "$(find "$C/ckpt_1" -mindepth 1 -printf '%P=%l\n' | LC_ALL=C sort | tr '\n' ' ')" \
	"empty= hole= link=tokenizer tokenizer/w= tokenizer= " "folders that are empty and links to folders go along"
ok "and a hole stays one" [ "$(stat -c %b "$C/ckpt_1/hole")" -lt 20000 ]

# --- lbrun killed at each step --------------------------------------------------------------------
for point in stage.chunk:kill@2 stage.copied:kill stage.sealed:kill stage.aside:kill stage.placed:kill \
	stage.cleared:kill stage.drop:kill stage.chunk:error stage.copied:error; do
	again
	staged 1 1
	run
	mkdir -p "$T/once" "$C/ckpt_2" "$C/ckpt_3" && rm -f "$T/once"/* # something is in the way of each that may be drained
	staged 2 3
	STAGE_PAUSE=0.2 LB_FAILPOINT=$point LB_FAILPOINT_ONCE=$T/once run
	staged 3 4
	run
	is "$(log wrong)$(shared 'ckpt_4')$(hidden)" "ckpt_4 0" "$point: the run goes on, from a whole one"
	ok "$point was reached" [ -n "$(ls "$T/once")" ]
done

# --- a node that is lost, and one that is wanted by others ----------------------------------------
again
staged 1 9 0 1000000
STAGE_PAUSE=0.3 start
wait_for "grep -q checkpoint_valid '$F/spool.jsonl'" 20
kill -9 "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
end_own_processes	# a node goes with all that it has: a trainer that outlives lbrun would save once more
sealed=$(shared 'ckpt_*')
rm -rf "$S"
staged 2 9
STAGE_PAUSE=0 run
like "$(log source)" "^ $C/ckpt_[1-9] \$" "of a node that is lost the newest that is shared remains ($sealed)"
is "$(log wrong)$(shared 'ckpt_9')$(hidden)" "ckpt_9 0" "whole"

again
staged 1 99 0 1
STAGE_PAUSE=0.2 start
wait_for "grep -q 'saved.: 3' '$STAGE_LOG'" 20
kill -TERM "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
# the trainer may have been ended behind a save and before it wrote that down
saved=$(log saved | awk '{print $NF}')
like "$(shared 'ckpt_*' | sed 's/.* \(ckpt\)/\1/')" "^ckpt_($saved|$((saved + 1))) \$" \
	"told to end, it drains the newest, whatever the rate"
is "$(left)" 0 "and leaves nothing behind"

again
staged 1 9
sed -i 's|}$|,"kill_wait_ms":1200}|' "$F/attempt.json"
export LB_FAILPOINT=stage.copied:delay:60s
STAGE_PAUSE=0.2 start
wait_for "grep -q 'saved.: 2' '$STAGE_LOG'" 20
kill -TERM "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
unset LB_FAILPOINT
like "$(cat "$F/spool.jsonl")" 'stage_lost.*step [1-9] .* lies on .* alone' "without the time it says what is lost"
staged 2 9
STAGE_PAUSE=0 run
like "$(log source)" "$S/.*/ckpt_[1-9] \$" "the next launch on that node finds it all the same"
is "$(log wrong)$(shared 'ckpt_9')" "ckpt_9 " "whole"

# --- a stage that is full -------------------------------------------------------------------------
if unshare -m true 2>/dev/null; then
	again
	staged 1 6
	cat >"$T/full.sh" <<-END
		mount -t tmpfs -o size=1M none "$S" || exit 1
		"$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1
	END
	mkdir -p "$S"
	STAGE_PAUSE=1 STAGE_BYTES=250000 unshare -m sh "$T/full.sh"
	ok "a tmpfs with room for one: what counts goes, and the training ends" [ -d "$C/ckpt_6" ]
	again
	staged 1 6
	STAGE_PAUSE=0.1 STAGE_BYTES=400000 unshare -m sh "$T/full.sh"
	like "$(cat "$F/spool.jsonl" "$F/out.log")" 'No space left' "without room for one the trainer fails, and says why"
	is "$(hidden)" 0 "and nothing half is where it is shared"
else
	diag "no tmpfs of our own can be mounted: a full stage is not tried"
fi

# --- the own trainer ------------------------------------------------------------------------------
. "$src/tests/ranks/training.sh"
again
ranks_tokens "$B/lbworker" "$T"
ranks_config "$T" 60 5 5 >"$T/train.toml"
LB_CHECKPOINT_DIR=$T/one "$B/lbworker" train "$T/train.toml" --checkpoint.export_dtype=bfloat16 >"$T/one.log" 2>&1
mkdir -p "$S"
# killed in the middle of its fifth save
rm -rf "$T/once" && mkdir "$T/once"
attempt 1 "[\"env\",\"LB_FAILPOINT=manifest.before:kill@5\",\"LB_FAILPOINT_ONCE=$T/once\",\"$B/lbworker\",\"train\",\"$T/train.toml\",\"--checkpoint.export_dtype=bfloat16\"]" 3
sed -i "s|}\$|,\"checkpoint_stage\":\"$S\",\"stage_rate\":0}|" "$F/attempt.json"
run
like "$(cat "$F/spool.jsonl")" "resumed_from\":\"$S/.*/step-" "lbworker's own saves: killed, it goes on from the stage"
for file in model.safetensors optimizer.safetensors train_state.json; do
	ok "$file at the end is that of an undisturbed training" cmp "$T/one/step-00000060/$file" \
		"$C/step-00000060/$file"
done
is "$(hidden) $(left)" "0 0" "and nothing is left behind"
ok "its export is where checkpoints are shared" [ -s "$C/export-bfloat16/model.safetensors" ]

# --- how often: as what it costs and the rate of troubles say
# ------------------------------------------ saves MTBF_S [OPTION...]: checkpoints of a training
# that saves as it sees fit
saves() {
	rm -rf "$T/auto"
	mtbf=$1
	shift
	LB_MTBF_S=$mtbf LB_CHECKPOINT_DIR=$T/auto "$B/lbworker" train "$T/train.toml" --training.steps=200 \
		--checkpoint.interval=auto --checkpoint.keep_latest_k=0 "$@" >"$T/auto.log" 2>&1
	grep -c '^checkpoint ' "$T/auto.log"
}
ok "interval = auto: where trouble is at hand it saves often" [ "$(saves 0.01)" -ge 2 ]
is "$(saves 1000000000)" 1 "where none is to be expected, only at the end"
ok "two ranks save in the same steps" [ "$(saves 0.01 --ranks 2)" -ge 2 ]

# --- a person sends it back -----------------------------------------------------------------------
again
staged 1 999 0 1
STAGE_PAUSE=0.05 STAGE_BYTES=30000 start
wait_for "grep -q 'saved.: 3' '$STAGE_LOG'" 20
kill -9 "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
ok "a killed lbrun leaves its stage" [ "$(left)" -gt 0 ]
staged 2 4
sed -i 's|}$|,"resume":"scratch"}|' "$F/attempt.json"
run
like "$(log started)" ' 0 $' "from scratch is from scratch, whatever the node still has"
is "$(log wrong)$(shared 'ckpt_4')" "ckpt_4 " "and goes on as ever"

done_testing
