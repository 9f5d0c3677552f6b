#!/bin/sh
# SPDX-License-Identifier: MIT
# A job ends while lbd is away, its lbrun leaves no record, and slurmctld has purged the job
# (MinJobAge) by the time lbd is back: accounting is asked third. The private cluster has no
# database, so `sacct` is a script of ours; tests/unit/test_accounting.c has the lines that the real
# one prints.
. "$(dirname "$0")/lib.sh"

run=forgotten
job() { lbctl status "$run" --json | json attempts.0.job_id; }
is_purged() { ! scontrol show job "$first" >/dev/null 2>&1; }

printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
mkdir "$T/bin"
cat >"$T/bin/sacct" <<END
#!/bin/sh
echo "\$@" >>$T/asked
cat $T/answer
END
chmod +x "$T/bin/sacct"
PATH=$T/bin:$PATH
export MC_MINJOBAGE=2
cluster_start 2
lbd_start

lbctl submit --name $run --set restart.max_without_progress=1 -- sleep 1000 >/dev/null
run_reaches $run running 30
first=$(job)
attempt=$LB_HOME/runs/$run/attempts/1
wait_for '[ -s "$attempt/claim" ]' 20
submitted=$(SLURM_TIME_FORMAT=%s scontrol -o show job "$first" | sed 's/.* SubmitTime=\([0-9]*\) .*/\1/')
lbd_stop
scancel --full --signal=KILL "$first"
wait_for is_purged 60
rm -f "$attempt/exit.json"	# what a node that lost its power would not have written
{
	echo "$first|FAILED|2:0|NonZeroExitCode|100|200|n1|1000"	# another job that had this id once
	echo "$first|PREEMPTED|0:0|None|$submitted|$submitted|n1|$submitted"
} >"$T/answer"
lbd_start
wait_for '[ "$(lbctl status $run --json | json attempts.#)" = 2 ] && [ "$(run_state $run)" = running ]' 40
is "$(lbctl status $run --json | json attempts.0.cause)" preempted "accounting knew how it ended"
like "$(lbctl events $run)" 'attempt 1: preempted: PREEMPTED \(accounting\)' "… and the story says whose word that is"
like "$(cat "$T/asked")" "-j $first\$" "… it was asked for the job by its id"
is "$(run_state $run)" running "… the run goes on, and nothing counted against it"
lbctl kill --now $run >/dev/null
run_reaches $run killed 20

# Slurm cancels a job because what it depends on failed, and has forgotten both when lbd is back.
failed=$(sbatch --parsable --hold -o /dev/null --wrap 'exit 3')
run=depends
lbctl submit --name $run --dependency="afterok:$failed" --kill-on-invalid-dep=yes -- touch "$T/ran" >/dev/null
run_reaches $run queued 30
wait_for '[ "$(squeue -h -j "$(job)" -o %r)" = Dependency ]' 30
first=$(job)
lbd_stop
scontrol release "$failed"
wait_for is_purged 60
lbd_start
run_reaches $run failed 60
is "$(lbctl status $run --json | json attempts.#)" 1 "it was to wait for another, and is forgotten: no second job is made"
like "$(lbctl status $run)" 'perhaps the other failed, so it is not run.*lbctl restart' "… it says why, and what to do"
ok "… and its command never runs" test ! -e "$T/ran"
done_testing
