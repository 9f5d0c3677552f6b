#!/bin/sh
# SPDX-License-Identifier: MIT
# What a start of the trainer takes, phase by phase, and compiled code that is kept on the node:
# lbrun alone, then one run under lbd, without a cluster.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"

run() { timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1; }
# The phases of launch K, each with its seconds.
phases() { sed -n "s/.*\"type\":\"start\",\"number\":$1,\"phases\":{\([^}]*\)}.*/\1/p" "$F/spool.jsonl"; }
names() { phases "$1" | tr ',' '\n' | cut -d'"' -f2 | tr '\n' ' '; }
seconds() { phases "$1" | tr ',' '\n' | sed -n "s/^\"$2\":\([0-9]*\).*/\1/p"; }
about_one_second() { [ "$1" -ge 1 ] && [ "$1" -le $((1 + patience)) ]; }	# of a second or a little more
add() { sed -i "s|}\$|,$1}|" "$F/attempt.json"; }	# KEYS: to attempt.json

cat >"$T/tells.py" <<END
import sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
lb.send("hello", rank=0, world=1, pid=1)
lb.send("phase", name="setup", what="imports")
time.sleep(1.1)
lb.send("phase", name="setup", what="data")
time.sleep(0.2)
lb.send("phase", name="train")
for step in range(1, 4):
    time.sleep(0.1)
    lb.send("step", step=step)
    lb.send("phase", name="eval")
lb.send("bye", status="done")
END

# --- what is told, and what is seen from outside ------------------------------------------------
fresh
attempt 1 "[\"python3\",\"$T/tells.py\"]"
exits 0 "a trainer that tells what it does" run
like "$(names 1)" '^(fence )?(search )?silent (setup )?imports data first_step $' "each phase is told, in order, up to the first step"
ok "with the time that it took" about_one_second "$(seconds 1 imports)"
is "$(grep -c '"type":"start"' "$F/spool.jsonl")" 1 "once"

fresh
attempt 1 '["sh","-c","sleep 1.1; echo loading; sleep 1.1; echo step 1 loss 2.5; echo step 2 loss 2.4"]'
exits 0 "one that only prints" run
like "$(names 1)" 'silent setup $' "is seen from outside"
ok "up to its first line" about_one_second "$(seconds 1 silent)"
ok "and to its first step" about_one_second "$(seconds 1 setup)"

fresh
attempt 1 '["sh","-c","echo begun; exit 3"]' 1
run
like "$(names 1)" 'silent setup $|silent $' "a launch that makes no step says how far it came"
like "$(names 2)" 'pause (search )?silent' "and the next one what came between"

fresh
printf '%s\n' "import sys; sys.path.insert(0, '$src/docs'); import lb_client as lb" \
	"lb.send('phase', name='setup', what='My Imports'); print(lb.errors, flush=True)" >"$T/bad.py"
attempt 1 "[\"python3\",\"$T/bad.py\"]"
run
like "$(cat "$F/out.log")" '"what" must be 1 to 32 letters' "a word that is none is refused, in words"

