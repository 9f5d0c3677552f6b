#!/bin/sh
# SPDX-License-Identifier: MIT
# A job that is shorter than its training: a last checkpoint before the limit, then the next job.
. "$(dirname "$0")/lib.sh"
cluster_start 1
lbd_start

cat >"$T/train.py" <<END
import os, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
folder = os.environ["LB_CHECKPOINT_DIR"]
start = int(os.environ.get("LB_RESUME_FROM", "step-0").rsplit("-", 1)[1])
lb.send("hello", rank=0, world=1, pid=os.getpid())
lb.send("phase", name="train")
step = start
while start == 0 or step < start + 5:
    step += 1
    lb.send("step", step=step, loss=1.0)
    if lb.asked("stop"):
        os.makedirs(f"{folder}/step-{step}")
        with open(f"{folder}/step-{step}/state", "w") as f: f.write(str(step))
        lb.send("checkpoint", step=step, path=f"{folder}/step-{step}")
        lb.send("bye", status="stopped")
        sys.exit(0)
    time.sleep(0.2)
lb.send("bye", status="done")
END
# A launcher that forwards no signal and outlives none, as torchrun and mpirun may be.
printf 'trap "" USR1\npython3 %s/train.py\nexit $?\n' "$T" >"$T/launch.sh"
cat >"$T/run.toml" <<END
[run]
name = "r1"
command = ["sh", "$T/launch.sh"]
[slurm]
time = "1m"
signal_before = "30s"
[checkpoint]
pattern = "step-{step}"
END
ok "a run whose job is too short" lbctl submit "$T/run.toml"
lbctl submit --name cut --array=3 --time=1 --set restart.policy.timeout=stop --wrap 'sleep 1000' >/dev/null
run_reaches r1 running 30
run_reaches r1 completed 150
status=$(lbctl status r1 --json)
is "$(echo "$status" | json attempts.#)" 2 "two attempts"
is "$(echo "$status" | json attempts.0.cause)" timeout "the first one ended for its time limit"
is "$(echo "$status" | json attempts.0.exit_code)" 0 "by itself, before Slurm ended it"
is "$(echo "$status" | json attempts.1.resumed_from_step)" \
	"$(echo "$status" | json attempts.0.launches.0.last_step)" \
	"the second one went on just there"
like "$(lbctl events r1)" "the job's time limit is near" "the events say why"
run_reaches cut failed 60
like "$(lbctl events cut)" "task_failed +task 3: timeout: the job's time limit came; " "so do those of an array whose task Slurm ended"
like "$(lbctl status cut)" "attempt 1: timeout, " "and its status"
done_testing
