#!/bin/sh
# SPDX-License-Identifier: MIT
# lbrun in front of every rank of a job on two nodes.
. "$(dirname "$0")/lib.sh"
cluster_start 2

# An srun whose signal to the other ranks does not arrive; what becomes of that is looked at last.
lost=$T/lost/attempts/1
mkdir -p "$lost" "$T/lost/checkpoints" "$T/bin"
cat >"$T/bin/srun" <<'END'
#!/bin/sh
trap 'exit 143' TERM
echo "srun: error: n2: task 1: Exited with exit code 5" >&2
echo "srun: launch/slurm: _step_signal: Terminating StepId=1.0" >&2
while :; do sleep 0.1; done
END
chmod +x "$T/bin/srun"
printf '{"version":1,"token":"%032d","run":"lost","number":1,"command":["true"],"workdir":"%s",
	"run_dir":"%s","checkpoint_dir":"%s/checkpoints","lbd_socket":null,"launcher":"srun",
	"kill_grace_ms":2000,"kill_wait_ms":1000,"in_place":0,"never_on_exit_codes":[]}' \
	3 "$T/lost" "$T/lost" "$T/lost" >"$lost/attempt.json"
printf '#!/bin/sh\nPATH=%s:$PATH\nexec %s --attempt %s\n' "$T/bin" "$B/lbrun" "$lost" >"$lost/job.sh"
sbatch -N1 -n1 --no-requeue -D "$T/lost" -o "$lost/out.log" "$lost/job.sh" >/dev/null

R=$T/run
F=$R/attempts/1
mkdir -p "$F" "$R/checkpoints"
cat >"$T/rank.sh" <<'END'
echo "rank $SLURM_PROCID launch $LB_LAUNCH"
setsid sleep "$2" &
case $LB_LAUNCH.$SLURM_PROCID in
1.1) exit 5 ;;
1.*) sleep "$2" ;;
esac
# A polite one, and one that ignores SIGTERM.
[ $SLURM_PROCID = 1 ] && trap '' TERM || trap 'echo asked; exit 0' TERM
: >"$1/up$SLURM_PROCID"
while :; do sleep 0.1; done
END
printf '{"version":1,"token":"%032d","run":"r1","number":1,"command":["sh","%s","%s","%s"],"workdir":"%s",
	"run_dir":"%s","checkpoint_dir":"%s/checkpoints","lbd_socket":null,"launcher":"srun",
	"kill_grace_ms":2000,"in_place":1,"never_on_exit_codes":[]}' \
	1 "$T/rank.sh" "$T" "$mark" "$R" "$R" "$R" >"$F/attempt.json"
printf '#!/bin/sh\nexec %s --attempt %s\n' "$B/lbrun" "$F" >"$F/job.sh"

# what people set for themselves, jobs get
job=$(SCANCEL_INTERACTIVE=true sbatch --parsable -N2 --ntasks-per-node=1 --no-requeue -D "$R" \
	-o "$F/out.log" "$F/job.sh")
wait_for '[ -e "$T/up0" ] && [ -e "$T/up1" ]' 60 || diag "$(cat "$F/out.log")"
ok "rank 0 runs again, with its prefix" \
	wait_for 'grep -qx "\[n1:0\] rank 0 launch 2" "$F/out.log"' 60
ok "and rank 1, on the other node" \
	wait_for 'grep -qx "\[n2:1\] rank 1 launch 2" "$F/out.log"' 60
like "$(cat "$F/spool.jsonl")" '"nodes":\["n1","n2"\]' "the nodes are recorded"
ok "the first launch left nothing behind" wait_for '[ "$(pgrep -cf "^sleep $mark\$")" = 2 ]' 10

# Where the ranks are, on both nodes, while they go on.
printf '{"version":1,"by":"ada"}' >"$F/stacks"
ok "the stacks are written" wait_for 'grep -q "\"kind\":\"stacks\"" "$F/spool.jsonl"' 90
for node in 1 2; do
	like "$(cat "$F"/stacks-2-*.n$node.txt)" "^[0-9]+  sh $T/rank.sh" "those of node $node"
done
ok "the ranks live on" [ "$(pgrep -cf "^sleep $mark\$")" = 2 ]

printf '{"version":1,"order":"kill","by":"ada","text":""}' >"$F/order"
began=$(now_ms)
scancel --batch --signal=TERM "$job"
wait_for '[ -e "$F/exit.json" ]' 20
diag "grace 2000 ms, exit record after $(($(now_ms) - began)) ms"
ok "then no process is left on either node" [ -z "$(pgrep -f "^sleep $mark\$")" ]
like "$(cat "$F/exit.json")" '"killed".*"launches":2.*by ada' "an order ends both"
ok "the polite one was asked" wait_for 'grep -qx "\[n1:0\] asked" "$F/out.log"' 10
slurms='slurmstepd|\[2[0-9T:.-]+\] error: \*\*\* '	# since 26.05
is "$(grep -Ev "^(\[n[12]:[01]\] |$slurms)" "$F/out.log")" "" "every line but Slurm's own has its prefix"

# A job on both nodes that hangs: its stacks on every node are written before anybody is killed.
F=$R/attempts/2
mkdir -p "$F"
cat >"$T/hang.py" <<END
import os, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
if os.environ["SLURM_PROCID"] == "0":
    lb.send("hello", rank=0, world=2, pid=os.getpid())
    lb.send("phase", name="train")
    for step in range(1, 5):
        lb.send("step", step=step, loss=1.0)
time.sleep(1000)
END
printf '{"version":1,"token":"%032d","run":"r1","number":2,"command":["python3","%s"],"workdir":"%s",
	"run_dir":"%s","checkpoint_dir":"%s/checkpoints","lbd_socket":null,"launcher":"srun",
	"kill_grace_ms":1000,"in_place":0,"never_on_exit_codes":[],
	"watch":{"step_timeout_ms":2000,"setup_timeout_ms":60000}}' \
	2 "$T/hang.py" "$R" "$R" "$R" >"$F/attempt.json"
printf '#!/bin/sh\nexec %s --attempt %s\n' "$B/lbrun" "$F" >"$F/job.sh"
sbatch --parsable -N2 --ntasks-per-node=1 --no-requeue -D "$R" -o "$F/out.log" \
	"$F/job.sh" >/dev/null
wait_for '[ -e "$F/exit.json" ]' 90
like "$(cat "$F/exit.json")" '"hang"' "a job on two nodes hangs"
for node in 1 2; do
	like "$(cat "$F"/stacks-1-*.n$node.txt)" "^[0-9]+  .*python3 $T/hang.py" \
		"the stacks of node $node, while it hung"
done
like "$(cat "$F/spool.jsonl")" '"kind":"stacks","text":"[^"]*stacks-1-' "are named in the spool"
ok "and nobody is left on either" [ -z "$(pgrep -f "$T/hang.py")" ]

# 61 s after srun's word.
wait_for '[ -e "$lost/exit.json" ]' 90
like "$(cat "$lost/exit.json")" '"error","exit_code":5,.*rank 1 on n2: exit status 5' \
	"ranks that srun could not end are ended, and the first one's end counts"
like "$(cat "$lost/out.log")" 'lbrun: ending the trainer: srun ended the launch 61 s ago' "it says why"
done_testing