# --- the cache of the node ------------------------------------------------------------------------
D=$T/node
mkdir -m 1777 "$D"
mine=$D/lowbits-$(id -u)/cache
# cached NUMBER: a trainer that compiles once
cached() {
	attempt "$1" '["sh","-c","env | grep -E _CACHE >seen; test -e $TRITON_CACHE_DIR/k/code || { echo compiling; mkdir -p $TRITON_CACHE_DIR/k; head -c 200000 /dev/zero >$TRITON_CACHE_DIR/k/code; }"]'
	add "\"cache\":\"$D\",\"cache_bytes\":${2:-1000000},\"cache_variables\":[\"HF_DATASETS_CACHE\"]"
}
fresh
cached 1
CUDA_CACHE_PATH=/by/me exits 0 "a run with a cache" run
like "$(cat "$R/seen")" "TORCHINDUCTOR_CACHE_DIR=$mine/torchinductor" "variables point there"
like "$(cat "$R/seen")" "HF_DATASETS_CACHE=$mine/hf_datasets_cache" "those that the run names, too"
like "$(cat "$R/seen")" 'CUDA_CACHE_PATH=/by/me' "but not those that have a value"
is "$(stat -c %a "$mine")" 700 "it is ours alone"
like "$(cat "$F/out.log")" compiling "the first attempt compiles"
cached 2
run
unlike "$(cat "$F/out.log")" compiling "the next one on this node finds what was compiled"
mkdir -p "$mine/cuda/old"
head -c 900000 /dev/zero >"$mine/cuda/old/x"
touch -d 2020-01-01 "$mine/cuda/old/x"
cached 3
run
is "$(ls "$mine/cuda")$(ls "$mine/triton")" k "what is too much goes, the oldest first"
flock -s "$mine/.lb-lock" sh -c "echo >$T/held; sleep 1000" &
holder=$!
wait_for "[ -s $T/held ]" 10
cached 4 1000
run
unlike "$(cat "$F/out.log")" compiling "but nothing while somebody else may read there"
kill "$holder"; wait "$holder" 2>/dev/null
for pid in $(own_processes); do # its sleep
	[ "$pid" = $$ ] || [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sleep ] || kill "$pid"
done

# --- never a run's end ----------------------------------------------------------------------------
for trouble in "chmod 0777 $D" "chmod 1777 $D; chmod 0755 $D/lowbits-$(id -u)" "rm -rf $D; : >$D" "rm -f $D"; do
	sh -c "$trouble"
	fresh
	attempt 1 '["sh","-c","echo ${TRITON_CACHE_DIR:-none} >seen"]'
	add "\"cache\":\"$D\""
	run
	is "$? $(cat "$R/seen") $(grep -c '"kind":"cache_off"' "$F/spool.jsonl")" "0 none 1" "$trouble: the run goes without, and says so"
done
mkdir -m 1777 "$D"
fresh
attempt 1 '["sh","-c","echo ${TRITON_CACHE_DIR:-none} >seen"]'
add "\"cache\":\"$D\""
SLURM_JOB_NUM_NODES=2 run
is "$? $(cat "$R/seen") $(grep -c '"kind":"cache_off".*on several nodes' "$F/spool.jsonl")" "0 none 1" \
	"nodes where nobody of ours starts the ranks: without, and says so"
fresh
attempt 1 '["sh","-c","echo ${TRITON_CACHE_DIR:-none} >>seen; [ $(wc -l <seen) = 2 ]"]' 1
add "\"cache\":\"$D\""
LB_FAILPOINT=cache.open:error run
is "$? $(tr '\n' ' ' <"$R/seen" | sed "s|$mine|DIR|") $(grep -c '"kind":"cache_off"' "$F/spool.jsonl")" "0 none DIR/triton  1" \
	"a full disk: one launch without, the next one with it again"

# --- what people see of it ------------------------------------------------------------------------
lbd_start
lbctl submit --name s1 --set "cache.folder=$D" -- python3 "$T/tells.py" >"$T/out"
run_reaches s1 completed 60
like "$(lbctl status s1)" 'start +[0-9.]+s to the first step: (.*, )?imports [1-9][0-9]*(\.[0-9]+)?s' "lbctl status says what the start took"
like "$(lbctl status s1 --json | json attempts.0.launches.0.start.imports)" '^[1-9]' "in JSON, too"
like "$(lbctl goodput s1)" 'imports +[1-9][0-9]*s' "goodput sums it up"
is "$(lbctl goodput s1 --json | json starts.launches)" 1 "over launches"
like "$(lbctl advise s1)" 'starts: +[0-9.]+s each \(mean of 1\): .*imports' "advise has the mean"
lbctl report s1 -o "$T/page.html" >"$T/out" 2>&1
like "$(cat "$T/page.html")" 'A start takes' "and the report"
exits 2 "a cache needs a path" lbctl submit --set cache.folder=here -- true
like "$err" 'cache.folder: must be an absolute path' "in words"
exits 2 "and names of variables" lbctl submit --set "cache.folder=$D" --set 'cache.variables=["a b"]' -- true
done_testing
