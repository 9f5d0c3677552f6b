#!/bin/sh
# SPDX-License-Identifier: MIT
# A relaunch starts from the newest checkpoint that is whole. A torn or flipped one is told of, kept
# and passed over; when there are some and none is whole, the run stops instead of starting again at
# step 0.
. "$(dirname "$0")/lib.sh"

text=$T/text
seq 20000 >"$text"
lbworker prepare --out "$T/tokens" "$text" >/dev/null || bail_out "lbworker prepare failed"
cat >"$T/run.toml" <<EOF_SPEC
[restart]
in_place = 0
backoff_first = "1s"
[model]
name = "llama"
flavor = "debugmodel"
[training]
dataset_path = "$T/tokens"
local_batch_size = 2
seq_len = 32
steps = 1000000
[checkpoint]
interval = 10
keep_latest_k = 1000
[metrics]
peak_tflops = 1
EOF_SPEC

lbd_start
# SIGSTOP while its checkpoints are damaged, so that no new one comes: once it has stopped, for a
# rename on its way is done first.
trainer() { pgrep -f "lbworker train $LB_HOME/runs/$1/spec.toml"; }
checkpoints() { ls -d "$LB_HOME/runs/$1/checkpoints"/step-???????? 2>/dev/null; }
freeze_with_three() {
	wait_for "[ \$(checkpoints $1 | wc -l) -ge 3 ]" 60
	kill -STOP "$(trainer "$1")"
	wait_for "[ -z \"\$(grep -L '^State:.T' /proc/$(trainer "$1")/task/*/status)\" ]" 20
}

lbctl submit "$T/run.toml" --name torn >/dev/null
freeze_with_three torn
newest=$(checkpoints torn | tail -n 1)
before=$(checkpoints torn | tail -n 2 | head -n 1)
truncate -s -1 "$newest/model.safetensors"
kill -KILL "$(trainer torn)"
wait_for '[ "$(lbctl status torn --json | json attempts.1.launches.0.first_step)" -gt 0 ]' 60
step=$(basename "$before" | sed 's/step-0*//')
is "$(lbctl status torn --json | json attempts.1.resumed_from_step)" "$step" \
	"the next attempt starts from the checkpoint before the torn one"
like "$(lbctl events torn)" "checkpoint_bad .*$(basename "$newest")" "the torn one is told of"
ok "and kept" test -e "$newest" -o -n "$(ls -d "$newest".bad-* 2>/dev/null)"
lbctl kill --now torn >/dev/null
run_reaches torn killed 30

none=$(printf %064d 7)	# as long as a name may be
lbctl submit "$T/run.toml" --name "$none" >/dev/null
freeze_with_three "$none"
for folder in $(checkpoints "$none"); do
	printf 'X' | dd of="$folder/model.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
done
kill -KILL "$(trainer "$none")"
run_reaches "$none" failed 60
passed "with no valid checkpoint among several the run stops"
like "$(lbctl status "$none" --json | json text)" "no valid checkpoint in .*checkpoints $none --deep says why" "it says so, and what looks as closely"
is "$(lbctl status "$none" --json | json attempts.1.launches.#)" 0 "no trainer was started"

# --- the look itself dies (for want of memory, say), or the disk fails it: that says nothing of
# what is there
looks() {	# NAME ACTION [VARIABLE]
	printf '%s\n' "LB_FAILPOINT=search.look:$2" ${3:+"$3"} >"$T/env-$1"
	chmod 600 "$T/env-$1"
	lbctl submit --name "$1" --set "run.env_file=$T/env-$1" --set restart.backoff_first=1s \
		--set "checkpoint.pattern=step-{step}" -- sh -c 'mkdir -p "$LB_CHECKPOINT_DIR/step-5"' >/dev/null
}
mkdir "$T/once"
looks once kill "LB_FAILPOINT_ONCE=$T/once"
run_reaches once completed 60
is "$(lbctl status once --json | json attempts.#)" 1 "a search that died is made once more, at once"
for action in kill error; do
	looks $action $action
	wait_for "[ \"\$(lbctl status $action --json | json attempts.#)\" -ge 2 ]" 60
	is "$(lbctl status $action --json | json attempts.0.cause)" crash "$action: at last another job tries"
	like "$(lbctl status $action --json | json attempts.0.text)" "no checkpoint could be looked for" \
		"$action: it says so"
	lbctl kill --now $action >/dev/null
done

# --- lbworker itself says that training diverged: restart.rollback hears it -----------------------
lbctl submit "$T/run.toml" --name wild --set optimizer.lr=100 --set model.init_std=10 \
	--set training.max_norm=0 --set lr_scheduler.warmup_steps=0 --set restart.rollback=1 >/dev/null
run_reaches wild failed 90
is "$(lbctl status wild --json | json cause)" diverged "a loss that is no number is told as diverged"
like "$(lbctl events wild)" 'rollback .*training diverged' "and restart.rollback is heeded"
done_testing
