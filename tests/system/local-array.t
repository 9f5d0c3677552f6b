#!/bin/sh
# SPDX-License-Identifier: MIT
# Job arrays on a machine without Slurm: one run, as many jobs as tasks, through deaths of lbd and
# of tasks.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
mkdir "$T/work"
cd "$T/work" || exit 1
# Each task tells when it begins and ends, in one file, and waits for its "go".
cat >tasks.slurm <<'END'
#!/bin/sh
#SBATCH --array=0-4%2
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
setsid sleep 4321 </dev/null >/dev/null 2>&1 &
echo "$!" >"$LB_RUN_DIR/child.$SLURM_ARRAY_TASK_ID"
echo "begin $SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/log"
await "$LB_RUN_DIR/go.$SLURM_ARRAY_TASK_ID"
echo "end $SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/log"
status=$(cat "$LB_RUN_DIR/go.$SLURM_ARRAY_TASK_ID")
[ "$status" = 0 ] || rm "$LB_RUN_DIR/go.$SLURM_ARRAY_TASK_ID"	# the next attempt waits for another word
exit "$status"
END
begun() { grep -c '^begin' "$LB_HOME/runs/$1/log" 2>/dev/null || :; }
field() { lbctl status "$1" --json | json "$2"; }
go() {	# RUN STATUS TASK…
	run=$1 status=$2
	shift 2
	for task; do
		echo "$status" >"$LB_HOME/runs/$run/go.$task.new"
		mv "$LB_HOME/runs/$run/go.$task.new" "$LB_HOME/runs/$run/go.$task"
	done
}
# The most tasks that were between begin and end at once.
at_once() { awk '/^begin/ { if (++n > most) most = n } /^end/ { n-- } END { print most }' "$LB_HOME/runs/$1/log"; }
submit() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" --set restart.backoff_first=0 "$@" tasks.slurm >/dev/null
}

# --- two at once ----------------------------------------------------------------------------------
submit tasks
wait_for '[ "$(begun tasks)" = 2 ]' 30
is "$(field tasks state)" running "an array runs"
go tasks 0 0
wait_for '[ "$(begun tasks)" = 3 ] && [ "$(field tasks step)" = 1 ]' 30
is "$(field tasks target_step)" 5 "its progress is told in tasks"
ok "what lives of its siblings is let live" lives "$(cat "$LB_HOME/runs/tasks/child.1")"
go tasks 0 1 2 3 4
run_reaches tasks completed 60
is "$(grep '^begin' "$LB_HOME/runs/tasks/log" | sort | tr -d '\n')" "begin 0begin 1begin 2begin 3begin 4" \
	"each index is run, once"
is "$(at_once tasks)" 2 "two at once, and never more"
is "$(field tasks step) $(field tasks attempts.#)" "5 1" "all in one attempt"
is "$(lbctl logs tasks | grep '^task')" 'task 0 of 5
task 1 of 5
task 2 of 5
task 3 of 5
task 4 of 5' "lbctl logs shows them by number"
like "$(lbctl logs --attempt 7 tasks 2>&1)" 'no attempt 7; it has 1$' "tasks are no attempts"

# --- one fails ------------------------------------------------------------------------------------
submit fails --set restart.in_place=0
go fails 0 0 1 2
go fails 3 3
wait_for 'lbctl events fails | grep -q "task_failed *task 3: error: exit status 3$"' 60
is "$(field fails state) $(field fails failed_tasks.#) $(field fails failed_tasks.0)" "running 1 3" \
	"a task that fails is told of while others run"
like "$(lbctl status fails)" '^ *failed  *task 3$' "and shown"
lbd_kill9
lbd_start
go fails 0 4
wait_for '[ "$(begun fails)" -ge 5 ] && [ "$(field fails attempts.#)" = 2 ]' 60
is "$(lbctl events fails | grep -c task_failed)" 1 "once, although lbd died"
go fails 0 3
run_reaches fails completed 60
is "$(field fails attempts.#) $(field fails attempts.0.cause)" "2 error" "a task that fails: another attempt"
is "$(grep '^begin' "$LB_HOME/runs/fails/log" | sort | tr -d '\n')" \
	"begin 0begin 1begin 2begin 3begin 3begin 4" "which runs what is not done, and that only"

