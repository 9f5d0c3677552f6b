#!/bin/sh
# SPDX-License-Identifier: MIT
# An array of which one task dies without a word, on a node that lost its power perhaps, and is
# purged from Slurm before lbd looks: the run is not completed, and another attempt does what is
# missing.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
export MC_MINJOBAGE=2
cluster_start 2
lbd_start
mkdir "$T/work"
cd "$T/work" || exit 1
cat >tasks.slurm <<'END'
#!/bin/bash
#SBATCH --array=0-2 --mem=100M -n1 --output=%x_%A_%a.out
echo "$SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/started"
: >"$LB_RUN_DIR/up.$SLURM_ARRAY_TASK_ID"
[ "$LB_ATTEMPT" -gt 1 ] && exit 0
await "$LB_RUN_DIR/go.$SLURM_ARRAY_TASK_ID"
END
exits 6 "more than the site allows is refused" lbctl submit --name many --array=0-10001 tasks.slurm
like "$err" '^lbctl: --array=0-10001: .*; the highest index here is 10000 .MaxArraySize.$' "with what it allows"
exits 2 "a command can be none" lbctl submit --name command --array=0-3 -- true
like "$err" 'array: only a script can be an array.*--sweep' "and what does it instead is told"
lbctl submit --name tasks --set restart.backoff_first=0 tasks.slurm >/dev/null
run=$LB_HOME/runs/tasks
attempt=$run/attempts/1
wait_for '[ -e "$run/up.0" ] && [ -e "$run/up.1" ] && [ -e "$run/up.2" ]' 60
touch "$run/go.0"
wait_for '[ "$(lbctl status tasks --json | json step)" = 1 ]' 60
is "$(lbctl status tasks --json | json target_step)" 3 "progress of an array is told in tasks"
array=$(lbctl status tasks --json | json attempts.0.job_id)
lbd_stop
# Task 1 ends with all its processes at once; nobody writes a record.
doomed=$(squeue -h -r -j "$array" -o '%K %A' | sed -n 's/^1 //p')
# Clusters of other tests have jobs of this number, too: only what names our folder is ours.
for stepd in $(pgrep -f "slurmstepd: \[$doomed\."); do
	for pid in $(pgrep -P "$stepd"); do
		grep -qzF "$T/" "/proc/$pid/environ" 2>/dev/null && kill -9 "$pid"
	done
done
for pid in $(pgrep -f "$attempt/task-1"); do
	kill -9 "$pid" 2>/dev/null
done
for pid in $(shepherds "$doomed"); do
	kill -9 "$pid" 2>/dev/null
done
wait_for '! scontrol show job "$doomed" 2>/dev/null | grep -q "ArrayTaskId=1 "' 90
rm -f "$attempt/task-1/exit.json"
touch "$run/go.2"
wait_for '[ -s "$attempt/task-2/exit.json" ]' 30
ok "then there is no word for the whole" [ ! -e "$attempt/exit.json" ]
lbd_start
run_reaches tasks completed 90
is "$(lbctl status tasks --json | json attempts.#)" 2 "it takes another attempt"
is "$(lbctl status tasks --json | json attempts.0.cause)" lost "as nobody knows what became of the task"
like "$(lbctl events tasks)" 'attempt_end  *attempt 1: lost: a task left no word: it died, or was cancelled' "which is said"
is "$(sort "$run/started" | tr '\n' ' ')" "0 1 1 2 " "what had completed is not done again"
is "$(lbctl status tasks --json | json step)" 3 "and all are done"

# Slurm says that nothing has changed, for longer than it remembers what has ended; then somebody
# cancels what waits.
lbctl submit --name quiet --array=0-2%1 tasks.slurm >/dev/null
wait_for '[ -e "$LB_HOME/runs/quiet/up.0" ]' 60
array=$(lbctl status quiet --json | json attempts.0.job_id)
for task in 1 2; do
	# shellcheck disable=SC2034 # the condition has it
	due=$(($(uptime_ms) + 5000))
	wait_for '[ "$(uptime_ms)" -ge $due ]' 20
	scancel "${array}_$task"
done
wait_for 'lbctl events quiet | grep -c "task_cancelled.*: task [12];" | grep -qx 2' 30 &&
	passed "tasks that are cancelled when nothing had changed for long are told of"
lbctl kill --now quiet >/dev/null

# sbatch would try again by itself, for longer than lbd waits.
sed -i 's/^MaxJobCount=.*/MaxJobCount=3/' "$cluster/slurm.conf"
cluster_signal slurmctld TERM
"$src/etc/minicluster" start-ctld "$cluster" || bail_out "slurmctld does not come back"
lbctl submit --name large --array=0-9 tasks.slurm >/dev/null
wait_for 'lbctl status large | grep -Eq "waits for .*MaxJobCount(=3)?, of which each task of an array is one"' 30 &&
	passed "a controller that takes no more jobs is told as that"
exits 3 "a run of which no node is known cannot be checked" lbctl check large
like "$err" "no node is known that it was on" "which is said"
done_testing
