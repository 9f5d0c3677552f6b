#!/bin/sh
# SPDX-License-Identifier: MIT
# Trainers that hang, trainers that only look like it, and what is written down before the end.
. "$(dirname "$0")/lib.sh"

R=$T/run
F=$R/attempts/1

# attempt 'JSON OF THE COMMAND' 'MEMBERS OF "watch"' [IN_PLACE] [GRACE_MS]
attempt() {
	rm -rf "$R"
	mkdir -p "$F" "$R/checkpoints"
	rm -f "$T"/seen*
	printf '{"version":1,"token":"%032d","run":"r1","number":1,"command":%s,"workdir":"%s",
		"run_dir":"%s","checkpoint_dir":"%s/checkpoints","lbd_socket":null,"launcher":"none",
		"kill_grace_ms":%s,"in_place":%s,"never_on_exit_codes":[],"watch":{%s}}' \
		1 "$1" "$R" "$R" "$R" "${4:-1000}" "${3:-0}" "$2" >"$F/attempt.json"
}
trainer() { attempt "[\"python3\",\"$T/trainer.py\",\"$1\",\"$T/seen\"]" "$2" "${3:-0}"; }
run() { SLURMD_NODENAME=n1 timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1; }
start() {
	SLURMD_NODENAME=n1 "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1 &
	lbrun_pid=$!
}
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$F/exit.json"; }
spool() { grep -e "$1" "$F/spool.jsonl"; }
nobody() {
	for pid in $(own_processes); do
		! tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q . || return 1
	done
}

# trainer.py KIND FILE: what it does in its first launch; in later ones it ends well.
cat >"$T/trainer.py" <<END
import os, random, signal, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
kind, seen = sys.argv[1:3]
first = os.environ["LB_LAUNCH"] == "1"

def steps(count, pause=lambda: 0.05):
    for step in range(1, count + 1):
        time.sleep(pause())
        lb.send("step", step=step, loss=1.0)

def reporting():
    lb.send("hello", rank=0, world=1, pid=os.getpid())
    lb.send("phase", name="train")

def stop():
    reporting()
    steps(3)
    if first:
        os.kill(os.getpid(), signal.SIGSTOP)

def spin():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reporting()
    steps(3)
    while first:
        pass

def idle():
    reporting()
    steps(3)
    time.sleep(60 if first else 0)

def never():
    reporting()
    time.sleep(60)

def setup():
    lb.send("hello", rank=0, world=1, pid=os.getpid())
    lb.send("phase", name="setup")
    time.sleep(60 if first else 0)

def slow_checkpoint():
    reporting()
    steps(3)
    lb.send("phase", name="checkpoint")
    time.sleep(4)
    lb.send("phase", name="train")
    steps(3)

def stuck_checkpoint():
    reporting()
    lb.send("phase", name="checkpoint")
    time.sleep(60 if first else 0)

def jitter():
    random.seed(7)
    reporting()
    steps(12, lambda: random.choice((0.01, 0.02, 0.05, 0.9)))

def back():
    """Comes back to life as soon as its stacks are being written."""
    reporting()
    steps(1)
    while not any(name.startswith("stacks-") for name in os.listdir(os.path.dirname(os.environ["LB_SOCKET"]))):
        time.sleep(0.01)
    steps(3)

def long():
    reporting()
    open(seen, "w").write("up")
    steps(100)

def wishes():
    reporting()
    open(seen, "w").write("up")
    step = 0
    while not lb.asked("save"):
        step += 1
        lb.send("step", step=step)
        time.sleep(0.02)
    open(seen + ".saved", "w").write("yes")
    while not lb.asked("stop"):
        lb.send("step", step=step)
        time.sleep(0.02)

def slow_rank():
    reporting()
    for step in range(1, 101):
        for rank in (1, 0):
            lb.send("step", step=step, rank=rank, step_ms=100.0 + 50 * rank)

def large():
    folder = os.environ["LB_CHECKPOINT_DIR"] + "/step-1"
    os.makedirs(folder)
    with open(folder + "/w", "w") as f:
        f.truncate(8 << 40)	# a hole: takes nothing
    lb.send("checkpoint", step=1, path=folder)
    lb.send("checkpoint", step=1, path=folder)

def deaf():
    open(seen, "w").write("up")
    time.sleep(60)

def silent():
    time.sleep(2.5)

def chatty():
    for i in range(40):
        print(i, flush=True)
        time.sleep(0.1)

def mute():
    time.sleep(60 if first else 0)

globals()[kind]()
lb.send("bye", status="done")
END