# --- an end by order ------------------------------------------------------------------------------
submit doomed --array=1-20%2
wait_for '[ "$(begun doomed)" = 2 ]' 30
ok "an array is killed" lbctl kill --now doomed
run_reaches doomed killed 30
# shellcheck disable=SC2034 # wait_for reads it
children=$(cat "$LB_HOME"/runs/doomed/child.*)
wait_for 'for child in $children; do ! lives "$child" || exit 1; done' 20
passed "with all that its tasks had started"
is "$(begun doomed)" 2 "those that waited never started"
is "$(field doomed failed_tasks.#)" 0 "and none has failed"
submit waits --array=1-4 --hold
lbctl release waits >/dev/null
go waits 0 1 2 3 4
run_reaches waits completed 30

# Other indices, as who goes through a sweep in parts gives: what is done of them counts.
go waits 0 5 6
lbctl restart waits --set 'slurm.extra=["--array=3-6"]' >/dev/null
run_reaches waits completed 30
is "$(grep '^begin' "$LB_HOME/runs/waits/log" | sort | tr -d '\n') $(field waits step)/$(field waits target_step)" \
	"begin 1begin 2begin 3begin 4begin 5begin 6 4/4" "restarted with other tasks only those count that it has"
lbctl restart waits --set 'slurm.extra=["--array=1-3"]' >/dev/null
run_reaches waits completed 30
is "$(begun waits) $(field waits step)/$(field waits target_step)" "6 3/3" "and those that were done before are done"

# A machine may have a Slurm, too; the number of the array here is somebody else's there.
mkdir "$T/bin"
printf '#!/bin/sh\necho "$*" >>"%s/scancelled"\n' "$T" >"$T/bin/scancel"
chmod +x "$T/bin/scancel"
PATH=$T/bin:$PATH submit switched --array=1-4%2
wait_for '[ "$(begun switched)" = 2 ]' 30
mkdir -p "$LB_HOME/switches"
: >"$LB_HOME/switches/switched.kill"
run_reaches switched killed 30
is "$(begun switched)$(cat "$T/scancelled" 2>/dev/null)" 2 "a switch ends it, here only"

# --- lbd dies -------------------------------------------------------------------------------------
submit outlives
wait_for '[ "$(begun outlives)" = 2 ]' 30
job=$(field outlives attempts.0.job_id)
lbd_kill9
go outlives 0 0
wait_for 'grep -q "^end 0" "$LB_HOME/runs/outlives/log"' 20
lbd_start
wait_for '[ "$(begun outlives)" = 3 ]' 30
passed "a task that ended while lbd was away makes room for one that waited"
is "$(field outlives attempts.0.job_id) $(field outlives attempts.#)" "$job 1" "it is the same job"
lbd_kill9
lbd_start
go outlives 0 1 2 3 4
run_reaches outlives completed 60
is "$(grep '^begin' "$LB_HOME/runs/outlives/log" | sort | tr -d '\n')" \
	"begin 0begin 1begin 2begin 3begin 4" "after two deaths of lbd each task was run, once"
is "$(at_once outlives) $(field outlives attempts.#)" "2 1" "two at once, in one attempt"

submit counts --array=0-1 --set restart.in_place=0 --set restart.max_without_progress=1
go counts 0 0
wait_for '[ "$(begun counts)" = 2 ] && [ "$(field counts step)" = 1 ]' 30
lbd_kill9
lbd_start
go counts 3 1
wait_for '[ "$(begun counts)" = 3 ]' 60
go counts 0 1
run_reaches counts completed 30
is "$(field counts attempts.#)" 2 "that an attempt got on is known to the next lbd"

# --- another attempt ------------------------------------------------------------------------------
# One more task gets through in each attempt, and the budget is one without progress.
cat >flaky.slurm <<'END'
#!/bin/sh
#SBATCH --array=0-3
[ "$SLURM_ARRAY_TASK_ID" -lt "$LB_ATTEMPT" ] || exit 1
echo "end $SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/log"
END
lbctl submit --name flaky --set restart.backoff_first=0 --set restart.in_place=0 \
	--set restart.max_without_progress=1 flaky.slurm >/dev/null
run_reaches flaky completed 60
is "$(field flaky attempts.#)" 4 "an attempt in which more tasks get done is one with progress"

