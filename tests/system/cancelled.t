#!/bin/sh
# SPDX-License-Identifier: MIT
# Jobs that end "cancelled", and a controller that dies in the first seconds of a job on purpose: a
# run is over for good when a person is known to have wanted that, and only then.
. "$(dirname "$0")/lib.sh"

job() {	# RUN [ATTEMPT]: from 0; else the last one's
	lbctl status "$1" --json >"$T/status"
	json "attempts.${2:-$(($(json attempts.# <"$T/status") - 1))}.job_id" <"$T/status"
}
begun() { wait_for "[ -s '$LB_HOME/runs/$1/attempts/$2/claim' ]" 60; }
submit() {
	lbctl submit --name "$1" --set restart.backoff_first=1s --set restart.max_without_progress=100 \
		-- sleep 1000 >/dev/null
}
submitted() { SLURM_TIME_FORMAT=%s scontrol -o show job "$1" | sed 's/.* SubmitTime=\([0-9]*\) .*/\1/'; }
runs() { job=$(job "$1") && [ "$(json state <"$T/status")" = running ] && [ "$(squeue -h -j "$job" -o %T)" = RUNNING ]; }

printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
mkdir "$T/bin"
cat >"$T/bin/sacct" <<END
#!/bin/sh
[ -s $T/answer ] && exec sh $T/answer
echo "Slurm accounting storage is disabled" >&2
exit 1
END
chmod +x "$T/bin/sacct"
PATH=$T/bin:$PATH
MC_KILLWAIT=2
# A controller that comes back believes of jobs that have ended that they run, for minutes, until
# their node speaks to it again: those must not take the place of others.
MC_CPUS=64
export MC_KILLWAIT MC_CPUS
cluster_start 1
lbd_start

# --- nobody's cancel, and a person's ----------------------------------------------------------
# As slurmd does with a job that it has already, moments after its start and as root.
submit early
begun early 1
run_reaches early running 30
scancel "$(job early 0)"
run_reaches early running 60 2
is "$(lbctl status early --json | json attempts.0.cause)" lost \
	"cancelled moments after its start, by nobody that is known: the run goes on"
like "$(lbctl events early)" 'cancelled the job, and nobody is known to have wanted that' "… and says why"

begun early 2
first=$(job early 1)
echo "echo '$first|CANCELLED by 4242|0:15|None|100|101|n1|$(submitted "$first")'" >"$T/answer"
scancel "$first"
run_reaches early killed 60
is "$(attempts early)" 2 "accounting knows that it was somebody else: the run is over"
: >"$T/answer"

lbctl submit --name waits --begin=now+1hour -- true >/dev/null
run_reaches waits queued 30
wait_for '[ "$(squeue -h -j "$(job waits 0)" -o %r)" = BeginTime ]' 30
scancel "$(job waits 0)"
run_reaches waits killed 60
is "$(attempts waits)" 1 "cancelled while it waited: that was a person"

# --- what it depends on failed ------------------------------------------------------------------
# Slurm cancels such a job, or leaves it; it forgets why (MinJobAge), and would let the next one
# run.
failed=$(sbatch --parsable --hold -o /dev/null --wrap 'exit 3')
for kill in yes no; do
	lbctl submit --name "dep-$kill" --dependency="afterok:$failed" --kill-on-invalid-dep=$kill \
		-- touch "$T/ran-$kill" >/dev/null
	run_reaches "dep-$kill" queued 30
done
scontrol release "$failed"
for kill in yes no; do
	run_reaches "dep-$kill" failed 60
	is "$(attempts "dep-$kill")" 1 "a dependency that failed: the run fails (--kill-on-invalid-dep=$kill)"
	like "$(lbctl status "dep-$kill")" 'what it depends on failed: DependencyNeverSatisfied' "… and says why"
	first=$(job "dep-$kill" 0)
	wait_for '[ -z "$(squeue -h -j "$first" -t PENDING -o %A 2>/dev/null)" ]' 60
	ok "… and its command never runs" test ! -e "$T/ran-$kill"
