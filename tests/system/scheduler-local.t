#!/bin/sh
# SPDX-License-Identifier: MIT
# The local scheduler: jobs outlive it, are found again, and are never taken for others.
. "$(dirname "$0")/lib.sh"
. "$suite/scheduler.sh"

local_start() { client_start local "$T/jobs" gpus=0; }
record_of() { cat "$T/jobs/$job_id.json"; }
is_dead() { ! lives "$1"; }

local_start
script exit0 </dev/null
echo 'exit 3' | script exit3
# shellcheck disable=SC2016 # for the job
echo 'kill -SEGV $$' | script crash
echo 'exec /nowhere/lbrun' | script absent
# lbrun keeps the lock's descriptor to itself: so do these.
cat >"$T/body" <<'END'
echo "job $LB_JOB_ID lock $LB_LOCK_FD pid $$"
exec sleep 1000
END
script sleeps <"$T/body"
cat >"$T/body" <<'END'
eval "setsid sleep 1000 $LB_LOCK_FD>&- &"
echo "child $!"
trap '' QUIT TERM
echo ready
while :; do eval "sleep 0.05 $LB_LOCK_FD>&-"; done
END
script deaf <"$T/body"

# --- the life of a job ----------------------------------------------------------------------
a=$(token)
ok "a job is submitted" submit_job "$a" sleeps
ask poll
is "$(field_of "$a" 3-6)" "$ref held" "it is held"
[ ! -e "$T/work/out.log" ]
is $? 0 "and has not started"
like "$(record_of)" '"phase": ?"held"' "its record is on disk"
ask signal "$ref" 15
is "$result" refused "a held job cannot be signalled"
ask release "$ref"
is "$result" ok "it is released"
phase_is "$a" running "it runs"
wait_for "grep -q 'job $job_id lock 3' $T/work/out.log" 10
passed "it knows its id and its lock"
pid=$(sed -n 's/.* pid //p' "$T/work/out.log")
is "$(ps -o sid= -p "$pid" | tr -d ' ')" "$pid" "it leads a session of its own"
ask release "$ref"
is "$result" ok "a second release is nothing new"
is "$(grep -c "job $job_id" "$T/work/out.log")" 1 "and starts nothing"

ending() {	# SCRIPT WANT NAME
	t=$(token)
	submit_job "$t" "$1" && ask release "$ref" && job_reaches "$t" ended 10
	is "$(field_of "$t" 7,8,9)" "$2" "$3"
}
ending exit0 "completed 0 0" "exit 0 completes"
ending exit3 "error 3 0" "exit 3 is an error with its code"
ending crash "crash -1 11" "a signal is a crash"
ending absent "launch_fail 127 0" "a missing lbrun is a failed launch"
t=$(token)
submit_job "$t" exit0
rm -rf "$T/work"
ask release "$ref"
job_reaches "$t" ended 10
is "$(field_of "$t" 7)" launch_fail "so is a missing folder"