exits 4 "to run again what is all done is refused" lbctl restart flaky
like "$err" 'all 4 tasks of flaky have completed; to run them again: lbctl restart flaky --from scratch' "with what runs it"
lbctl restart flaky --set restart.backoff_first=1 >/dev/null
run_reaches flaky completed 30
is "$(field flaky attempts.#) $(field flaky step)" "5 4" \
	"an attempt that finds all tasks done is over at once"
is "$(grep -c '^end' "$LB_HOME/runs/flaky/log")" 4 "and runs none again"

cat >again.slurm <<'END'
#!/bin/sh
#SBATCH --array=0-1
echo "begin $LB_ATTEMPT.$SLURM_ARRAY_TASK_ID from ${LB_RESUME_FROM:-nothing}" >>"$LB_RUN_DIR/log"
[ "$LB_ATTEMPT" != 2 ] || [ "$SLURM_ARRAY_TASK_ID" != 1 ] || exit 1
END
lbctl submit --name again --set restart.backoff_first=0 --set restart.in_place=0 again.slurm \
	>/dev/null
run_reaches again completed 30
mkdir -p "$LB_HOME/runs/again/checkpoints/task-1/step-7"
lbctl restart again --from scratch >/dev/null
run_reaches again completed 30
is "$(cut -d ' ' -f 2 "$LB_HOME/runs/again/log" | sort | tr '\n' ' ')" "1.0 1.1 2.0 2.1 3.1 " \
	"from scratch all tasks are run again, and once"
is "$(cd "$LB_HOME/runs/again/checkpoints/task-1" && echo set-aside-*)" set-aside-2 \
	"which is for one attempt: the next one leaves what it finds"

# --- checkpoints ----------------------------------------------------------------------------------
# Each saves step 10 or 20 and fails; in the next attempt it completes.
cat >saves.slurm <<'END'
#!/bin/sh
#SBATCH --array=1-2
echo "$SLURM_ARRAY_TASK_ID from ${LB_RESUME_FROM#"$LB_CHECKPOINT_DIR/"}" >>"$LB_RUN_DIR/log"
[ "$LB_ATTEMPT" = 1 ] || exit 0
mkdir "$LB_CHECKPOINT_DIR/step-${SLURM_ARRAY_TASK_ID}0"
echo weights >"$LB_CHECKPOINT_DIR/step-${SLURM_ARRAY_TASK_ID}0/w"
exit 1
END
lbctl submit --name saves --set restart.backoff_first=0 --set restart.in_place=0 saves.slurm \
	>/dev/null
run_reaches saves completed 60
is "$(sort "$LB_HOME/runs/saves/log" | tr '\n' ,)" "1 from ,1 from step-10,2 from ,2 from step-20," \
	"a task goes on from what it saved itself, not from another's"
is "$(lbctl checkpoints saves | grep -c ' folder .*/task-[12]/step-[12]0$')" 2 \
	"lbctl checkpoints shows those of all"

# --- a wish ---------------------------------------------------------------------------------------
cat >asked.py <<'END'
import lb_client as lb, os, time
def tell(word):
    print(word, os.environ["SLURM_ARRAY_TASK_ID"], flush=True)
lb.send("phase", name="train")
tell("begins")
while True:
    lb.send("phase", name="train")
    if lb.asked("save"):
        tell("saves")
    time.sleep(0.1)
END
printf '#!/bin/sh\n#SBATCH --array=0-2%%2\nexec python3 asked.py\n' >asked.slurm
PYTHONPATH=$src/docs lbctl submit --name asked asked.slurm >/dev/null
told() { lbctl logs asked | grep "^$1" | sort | tr '\n' ,; }
wait_for '[ "$(told begins)" = "begins 0,begins 1," ]' 30
lbctl save asked >/dev/null
wait_for '[ "$(told saves)" = "saves 0,saves 1," ]' 30
passed "each task that runs is asked for a checkpoint"
like "$(lbctl stacks asked 2>&1)" '/task-[01]/stacks-1-' "the stacks of one are written, and shown"
lbctl kill --now asked >/dev/null
run_reaches asked killed 30

# --- what cannot be -------------------------------------------------------------------------------
exits 6 "too many tasks are refused" lbctl submit --array=0-1000 tasks.slurm
like "$err" 'array: without Slurm, .*at most 1000' "with how many there may be"
exits 2 "a command is no array" lbctl submit --set 'slurm.extra=["--array=1-3"]' -- true
like "$err" 'array: only a script can be an array.*--sweep' "and what does it instead"
done_testing