done

# Task by task: what its own task of the other array failed for never runs, the others do.
parts=$(sbatch --parsable --hold -o /dev/null --array=0-2 --wrap 'exit $((SLURM_ARRAY_TASK_ID == 0))')
for kill in yes no; do
	lbctl submit --name "corr-$kill" --dependency="aftercorr:$parts" --kill-on-invalid-dep=$kill --array=0-2 \
		--wrap 'touch "$LB_RUN_DIR/ran.$SLURM_ARRAY_TASK_ID"' >/dev/null
	run_reaches "corr-$kill" queued 30
done
scontrol release "${parts}_0"
wait_for '[ "$(squeue -h -r -t PENDING -o %r | grep -c NeverSatisfied)" = 1 ]' 60
scontrol release "${parts}_[1-2]"
for kill in yes no; do
	run_reaches "corr-$kill" failed 60
	is "$(cd "$LB_HOME/runs/corr-$kill" && echo ran.*) $(attempts "corr-$kill")" "ran.1 ran.2 1" \
		"tasks whose dependency failed never run, the others do (--kill-on-invalid-dep=$kill)"
done

exits 6 "submitted after it failed" lbctl submit --name late --dependency="afterok:$failed" --kill-on-invalid-dep=yes \
	-- true
like "$err" "--dependency=afterok:$failed.* can never be satisfied: a job there has ended otherwise than it must" \
	"it is refused, with the reason"

# --- tasks of an array --------------------------------------------------------------------------
# Tasks 0 and 1 run, the others wait in line. Of those a person cancels some: they are not run again
# when 0, which fails, is.
cat >tasks.slurm <<'END'
#!/bin/bash
#SBATCH --mem=50M -o /dev/null
echo "$SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/begun"
[ "$LB_ATTEMPT" -gt 1 ] && exit 0
await "$LB_RUN_DIR/go.$((SLURM_ARRAY_TASK_ID > 0))"
exit $((SLURM_ARRAY_TASK_ID == 0))
END
submit_tasks() {	# NAME ARRAY
	run=$1
	partition DOWN
	lbctl submit --name "$run" --array="$2" --set restart.backoff_first=0 --set restart.in_place=0 tasks.slurm >/dev/null
	wait_for 'lbctl status "$run" --json | json waits_for | grep -q Partition' 30
	partition UP
	wait_for '[ "$(wc -l <"$LB_HOME/runs/$run/begun")" = 2 ]' 60
}
begun_tasks() { sort "$LB_HOME/runs/$1/begun" | tr -d '\n'; }
submit_tasks some 0-6%2
array=$(job some 0)
scancel "${array}_6"
wait_for 'lbctl events some | grep -q "task_cancelled.*task 6;"' 60
scancel "${array}_[2,4-5]"
wait_for 'lbctl events some | grep -q "task_cancelled.*tasks 2, 4-5;"' 60
touch "$LB_HOME/runs/some/go.0" "$LB_HOME/runs/some/go.1"
run_reaches some killed 60
is "$(begun_tasks some) $(attempts some)" "0013 2" "tasks that a person cancelled are not run again, others are"
like "$(lbctl status some)" '4 of 7 tasks were cancelled in Slurm' "… and that is told"
is "$(lbctl status some --json | json cancelled_tasks.#)" 4 "… as is which"
lbctl restart some >/dev/null
run_reaches some completed 60
is "$(begun_tasks some)" 00123456 "until the run is restarted"
exits 0 "output that a script throws away" lbctl logs some
is "$err" "lbctl: no output: the script sends it to /dev/null" "is told as that"

