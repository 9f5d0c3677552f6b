#!/bin/sh
# SPDX-License-Identifier: MIT
# The local scheduler: jobs outlive it, are found again, and are never taken for others.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/scheduler.sh"

local_start() { client_start local "$T/jobs"; }
record_of() { cat "$T/jobs/$job_id.json"; }
is_dead() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

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
is "$(grep -c 'ODD\|PATH=' "$T/jobs/$job_id.json")" 0 "without its environment"
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
	submit_job "$t" "$1" && ask release "$ref" && wait_for "job_is $t ended" 10
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
wait_for "job_is $t ended" 10
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
ask release "$held"
is "$result" gone "a job that was held is gone: its environment was never written"
ok "a polite end" client_stop
is "$(is_dead "$pid" || echo alive)" alive "leaves the job alone, too"
local_start
ask cancel "$ref"
is "$result" ok "it can be cancelled"
wait_for "is_dead $pid" 10
wait_for "job_is $a ended" 10
is "$(field_of "$a" 7)" killed "and was killed"
ask cancel "$ref"
is "$result" gone "cancelling it again: gone"

t=$(token)
submit_job "$t" sleeps
ask release "$ref"
wait_for "grep -q 'job $job_id ' $T/work/out.log" 10
pid=$(sed -n "s/job $job_id .* pid //p" "$T/work/out.log")
client_stop
kill -KILL "$pid"
wait_for "is_dead $pid" 10
local_start
phase_is "$t" ended "a job that ended while nobody watched has ended"
is "$(field_of "$t" 7)" lost "for a reason that nobody knows"

# The note of the start was lost with lbd: the lock alone tells.
t=$(token)
submit_job "$t" sleeps
ask release "$ref"
wait_for "grep -q 'job $job_id ' $T/work/out.log" 10
pid=$(sed -n "s/job $job_id .* pid //p" "$T/work/out.log")
client_stop
sed -i 's/"pid": *[0-9]*/"pid":0/' "$T/jobs/$job_id.json"
local_start
phase_is "$t" running "a job whose process is not on record is found by its lock"
ask cancel "$ref"
wait_for "is_dead $pid" 10
passed "and can be cancelled"

# A pid that is somebody else's now.
sleep 1000 &
innocent=$!
t=$(token)
submit_job "$t" sleeps
ask release "$ref"
wait_for "grep -q 'job $job_id ' $T/work/out.log" 10
pid=$(sed -n "s/job $job_id .* pid //p" "$T/work/out.log")
client_stop
kill -KILL "$pid"
sed -i "s/\"pid\": *[0-9]*/\"pid\":$innocent/" "$T/jobs/$job_id.json"
local_start
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
wait_for "job_is $t ended" 10
is "$(field_of "$t" 7)" killed "cancelled again, it is killed"
wait_for "is_dead $child" 10
passed "with a child in another session"

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
