#!/bin/sh
# SPDX-License-Identifier: MIT
# A node that is set to drain, and a maintenance reservation: the trainer is asked for a checkpoint
# first, then the run goes on elsewhere, with no step done twice; where there is no other node it
# trains on, and says so.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
cluster_start 2
lbd_start

# Saves when it is asked to, and before it stops; each step that it makes is a line of the file.
cat >"$T/train.py" <<END
import os, pathlib, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb

root = pathlib.Path(os.environ["LB_CHECKPOINT_DIR"])
step = int(os.environ.get("LB_RESUME_FROM", "step-0").rsplit("-", 1)[1])

def save():
    saved = root / f"step-{step}"
    saved.mkdir(exist_ok=True)
    (saved / "weights").write_text(str(step))
    (saved / "complete").touch()
    lb.send("checkpoint", step=step, path=str(saved))

lb.send("hello", rank=0, world=1, pid=os.getpid())
lb.send("phase", name="train")
while not lb.asked("stop"):
    step += 1
    with open("$T/steps." + os.environ["LB_RUN"], "a") as steps:
        steps.write(f"{step}\n")
    lb.send("step", step=step)
    time.sleep(0.1)
    if lb.asked("save"):
        save()
save()
lb.send("bye", status="stopped")
END
cat >"$T/job.toml" <<END
[run]
command = ["python3", "$T/train.py"]
[watch]
stop_grace = "20s"
[checkpoint]
pattern = "step-{step}"
complete_when = "complete"
END
node_of() { lbctl status "$1" --json | json "attempts.$2.nodes.0"; }
trains() { wait_for "[ \"\$(wc -l <$T/steps.$1)\" -gt $2 ]" 40; }
twice() { sort -n "$T/steps.$1" | uniq -d | wc -l; }
told() { wait_for "lbctl events $1 | grep -Eq '$2'" 30; }

# --- a node is set to drain, and there is no other ------------------------------------------------
scontrol update nodename=n2 state=drain reason=spare
ok "a run on the only node" lbctl submit --name d "$T/job.toml"
run_reaches d running 30
trains d 3
scontrol update nodename=n1 state=drain reason='bad fan'
ok "the node is set to drain: a checkpoint is asked for" told d 'lbd +save +n1 is set to drain: bad fan$'
ok "and is there" told d ' checkpoint +step [0-9]+'
ok "it trains on, for there is no other, and says so" wait_for \
	'lbctl why d | grep -Eq "it runs; n1 is set to drain: bad fan; a checkpoint was asked for; it does not go on elsewhere yet: [A-Za-z]"' 30
is "$(attempts d) $(run_state d)" "1 running" "in the same attempt"

# --- there is one again ---------------------------------------------------------------------------
scontrol update nodename=n2 state=resume
wait_for 'lbctl save d >/dev/null && lbctl events d | grep -q " leaving "' 60
like "$(lbctl events d)" ' leaving +n1 is set to drain: bad fan: attempt 1 ends behind its checkpoint of step [0-9]+, the next one goes on elsewhere' \
	"another node is free: it leaves behind its next checkpoint"
run_reaches d running 40 2
like "$(lbctl events d)" 'attempt_end +attempt 1: preempted: stop ordered by lbd: n1 is set to drain' "the ledger has why"
is "$(node_of d 1)" n2 "and goes on there"
trains d "$(($(wc -l <"$T/steps.d") + 2))"
is "$(twice d)" 0 "no step was made twice"
unlike "$(lbctl why d)" 'set to drain' "where it is nothing is in its way"

# --- maintenance ----------------------------------------------------------------------------------
scontrol update nodename=n1 state=resume
# one that floats is always to begin, and never does: it keeps long jobs away
scontrol create reservation reservationname=float starttime=now+100 duration=60 users=root nodes=n2 \
	flags=maint,ignore_jobs,time_float >"$T/reservation" 2>&1
scontrol create reservation reservationname=service starttime=now+110 duration=60 users=root nodes=n2 \
	flags=maint,ignore_jobs >>"$T/reservation" 2>&1
ok "maintenance is to begin: a checkpoint is asked for" told d 'lbd +save +the maintenance reservation service begins on n2 at 20'
ok "and it leaves behind that" told d ' leaving +the maintenance reservation service begins on n2 at .*: attempt 2 ends behind its checkpoint of step'
run_reaches d running 40 3
is "$(node_of d 2)" n1 "it goes on at the other node"
trains d "$(($(wc -l <"$T/steps.d") + 2))"
is "$(twice d)" 0 "no step was made twice"
scontrol delete reservationname=service
scontrol delete reservationname=float

# --- one that is to stay --------------------------------------------------------------------------
ok "a run that is to stay" lbctl submit --name s --set restart.leave=false --set slurm.nodelist=n2 "$T/job.toml"
run_reaches s running 30
trains s 1
lbd_kill9
scontrol update nodename=n2 state=drain reason=fan
lbd_start
ok "it drains while lbd is away: a checkpoint all the same" told s 'lbd +save +n2 is set to drain: fan$'
ok "why" wait_for 'lbctl why s | grep -q "it stays (restart.leave)"' 20
scontrol update nodename=n2 state=resume
ok "the node is well again: nothing to tell" wait_for 'lbctl why s | grep -q "it does not wait: it runs"' 20
for run in d s; do lbctl kill --now $run >/dev/null; run_reaches $run killed 20; done
is "$(lbctl events s | grep -c ' leaving ')" 0 "and it had stayed"
done_testing
