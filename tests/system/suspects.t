#!/bin/sh
# SPDX-License-Identifier: MIT
# A checkpoint is suspect only when the trainer itself failed right after it was handed over. The
# death of lbrun, of its node, or of the job by preemption, at just that moment, says nothing of the
# checkpoint.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\nidle_interval = "200ms"\n' >"$LB_HOME/lbd.toml"
cat >"$T/conf" <<'END'
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=guests Nodes=n[1-4] PriorityTier=1 PreemptMode=CANCEL GraceTime=0 MaxTime=INFINITE State=UP
PartitionName=owners Nodes=n[1-4] PriorityTier=9 PreemptMode=OFF MaxTime=INFINITE State=UP
END
export MC_CONF_EXTRA="$T/conf" MC_KILLWAIT=2
cluster_start 4
lbd_start

# Saves three, and fails; is ended from outside right after it has begun, three times; fails by
# itself; goes on.
cat >"$T/train.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*_}
echo "starting from $step"
case $LB_ATTEMPT in
1) for step in 10 20 30; do
	echo "step $step/60 loss 1.0"
	echo "state of $step" >"$LB_CHECKPOINT_DIR/ckpt_$step"
done
exit 1 ;;
2|3|4) echo $PPID >"$LB_RUN_DIR/began$LB_ATTEMPT"
exec sleep "$1" ;;
5) echo "KeyError: 'optimizer'" >&2
exit 1 ;;
esac
echo "step 60/60 loss 1.0"
END
lbctl submit --name r --set slurm.partition=guests --set slurm.cpus_per_task=4 --set restart.in_place=0 \
	--set restart.backoff_first=100ms --set restart.backoff_max=100ms \
	-- sh "$T/train.sh" "$mark" >/dev/null
status() { lbctl status r --json; }
node_of() { squeue -h -j "$(status | json "attempts.$1.job_id")" -o %N; }
begins() { wait_for "[ -s $LB_HOME/runs/r/began$1 ] && [ \"\$(run_state r)\" = running ]" 60; }
suspects() { lbctl checkpoints r --json | python3 -c '
import json, sys
print(*(c["step"] for c in json.load(sys.stdin) if c["suspect"]))'; }

begins 2
kill -KILL "$(cat "$LB_HOME/runs/r/began2")"
begins 3
is "$(suspects)" "" "lbrun was killed with SIGKILL: nothing is held against the checkpoint"
scontrol update nodename="$(node_of 2)" state=down reason=fire
begins 4
is "$(suspects)" "" "the node died: nothing"
owner=$(sbatch --parsable -p owners -w "$(node_of 3)" -n1 -c4 -o /dev/null --wrap "sleep $mark")
run_reaches r completed 60
is "$(status | json attempts.3.cause)" preempted "the job was preempted"
scancel "$owner"
is "$(lbctl logs r | sed -n 's/.*starting from //p' | tr '\n' ' ')" "0 30 30 30 30 20 " \
	"each of them was followed by a launch from the same one, the trainer's own failure was not"
is "$(suspects)" 30 "which is suspect now"
is "$(lbctl events r | grep -c checkpoint_suspect)" 1 "as is said once"
like "$(lbctl checkpoints r)" "^ +30 .*suspect.*KeyError: 'optimizer'" "with the trainer's last words"
done_testing