# All that wait at once: what is left of them is a record without numbers.
submit_tasks rest 0-4%2
scancel "$(job rest 0)_[2-4]"
wait_for 'lbctl events rest | grep -q task_cancelled' 60
like "$(lbctl events rest)" 'task_cancelled .*: tasks 2-4; lbctl' "all tasks that wait are cancelled: those are told"
# Of those that end within the same second Slurm does not tell which came last.
second=$(date +%s)
wait_for "[ \$(date +%s) -gt $second ]" 10
touch "$LB_HOME/runs/rest/go.0" "$LB_HOME/runs/rest/go.1"
run_reaches rest killed 60
is "$(begun_tasks rest) $(attempts rest)" "001 2" "… and those that run go on"

# One that ran is known to be cancelled once it has run for long. Accounting knows earlier, and of
# those that nobody saw.
submit_tasks ran 0-1
array=$(job ran 0)
lbd_stop
echo "echo '${array}_1|CANCELLED by 4242|0:15|None|100|101|n1|$(submitted "$array")'" >"$T/answer"
scancel "${array}_1"
wait_for '[ -s "$LB_HOME/runs/ran/attempts/1/task-1/exit.json" ]' 60
# Of those that end within the same second Slurm does not tell which came last.
second=$(date +%s)
wait_for "[ \$(date +%s) -gt $second ]" 10
touch "$LB_HOME/runs/ran/go.0"
lbd_start
run_reaches ran killed 60
is "$(begun_tasks ran) $(attempts ran)" "001 2" "one that ran is not run again where accounting knows who cancelled it"
like "$(lbctl events ran)" 'task_cancelled .*: task 1; lbctl restart' "… and that is told"
: >"$T/answer"

# So it does of one that waited: it has no line for that.
submit_tasks away 0-3%2
array=$(job away 0)
lbd_stop
scancel "${array}_3"
{
	echo "cat <<'LINES'"
	for task in 0 1 2; do
		echo "${array}_$task|COMPLETED|0:0|None|100|101|n1|$(submitted "$array")"
	done
	echo LINES
} >"$T/answer"
touch "$LB_HOME/runs/away/go.0" "$LB_HOME/runs/away/go.1"
wait_for '[ -s "$LB_HOME/runs/away/attempts/1/task-0/exit.json" ] && [ -s "$LB_HOME/runs/away/attempts/1/task-2/exit.json" ]' 60
lbd_start
run_reaches away killed 90
is "$(begun_tasks away) $(attempts away)" "0012 2" "one that waited is not run again where accounting never saw it begin"
like "$(lbctl events away)" 'task_cancelled .*: task 3; lbctl restart' "… and that is told"
: >"$T/answer"

# Who sends one back into the queue has not cancelled it. What is left there of an attempt that is
# over goes.
submit_tasks back 0-1
array=$(job back 0)
scontrol update jobid="${array}_1" requeue=1
scontrol requeuehold "${array}_1"
wait_for '[ "$(squeue -h -r -j "$array" -t PENDING -o %K)" = 1 ]' 60
touch "$LB_HOME/runs/back/go.0"
run_reaches back completed 90
is "$(begun_tasks back) $(attempts back)" "0011 2" "a task that is sent back into the queue is run by the next attempt"
wait_for '[ -z "$(squeue -h -r -j "$array" -t PENDING -o %K)" ]' 30 && passed "… and leaves nothing in the queue"

# An attempt is over when all are that were to run: those that were cancelled may still wait in its
# job. A restart takes away what says so of them: they are for the next attempt then.
submit_tasks late 0-3%2
scancel "$(job late 0)_[2-3]"
wait_for 'lbctl events late | grep -q "task_cancelled.*tasks 2-3;"' 60
# Of those that end within the same second Slurm does not tell which came last.
second=$(date +%s)
wait_for "[ \$(date +%s) -gt $second ]" 10
partition DOWN
touch "$LB_HOME/runs/late/go.0" "$LB_HOME/runs/late/go.1"
run_reaches late queued 60 2
array=$(job late 1)
lbd_stop
scontrol hold "${array}_[2-3]"
partition UP
wait_for '[ -s "$LB_HOME/runs/late/attempts/2/exit.json" ]' 60
rm "$LB_HOME/runs/late/tasks/cancelled-"*
scontrol release "${array}_[2-3]"
wait_for '[ -z "$(squeue -h -j "$array" -o %A)" ]' 60
is "$(begun_tasks late)" 001 "what was cancelled does not begin in an attempt that is over"
lbd_start
run_reaches late killed 60