# --- hangs -----------------------------------------------------------------------------------
trainer stop '"step_timeout_ms":3000' 1
exits 0 "a stopped trainer is started again, in place" run
is "$(field launches)" 2 "two launches"
like "$(spool '"launch_end".*"number":1')" \
	'"cause":"hang".*hung: no step for [0-9]+s \(allowed: 3s\)' \
	"the first one hung"
stacks=$(cd "$F" && echo stacks-1-*.txt)
like "$(spool '"launch_end".*"number":1')" "; $stacks; trainer: killed by signal" \
	"its end names the stacks"
like "$(spool '"kind":"stacks"')" "\"text\":\"$F/$stacks\"" "and a note"
like "$(cat "$F/$stacks")" \
	'^  thread [0-9]+  Name:.python3  State:.[Tt] \((stopped|tracing stop)\)' \
	"which say that it was stopped"
like "$(cat "$F/$stacks")" "python3 $T/trainer.py stop" "and its command line"
like "$(cat "$F/$stacks")" "on .*: 1 process of the trainer" "and when and where"
is "$(stat -c %a "$F/$stacks")" 640 "the file is not for everybody"
if command -v gdb >/dev/null && ! grep -q 'Operation not permitted' "$F/$stacks"; then
	like "$(cat "$F/$stacks")" '^#[0-9]+ .*kill' "with a debugger: where in the program"
fi
like "$(cat "$F/out.log")" 'lbrun: the trainer hangs: no step for' "the output says it, too"

trainer spin '"step_timeout_ms":3000' 1
exits 0 "a trainer that spins and ignores SIGTERM" run
like "$(spool '"launch_end".*"number":1')" '"cause":"hang".*"signal":9' \
	"is killed, and started again"

trainer never '"step_timeout_ms":700' 1
exits 143 "one that hangs each time" run
is "$(field cause) $(field launches)" "hang 2" "is started again only so often"
is "$(cd "$F" && echo stacks-* | wc -w)" 2 "each time with its stacks"
ok "nobody is left" nobody

trainer setup '"setup_timeout_ms":3000' 1
exits 0 "one that hangs at its start" run
like "$(spool '"launch_end".*"number":1')" '"hang".*no word while starting' "is told so"

trainer stuck_checkpoint '"checkpoint_timeout_ms":3000' 1
exits 0 "a checkpoint that hangs" run
like "$(spool '"launch_end".*"number":1')" '"hang".*a checkpoint not done' "is told so"

trainer mute '"output_timeout_ms":3000' 1
exits 0 "a trainer that only prints, and stops doing so" run
like "$(spool '"launch_end".*"number":1')" '"hang".*no output' "hangs, where a person said so"

# --- no false alarms -------------------------------------------------------------------------
# Allowed are seconds where the trainer pauses for less than one: on a busy machine it may get no
# processor for that long.
stacks_count() { find "$F" -name 'stacks-*' | wc -l; }
# fine NAME KIND WATCH: one launch, no stacks
fine() {
	trainer "$2" "$3" 1
	run
	is "$(field cause) $(field launches) $(stacks_count)" "completed 1 0" "$1"
}
fine "a slow checkpoint is no hang" slow_checkpoint '"step_timeout_ms":3000'
fine "a trainer with jitter is none" jitter '"step_timeout_ms":4000'
fine "a trainer that reports nothing is not judged" silent \
	'"step_timeout_ms":500,"setup_timeout_ms":500'
fine "nor one that prints" chatty '"output_timeout_ms":3000'
fine "no limits: not judged" slow_checkpoint \
	'"step_timeout_ms":0,"setup_timeout_ms":0,"checkpoint_timeout_ms":0'

trainer back '"step_timeout_ms":3000' 1
run
is "$(field cause) $(field launches)" "completed 1" \
	"who goes on while its stacks are written lives on"
is "$(stacks_count)" 1 "the stacks are kept"