# --- the wrong job is never touched ----------------------------------------------------------
job_id=$(echo "$a" | xargs -I{} grep -l {} "$T"/jobs/*.json | sed 's,.*/,,; s,\.json,,')
ask poll "$a"
ref=$(field_of "$a" 3-5)
for verb in release cancel "signal"; do
	ask "$verb" "$(token)" "$job_id" "${ref##* }" 15
	is "$result" gone "$verb with another token: gone"
	ask "$verb" "$a" "$job_id" 1 15
	is "$result" gone "$verb with another submit time: gone"
done
ask cancel "$a" 999 "${ref##* }"
is "$result" gone "an unknown id: gone"
is "$(is_dead "$pid" || echo alive)" alive "the job still runs"

# --- lbd comes and goes ---------------------------------------------------------------------
h=$(token)
submit_job "$h" exit0
held=$ref
ask poll "$a"
ref=$(field_of "$a" 3-5)
kill -KILL "$client"
wait "$client" 2>/dev/null
exec 4>&-
is "$(is_dead "$pid" || echo alive)" alive "the job outlives a killed lbd"
local_start
phase_is "$a" running "the next one finds it"
is "$(field_of "$a" 3-5)" "$ref" "by the same token, id and submit time"
phase_is "$h" held "a job that was held is held still"
ask release "$held"
job_reaches "$h" ended 10
is "$(field_of "$h" 7)" completed "and runs when it is released"
ask poll "$a"
ref=$(field_of "$a" 3-5)
ok "a polite end" client_stop
is "$(is_dead "$pid" || echo alive)" alive "leaves the job alone, too"
local_start
ask cancel "$ref"
is "$result" ok "it can be cancelled"
wait_for "is_dead $pid" 10
job_reaches "$a" ended 10
is "$(field_of "$a" 7)" killed "and was killed"
ask cancel "$ref"
is "$result" gone "cancelling it again: gone"

# A job that sleeps runs, as process $pid, when the scheduler goes away.
sleeper_left() {
	t=$(token)
	submit_job "$t" sleeps
	ask release "$ref"
	wait_for "grep -q 'job $job_id ' $T/work/out.log" 10
	pid=$(sed -n "s/job $job_id .* pid //p" "$T/work/out.log")
	client_stop
}

sleeper_left
kill -KILL "$pid"
wait_for "is_dead $pid" 10
local_start
phase_is "$t" ended "a job that ended while nobody watched has ended"
is "$(field_of "$t" 7)" lost "for a reason that nobody knows"

# The note of the start was lost with lbd: the lock alone tells.
sleeper_left
sed -i 's/"pid": *[0-9]*/"pid":0/' "$T/jobs/$job_id.json"
local_start
phase_is "$t" running "a job whose process is not on record is found by its lock"
ask cancel "$ref"
wait_for "is_dead $pid" 10
passed "and can be cancelled"

# A pid that is somebody else's now.
sleep 1000 &
innocent=$!
sleeper_left
kill -KILL "$pid"
wait_for "is_dead $pid" 10
sed -i "s/\"pid\": *[0-9]*/\"pid\":$innocent/" "$T/jobs/$job_id.json"
local_start
job_reaches "$t" ended 10
ask cancel "$ref"
is "$result" gone "a reused pid is not taken for the job"
is "$(is_dead $innocent || echo alive)" alive "and its owner lives"

# --- those who will not go --------------------------------------------------------------------
t=$(token)
: >"$T/work/out.log"
submit_job "$t" deaf
ask release "$ref"
wait_for "grep -q ready $T/work/out.log" 10
child=$(sed -n 's/^child //p' "$T/work/out.log")
ask cancel "$ref"
phase_is "$t" running "a job that ignores SIGQUIT runs on"
ask cancel "$ref"
job_reaches "$t" ended 10
is "$(field_of "$t" 7)" killed "cancelled again, it is killed"
wait_for "is_dead $child" 10
passed "with a child in another session"

# --- slots ------------------------------------------------------------------------------------
client_stop
client_start local "$T/jobs" gpus=2 cpus=1 mem=1000
# shellcheck disable=SC2016 # for the job
echo 'echo "$LB_JOB_ID sees <$CUDA_VISIBLE_DEVICES> cpus $(grep -c . "$0") $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status) $CANARY $SLURM_ARRAY_TASK_ID"; exec sleep 1000' | script shows
printf 'CANARY=7a11y-ho\n' >"$T/secrets"
chmod 600 "$T/secrets"
seen_by() { sed -n "s/^$1 sees //p" "$T/work/out.log"; }
queued() {	# OPTION…: submits and releases; sets $t and $ref
	t=$(token)
	submit_job "$t" shows "$@" && ask release "$ref"
}
queued --gpus-per-node=1 --cpus-per-task=1
one=$t one_ref=$ref
wait_for "seen_by $job_id | grep -q '<0>'" 10
like "$(seen_by "$job_id")" '^<0> cpus 2 [0-9]+ ' \
	"a job sees the GPU that it was given, and runs on one CPU"
queued --gpus-per-node=2 "secrets=$T/secrets"
two=$t two_ref=$ref two_id=$job_id
queued --gpus-per-node=1
three=$t three_ref=$ref three_id=$job_id
queued
four=$t four_ref=$ref four_id=$job_id
ask poll
is "$(field_of "$two" 6,11)" "pending Resources:_1_of_2_GPUs_free" \
	"two GPUs: it waits, and says for what"
is "$(field_of "$three" 6,11)" "pending Priority" "a later one does not overtake it"
is "$(field_of "$four" 6)" running "one that asks for nothing need not wait"
wait_for "seen_by $four_id | grep -q '<>'" 10
passed "and sees no GPU"
submit_job "$(token)" shows --gpus-per-node=3
is "$result" refused "what can never start is refused"
like "$rest" 'gpus_per_node: the job wants 3 GPUs, this machine has 2' "with the numbers"
submit_job "$(token)" shows --nodes=2
is "$result" refused "so are two nodes"
ask signal "$two_ref" 15
is "$result" refused "a job that waits cannot be signalled"
is "$(grep -rc 7a11y-ho "$T/jobs" | grep -vc ':0$')" 0 "no secret is in the records"
kill -KILL "$client"
wait "$client" 2>/dev/null
exec 4>&-
client_start local "$T/jobs" gpus=2 cpus=1 mem=1000
ask poll
is "$(field_of "$two" 6,11)" "pending Resources:_1_of_2_GPUs_free" \
	"after kill -9 it waits still: the GPU is taken"
is "$(field_of "$one" 6)" running "by the job that runs on"
ask cancel "$three_ref"
ask poll
is "$(field_of "$three" 6,7)" "ended killed" "a job that waits can be cancelled"
ask cancel "$one_ref"
job_reaches "$two" running 10
wait_for "seen_by $two_id | grep -q '<0,1>'" 10
like "$(seen_by "$two_id")" '7a11y-ho' "its secrets were read when it started"
is "$(seen_by "$two_id" | grep -c .)" 1 "it was started once"
is "$(seen_by "$three_id")" "" "the cancelled one never was"
ask cancel "$two_ref"
ask cancel "$four_ref"
job_reaches "$two" ended 10
job_reaches "$four" ended 10

# --- arrays -----------------------------------------------------------------------------------
# What each task sees; its child in a session of its own tells whose it is.
cat >"$T/body" <<'END'
eval "setsid sleep 1000 $LB_LOCK_FD>&- </dev/null >/dev/null 2>&1 &"
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX/$SLURM_ARRAY_TASK_STEP in $SLURM_ARRAY_JOB_ID pid $$ child $!"
until [ -s "end.$SLURM_ARRAY_TASK_ID" ]; do sleep 0.05; done
exit "$(cat "end.$SLURM_ARRAY_TASK_ID")"
END
script tasks <"$T/body"
task_out() { cat "$T/work/task-$1/out.log" 2>/dev/null; }
child_of() { task_out "$1" | sed 's/.* child //'; }
is_up() { [ -n "$(task_out "$1")" ]; }
array() {	# INDICES: submits; sets $t and $ref
	rm -rf "$T"/work/task-* "$T"/work/end.*
	t=$(token)
	submit_job "$t" tasks --array="$1"
}
array 0-6:2%2
id=$job_id
ask poll
is "$(grep -c "^job $asked $t " "$T/client.out") $(field_of "$t" 4,6)" "1 $id held" \
	"four tasks, one job, held"
is "$(grep -l "$t" "$T"/jobs/*.json | wc -l)" 4 "each with a record"
ask release "$ref"
wait_for 'is_up 0 && is_up 2' 10
is "$(task_out 2 | sed 's/ pid.*//')" "task 2 of 4 0-6/2 in $id" "a task knows its index and its array"
phase_is "$t" running "two run"
echo 0 >"$T/work/end.0"
wait_for 'is_up 4' 20
ok "the child of one that ended is ended" wait_for 'is_dead "$(child_of 0)"' 10
is "$(is_dead "$(child_of 2)" || echo alive)" alive "and none of its siblings"
is "$(is_up 6 || echo waits)" waits "no more than two at once"
kill -KILL "$client"
wait "$client" 2>/dev/null
exec 4>&-
client_start local "$T/jobs" gpus=2 cpus=1 mem=1000
phase_is "$t" running "after kill -9 it runs on"
is "$(field_of "$t" 4)" "$id" "under its number"
echo 3 >"$T/work/end.4"
wait_for 'is_up 6' 20
passed "and the last task has its turn"
phase_is "$t" running "which runs, although another one failed"
echo 0 | tee "$T/work/end.2" >"$T/work/end.6"
job_reaches "$t" ended 20
is "$(field_of "$t" 7)" lost "what failed counts: nobody watched how those ended"
ask release "$ref"
is "$result" gone "the array is over"

array 1-3
ask release "$ref"
wait_for 'is_up 1 && is_up 2 && is_up 3' 10
echo 0 | tee "$T/work/end.1" >"$T/work/end.3"
echo 5 >"$T/work/end.2"
job_reaches "$t" ended 20
is "$(field_of "$t" 7,8)" "error 5" "one task of three that fails"

array 1-9%1
ask signal "$ref" 15
is "$result" refused "a held array cannot be signalled"
ask release "$ref"
wait_for 'is_up 1' 10
ask signal "$ref" 15
is "$result" ok "a signal reaches the task that runs"
job_reaches "$t" ended 10
is "$(ls -d "$T"/work/task-*)" "$T/work/task-1" "those that wait go at once"
array 1-9%1
ask cancel "$ref"
ask poll
is "$(field_of "$t" 6,7)" "ended killed" "a held array is cancelled as a whole"
array 1-9%2
ask release "$ref"
wait_for 'is_up 1 && is_up 2' 10
ask cancel "$ref"
job_reaches "$t" ended 20
is "$(field_of "$t" 7)" killed "so is one that runs"
ok "with all that it started" wait_for 'is_dead "$(child_of 1)" && is_dead "$(child_of 2)"' 10
submit_job "$(token)" tasks --array=1-1001
is "$result" refused "a thousand tasks are as many as it takes"

# lbd dies while it writes an array down, or its release.
array 1-4
partial=$t
rm "$T/jobs/$((job_id + 2)).json"
array 1-4
whole=$t whole_ref=$ref
sed -i 's/"phase": *"held"/"phase":"pending"/' "$T/jobs/$job_id.json"
kill -KILL "$client"
wait "$client" 2>/dev/null
exec 4>&-
client_start local "$T/jobs" gpus=2 cpus=1 mem=1000
ask poll
is "$(field_of "$partial" 6)$(grep -l "$partial" "$T"/jobs/*.json)" "" "an array of which a part was written is none"
wait_for 'is_up 1 && is_up 4' 10
passed "one of which a part was released is released"
ask cancel "$whole_ref"
job_reaches "$whole" ended 20

# --- time limits, and what is left behind -------------------------------------------------------
cat >"$T/body" <<'END'
trap 'echo warned' USR1
trap 'echo limit; exit 0' TERM
echo timed
while :; do sleep 0.05; done
END
script timed <"$T/body"
t=$(token)
submit_job "$t" timed --time=0:09 --signal=B:USR1@4	# time for its traps, on a busy machine, too
ask release "$ref"
job_reaches "$t" ended 20
is "$(grep -Ex 'timed|warned|limit' "$T/work/out.log" | tr '\n' ' ')" "timed warned limit " \
	"a warning, then the limit"
is "$(field_of "$t" 7)" timeout "which is why it ended"
# It leaves its session, its parent and its process group.
echo 'setsid sh -c "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo orphan \$!"' | script leaves
t=$(token)
submit_job "$t" leaves --gpus-per-node=2
ask release "$ref"
wait_for "grep -q '^orphan' $T/work/out.log" 10
child=$(sed -n 's/^orphan //p' "$T/work/out.log")
u=$(token)
submit_job "$u" shows --gpus-per-node=1
ask release "$ref"
job_reaches "$u" running 20
is "$(is_dead "$child" || echo alive)" "" \
	"its GPUs are free once nothing of it lives: a double fork is ended"
ask cancel "$ref"
job_reaches "$u" ended 10

# --- a folder that is no good -----------------------------------------------------------------
echo nonsense >"$T/jobs/77.json"
client_stop
local_start
ask poll
is "$result" ok "a record that cannot be read does no harm"
submit_job "$(token)" exit0
[ "$job_id" -gt 77 ]
is $? 0 "and its id is not used again"
ok "the client ends with an empty loop" client_stop
: >"$T/file"
client_start local "$T/file"
ask poll
is "$result" down "a folder that cannot be used: down"
client_stop
done_testing