# Whatever had failed before, who cancels an array wants no other one.
submit_tasks whole 0-3%2
touch "$LB_HOME/runs/whole/go.0"
wait_for '[ "$(wc -l <"$LB_HOME/runs/whole/begun")" = 3 ]' 60
scancel "$(job whole 0)"
run_reaches whole killed 60
is "$(attempts whole)" 1 "an array that a person cancelled is over, also where a task had failed before"

# --- the controller dies ----------------------------------------------------------------------
# One that has forgotten a start cancels the job, which waits by then, when its node gives up
# ("Could not confirm batch launch"): as root, moments after it has come back.
lbctl submit --name unsure --begin=now+1hour -- true >/dev/null
run_reaches unsure queued 30
wait_for '[ "$(squeue -h -j "$(job unsure 0)" -o %r)" = BeginTime ]' 30
wait_for '[ "$(date +%s)" -gt $(($(submitted "$(job unsure 0)") + 1)) ]' 10
cluster_signal slurmctld TERM
wait_for '! scontrol ping | grep -q UP' 30
"$src/etc/minicluster" start-ctld "$cluster" || bail_out "slurmctld does not come back"
scancel "$(job unsure 0)"
wait_for '[ "$(attempts unsure)" = 2 ]' 60
is "$(lbctl status unsure --json | json attempts.0.cause)" launch_fail \
	"cancelled as it waited, by a controller that has just come back: that may have been its node"
lbctl kill --now unsure >/dev/null

# What it had not saved it forgets: the release and the start, the start, or nothing. Whatever it
# makes of the job that runs, no run is ended by that. Of one that it has forgotten altogether
# accounting knows that Slurm ended it; without accounting that takes minutes
# (tests/unit/test_reconcile_vain.c).
cat >"$T/answer" <<'END'
for run in r1 r2 r3 r4; do lbctl status $run --json; done 2>/dev/null |
	sed 's/"job_id"/\n&/g' | sed -n 's/^"job_id":\([0-9]*\),"submit_time":\([0-9]*\).*/\1 \2/p' |
	while read -r job submitted; do echo "$job|CANCELLED by 0|0:15|None|100|101|n1|$submitted"; done
END
# It gives numbers away again, too: a job whose number still runs is not started, and the node is
# drained until an administrator has had a look.
resume() {
	[ -z "$(sinfo -h -t drain -o %N)" ] || scontrol update nodename=n1 state=resume
}
for n in 1 2 3 4; do
	submit "r$n"
	wait_for 'resume; [ -s "$LB_HOME/runs/r$n/attempts/$(attempts "r$n")/claim" ]' 60
	# shellcheck disable=SC2034 # the condition has it
	due=$(($(uptime_ms) + 1200 * (n - 1)))
	wait_for '[ "$(uptime_ms)" -ge $due ]' 10
	cluster_signal slurmctld KILL
	ok "slurmctld comes back, killed $((1200 * (n - 1))) ms after a job's start" \
		"$src/etc/minicluster" start-ctld "$cluster"
done
for n in 1 2 3 4; do
	wait_for "resume; runs r$n" 60
	is "$(run_state "r$n")" running "its run runs ($n), in attempt $(attempts "r$n")"
	lbctl kill --now "r$n" >/dev/null
done
for n in 1 2 3 4; do
	run_reaches "r$n" killed 60
done
done_testing
