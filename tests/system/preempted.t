#!/bin/sh
# SPDX-License-Identifier: MIT
# Somebody of a better partition takes the node: the attempt ends as preempted, the run waits in the
# queue at once, without a pause, and nothing counts against it.
. "$(dirname "$0")/lib.sh"

run=guest
printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
cat >"$T/conf" <<'END'
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=guests Nodes=n1 PriorityTier=1 PreemptMode=CANCEL GraceTime=0 MaxTime=INFINITE State=UP
PartitionName=graced Nodes=n1 PriorityTier=1 PreemptMode=CANCEL GraceTime=120 MaxTime=INFINITE State=UP
PartitionName=owners Nodes=n1 PriorityTier=9 PreemptMode=OFF MaxTime=INFINITE State=UP
END
export MC_CONF_EXTRA="$T/conf" MC_KILLWAIT=2
cluster_start 1
lbd_start

# one attempt without progress that counted would be the run's end
lbctl submit --name $run --set slurm.partition=guests --set slurm.cpus_per_task=4 \
	--set restart.max_without_progress=1 -- sleep 1000 >/dev/null
run_reaches $run running 30
wait_for '[ -s "$LB_HOME/runs/$run/attempts/1/claim" ]' 20
owner=$(sbatch --parsable -p owners -n1 -c4 -o /dev/null --wrap 'sleep 1000')
wait_for '[ "$(lbctl status $run --json | json attempts.#)" = 2 ] && [ "$(run_state $run)" = queued ]' 40
is "$(lbctl status $run --json | json attempts.0.cause)" preempted "the attempt ended as preempted"
is "$(lbctl status $run --json | json attempts.1.job_id)" "$((owner + 1))" \
	"the next job waits at once"
wait_for '[ "$(squeue -h -j "$owner" -o %T)" = RUNNING ]' 30
is "$(squeue -h -j "$owner" -o %T)" RUNNING "… behind the one that took its place"
ok "… and there was no pause" sh -c "! lbctl events $run | grep -Eq 'next attempt in [1-9]'"
scancel "$owner"
run_reaches $run running 30
is "$(lbctl status $run --json | json attempts.1.state)" running "it runs again once it may"
lbctl kill --now $run >/dev/null
run_reaches $run killed 20

# In the grace of a partition Slurm asks the steps of the job alone, and not lbrun: what saves then,
# and ends with status 0, is not done. SIGTERM may come twice, by the lbrun in front of a rank.
cat >saves.sh <<'END'
trap 'trap "" TERM; mkdir -p "$LB_CHECKPOINT_DIR/step-3" && echo x >"$LB_CHECKPOINT_DIR/step-3/model.pt"; exit ${1:-0}' TERM
[ "$LB_ATTEMPT" = 1 ] || { echo "step 9/9 loss 1"; exit 0; }
echo "step 2/9 loss 1"
echo "step 3/9 loss 1"
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
export SLURM_TIME_FORMAT=%A # a person's own: their jobs have it, too
printf '#!/bin/sh\n#SBATCH -p graced -n1 -c4\nsrun -c4 sh saves.sh\necho done\n' >script.slurm
lbctl submit --name script script.slurm >/dev/null
sed 's/srun.*/srun -o out sh saves.sh 143/; s/^echo.*/exit $?/' script.slurm >fails.slurm
for how in script ranks fails; do
	[ $how != fails ] || lbctl submit --name fails fails.slurm >/dev/null
	[ $how != ranks ] || lbctl submit --name ranks --set run.launcher=srun --set slurm.partition=graced \
		--set slurm.cpus_per_task=4 -- sh saves.sh >/dev/null
	wait_for '[ -e "$LB_HOME/runs/$how/ready" ]' 30
	owner=$(sbatch --parsable -p owners -n1 -c4 -o /dev/null --wrap 'sleep 1000')
	wait_for '[ "$(attempts $how)" = 2 ]' 40
	is "$(lbctl status $how --json | json attempts.0.cause) $(lbctl status $how --json | json attempts.0.launches.#)" \
		"preempted 1" "$how: steps that end in the grace are preempted"
	scancel "$owner"
	run_reaches $how completed 40
	is "$(lbctl status $how --json | json attempts.1.resumed_from_step)" 3 "… and go on"
done
done_testing