# The whole job stopped for a while, as "scontrol suspend" does; lbrun goes on first.
trainer long '"step_timeout_ms":4000' 1
start
wait_for '[ -s "$T/seen" ]' 10
shepherd=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$F/claim")
python=$(spool launch_start | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
kill -STOP "$lbrun_pid" "$python" "$shepherd"
# shellcheck disable=SC2034 # in what is waited for
began=$(now_ms)
wait_for '[ $(($(now_ms) - began)) -gt 7000 ]' 10
kill -CONT "$lbrun_pid" "$shepherd"
wait_for '[ $(($(now_ms) - began)) -gt 7500 ]' 10
kill -CONT "$python"
wait $lbrun_pid
is "$(field cause) $(field launches) $(stacks_count)" "completed 1 0" \
	"a job that was suspended did not hang"

# --- what a person asks of a trainer that runs --------------------------------------------------
printf '[run]\nname = "w1"\nscheduler = "local"\ncommand = ["python3", "%s/trainer.py", "wishes", "%s/seen"]\n' \
	"$T" "$T" >"$T/w1.toml"
rm -f "$T"/seen*
lbd_start
ok "a run of lbd's" lbctl submit "$T/w1.toml"
wait_for '[ -s "$T/seen" ]' 20
run_reaches w1 running 20
exits 0 "lbctl stacks" lbctl stacks w1
like "$out" "^$LB_HOME/runs/w1/attempts/1/stacks-1-[0-9T]*.txt\$" "says where they are"
like "$out" 'python3 .*trainer.py wishes' "and shows them"
like "$(cat "$LB_HOME"/runs/w1/attempts/1/stacks-1-*.txt)" 'python3 .*trainer.py wishes' \
	"and there they are"
exits 0 "lbctl save" lbctl save w1
ok "reaches the trainer" wait_for '[ -s "$T/seen.saved" ]' 20
wait_for 'lbctl events w1 --json | grep -q "asked the trainer for a checkpoint, by $(id -un)"' 20
is "$(run_state w1)" running "which goes on after both"
ok "neither is left to be done again" [ ! -e "$LB_HOME/runs/w1/attempts/1/save" -a \
	! -e "$LB_HOME/runs/w1/attempts/1/stacks" ]
ok "it can be ended as before" lbctl kill w1
run_reaches w1 killed 20
exits 4 "a run that does not run cannot be asked" lbctl save w1
like "$err" "w1 is killed: there is no trainer to ask" "and that is said"
exits 3 "nor one that does not exist" lbctl stacks nobody
rm -f "$T"/seen*
ok "a run that is asked in turn" lbctl submit "$T/w1.toml" --name w2 --set checkpoint.save_every=1s
ok "saves without anybody's order" wait_for '[ -s "$T/seen.saved" ]' 20
wait_for 'lbctl events w2 --json | grep -q "asks the trainer for checkpoints, by checkpoint.save_every"' 20
ok "which is told" lbctl kill w2
exits 2 "an interval that is none" lbctl submit --set checkpoint.save_every=often -- true
like "$err" 'checkpoint.save_every: must be "auto", or a duration' "is refused, and shown how"
run_reaches w2 killed 20
lbd_stop

attempt "[\"python3\",\"$T/trainer.py\",\"deaf\",\"$T/seen\"]" ''
start
wait_for '[ -s "$T/seen" ]' 10
printf '{"version":1,"by":"ada"}' >"$F/save"
kill -HUP $lbrun_pid
ok "a trainer that cannot be asked" wait_for \
	'spool "reads no orders: no checkpoint was asked for, by ada"' 10
kill -TERM $lbrun_pid
wait $lbrun_pid

# --- what is worth a note --------------------------------------------------------------------
trainer slow_rank '' 0
run
is "$(spool '"slow_rank"' | sed 's/.*"text":"\([^"]*\).*/\1/')" \
	"rank 1 takes 150 ms for a step, the others 100 ms" "a slow rank is named, once"
trainer large '' 0
sed 's|"lbd_socket"|"checkpoint_pattern":"step-{step}","lbd_socket"|' "$F/attempt.json" >"$T/x" &&
	mv "$T/x" "$F/attempt.json"
run
is "$(spool '"no_space"' | grep -c 'a checkpoint takes 8796.1 GB, .* are free')" 1 \
	"no room for the next checkpoint, told once"

# --- a person's order wins -------------------------------------------------------------------
attempt "[\"python3\",\"$T/trainer.py\",\"spin\",\"$T/seen\"]" '"step_timeout_ms":1000' 5 60000
start
wait_for '[ "$(stacks_count)" = 1 ]' 10
printf '{"version":1,"order":"kill_now","by":"ada","text":""}' >"$F/order"
kill -QUIT $lbrun_pid
wait $lbrun_pid
is "$(field cause) $(field launches)" "killed 1" "a kill while it hangs is a kill"
ok "nobody is left then" nobody
attempt "[\"python3\",\"$T/trainer.py\",\"idle\",\"$T/seen\"]" '"step_timeout_ms":1000' 5 60000
start
wait_for '[ "$(stacks_count)" = 1 ]' 10
printf '{"version":1,"order":"kill","by":"ada","text":""}' >"$F/order"
kill -TERM $lbrun_pid
wait $lbrun_pid
is "$(field cause) $(field launches)" "killed 1" "also one that leaves it time"

done_testing
