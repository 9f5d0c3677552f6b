#!/bin/sh
# SPDX-License-Identifier: MIT
# The Slurm scheduler against a real, private cluster: every call, every kind of failure.
. "$(dirname "$0")/lib.sh"
. "$suite/scheduler.sh"

export MC_MESSAGETIMEOUT=4 MC_KILLWAIT=2
helper_name=lbd-slurm
[ "${LB_TEST_SLURM:-}" != commands ] || helper_name=lbd-slurm-commands
cluster_start 2
client_start slurm "$B/$helper_name" 6000
script exit0 </dev/null
echo 'exit 3' | script exit3
echo 'kill -SEGV $$' | script crash
echo 'sleep 1000' | script sleeps
# shellcheck disable=SC2016 # for the job
echo 'printf %s "$ODD" | od -An -tx1; exit 0' | script environment

helper_pid() { ps -o pid=,ppid=,comm= -A | awk -v p="$client" '$2 == p && index("'"$helper_name"'", $3) == 1 { print $1 }'; }

# --- the life of a job ----------------------------------------------------------------------
a=$(token)
ok "a job is submitted" submit_job "$a" exit3
ask poll
is "$(field_of "$a" 6)" held "it is held"
is "$(field_of "$a" 11)" JobHeldUser "by its owner, who may release it"
is "$(field_of "$a" 3-5)" "$ref" \
	"the poll tells the same token, id and submit time as the submission"
like "$(squeue -h -j "$job_id" -o '%j|%k')" \
	"^lb-test-$(echo "$a" | cut -c1-12)\|lbd1:00112233445566aa:$a made by a test$" \
	"its name and comment"
scontrol show job "$job_id" >"$T/job"
like "$(cat "$T/job")" "Requeue=0" "Slurm will not requeue it by itself"
like "$(cat "$T/job")" "StdOut=$T/work/out.log" "its output file"
ok "it is released" ask release "$ref"
is "$result" ok "release: ok"
job_reaches "$a" ended 30
is "$(field_of "$a" 7,8,9,10)" "error 3 0 FAILED" "exit 3 is an error with its code"

# Whoever replaces its comment may do so before any poll has seen the job.
t=$(token)
submit_job "$t" sleeps
scontrol update jobid="$job_id" comment="please be quick, $(printf %0100d 7)"
ask poll
is "$(field_of "$t" 3-5)" "$ref" "a job whose comment is replaced at once is known by its number"
like "$(squeue -h -j "$job_id" -o %k)" "^lbd1:00112233445566aa:$t please be quick, 0+7$" \
	"… and gets its token back, in front of all of that"
ask cancel "$ref"
is "$result" ok "… by which it can be cancelled"

ending() {	# SCRIPT WANT NAME
	t=$(token)
	submit_job "$t" "$1" && ask release "$ref" && job_reaches "$t" ended 30
	is "$(field_of "$t" 7,8,9,10)" "$2" "$3"
}
ending exit0 "completed 0 0 COMPLETED" "exit 0 completes"
ending crash "crash -1 11 FAILED" "a signal is a crash, whatever Slurm calls the reason"
ending environment "completed 0 0 COMPLETED" "a job with an odd environment runs"
like "$(cat "$T/work/out.log")" "ff fe" "bytes that are no UTF-8 reach the job"

t=$(token)
submit_job "$t" sleeps --gpus-per-node=1 --cpus-per-task=2 --ntasks-per-node=1 --nodes=2 --time=5 --mem=100
ask release "$ref"
job_reaches "$t" running 30
is "$(field_of "$t" 12)" "n[1-2]" "two nodes were asked for and are told"
like "$(scontrol show job "$job_id")" "TimeLimit=00:05:00" "the time limit"
like "$(scontrol show job "$job_id")" "NumCPUs=4 " "CPUs for all tasks"
like "$(scontrol show job "$job_id")" "gres/gpu=2|gpu:1" "a GPU on each node"
ok "cancel" ask cancel "$ref"
job_reaches "$t" ended 30
is "$(field_of "$t" 7)" killed "a cancelled job was killed"
ask cancel "$ref"
is "$result" gone "cancelling it again: gone"

t=$(token)
submit_job "$t" sleeps
ask cancel "$ref"
job_reaches "$t" ended 10
is "$(field_of "$t" 7)" killed "a held job can be cancelled"

# --- signals reach the batch process alone ---------------------------------------------------
# The script looks what its child wrote meanwhile: after its end Slurm kills the child in any case.
cat >"$T/traps.body" <<'END'
trap 'sleep 0.5; grep -q "child got" out.log && exit 8; exit 9' TERM
sh -c 'trap "echo child got TERM" TERM; while :; do sleep 0.1; done' &
echo ready
while :; do wait; done
END
script traps <"$T/traps.body"
rm -f "$T/work/out.log"
t=$(token)
submit_job "$t" traps
ask signal "$ref" 15
is "$result" refused "a held job cannot be signalled"
ask release "$ref"
wait_for "grep -q ready $T/work/out.log" 30
ask signal "$ref" 15
is "$result" ok "signal: ok"
job_reaches "$t" ended 30
is "$(field_of "$t" 7,8)" "error 9" "the script got the signal, and its child did not"
ask signal "$ref" 15
is "$result" gone "an ended job cannot be signalled"

# --- the wrong job is never touched ----------------------------------------------------------
t=$(token)
submit_job "$t" sleeps
other=$(token)
time=${ref##* }
for verb in release cancel "signal"; do
	ask "$verb" "$other" "$job_id" "$time" 15
	is "$result" gone "$verb with another token: gone"
	ask "$verb" "$t" "$job_id" $((time + 1)) 15
	is "$result" gone "$verb with another submit time: gone"
done
ask cancel "$t" 999999 "$time"
is "$result" gone "cancel of an unknown id: gone"
ask poll
is "$(field_of "$t" 6)" held "and the job is untouched"
foreign=$(sbatch --parsable --hold -o /dev/null "$T/sleeps")
ask poll
is "$(grep -c "^job $asked [0-9a-f]* $foreign " "$T/client.out")" 0 \
	"other jobs of the same user are not ours"
ask cancel "$t" "$foreign" "$(date -d "$(squeue -h -j "$foreign" -o %V)" +%s)"
is "$result" gone "nor can they be cancelled"
is "$(squeue -h -j "$foreign" -o %T)" PENDING "they stay"

# A helper that begins is told which jobs lbd waits for: who replaced a comment may have done so
# while there was none. A number that Slurm has given to another job since is that job's.
fresh() {	# SUBMIT_TIME: what a helper that begins makes of it
	{
		echo '{"id":1,"op":"known","ledger":"00112233445566aa","jobs":[["'"$t"'",'"$foreign,$1"']]}'
		echo '{"id":2,"op":"poll","ledger":"00112233445566aa","have":0}'
	} >"$T/fresh.in"
	"$B/$helper_name" $$ <"$T/fresh.in" >"$T/fresh"
}
t=$(token)
time=$(date -d "$(squeue -h -j "$foreign" -o %V)" +%s)
scontrol update jobid="$foreign" comment="mind the gap"
fresh $((time - 1))
is "$(grep -c "^$t" "$T/fresh") $(squeue -h -j "$foreign" -o %k)" "0 mind the gap" \
	"a job that lbd knows by its number, of another time, is another one"
fresh "$time"
like "$(cat "$T/fresh")" "^$t 00112233445566aa $foreign $time " "one that it knows is told to be ours"
is "$(squeue -h -j "$foreign" -o %k)" "lbd1:00112233445566aa:$t mind the gap" "… and gets its token back"
scancel "$foreign"

# The record of tasks that wait stands for the whole array.
foreign=$(sbatch --parsable --array=1-2%1 -o /dev/null "$T/sleeps")
t=$(token)
wait_for '[ "$(squeue -h -j "$foreign" -t running | wc -l)" = 1 ]' 30
scontrol update jobid="$foreign" comment="mind the gap"
fresh "$(date -d "$(squeue -h -j "$foreign" -o %V | head -n 1)" +%s)"
is "$(squeue -h -j "$foreign" -o %k | sort -u)" "lbd1:00112233445566aa:$t mind the gap" \
	"so does each task of an array, once"
scancel "$foreign"

# --- refusals -------------------------------------------------------------------------------
submit_job "$(token)" sleeps --partition=nope
is "$result" refused "an unknown partition is refused"
like "$rest" "[Pp]artition" "with Slurm's own words"
submit_job "$(token)" sleeps --nodes=50
# neither sbatch nor newer releases say anything of a job that is held: lbd asks before (check)
case "$helper_name $(scontrol --version)" in
"lbd-slurm "*" 2"[0-3].*) like "$result $rest" "^(ok|refused) .*(node|configuration)" "too many nodes: said at once" ;;
esac

# --- a frozen slurmctld ---------------------------------------------------------------------
t=$(token)
# What it said a moment ago would count: it is asked whether it is there 250 ms later
# (slurm/helper/calls.c).
answer_ages() {
	# shellcheck disable=SC2034 # read by wait_for
	answered_ms=$(uptime_ms)
	wait_for '[ $(($(uptime_ms) - answered_ms)) -gt 300 ]' 5
}
answer_ages
cluster_signal slurmctld STOP
tell submit "$t" "$T/work" "$T/sleeps"
first=$asked
tell poll
second=$asked
answer_of $first
is "$result" down "slurmctld frozen: the submission was not even sent"
answer_of $second
is "$result" down "and the poll behind it does not wait for a deadline of its own"
[ "$ms" -lt 9500 ]
is $? 0 "within one deadline ($ms ms)"
cluster_signal slurmctld CONT
wait_for 'ask poll && [ "$result" = ok ]' 20
is "$(field_of "$t" 6)" "" "no ghost of the submission appears"
submit_job "$t" sleeps
is "$result" ok "after SIGCONT jobs are submitted again"
ask cancel "$ref"

# --- a frozen munged: libslurm would block for ever -------------------------------------------
before=$(helper_pid)
cluster_signal munged STOP
ask poll
is "$result" down "munged frozen: down"
in_time "$ms" 8000
is $? 0 "at the deadline ($ms ms)"
cluster_signal munged CONT
wait_for 'ask poll && [ "$result" = ok ]' 20
after=$(helper_pid)
[ -n "$after" ] && [ "$after" != "$before" ]
is $? 0 "the helper was killed, and another one took over"

# --- the helper dies ------------------------------------------------------------------------
cluster_signal slurmctld STOP
tell poll
wait_for '[ -n "$(helper_pid)" ]' 5
kill -KILL "$(helper_pid)"
answer_of $asked
is "$result" down "a helper that is killed in mid-request: down"
in_time "$ms" 3000
is $? 0 "at once ($ms ms)"
cluster_signal slurmctld CONT
wait_for 'ask poll && [ "$result" = ok ]' 20
passed "and the next one works"

# --- slurmctld is gone ----------------------------------------------------------------------
t=$(token)
wait_for "grep -q . '$T/slurm/state/job_state'" 20
answer_ages
cluster_signal slurmctld KILL
submit_job "$t" sleeps
is "$result" down "slurmctld dead: down"
in_time "$ms" 1000
is $? 0 "without libslurm's long retries ($ms ms)"
ok "slurmctld restarts" "$src/etc/minicluster" start-ctld "$cluster"
wait_for 'ask poll && [ "$result" = ok ]' 30
submit_job "$t" sleeps
is "$result" ok "and the scheduler with it"
ask cancel "$ref"

# --- among the jobs of others ---------------------------------------------------------------
# Those cost the controller and us nothing, as long as they are most. (squeue asks for ours anyway,
# but where these are root's.)
looks_at_ours() { sdiag | awk '$1 == "REQUEST_JOB_USER_INFO" { sub("count:", "", $4); print $4 }'; }
if [ "$(id -u)" = 0 ] && [ "$helper_name" = lbd-slurm ]; then
	t=$(token)
	submit_job "$t" sleeps
	chmod 755 "$T"
	i=0
	while [ $i -lt 300 ]; do
		setpriv --reuid 65534 --regid 65534 --clear-groups sbatch -H -D / -o /dev/null --wrap true
		i=$((i + 1))
	done >/dev/null
	ask poll
	before=$(looks_at_ours)
	ask poll
	is "$(field_of "$t" 6)" held "among 300 jobs of another user ours is told"
	is "$(($(looks_at_ours) - ${before:-0}))" 1 "by a look at ours alone"
	scancel -u 65534
	ask cancel "$ref"
fi

# --- many -----------------------------------------------------------------------------------
t=$(token)
count=1000
[ "${LB_TEST_SLURM:-}" != commands ] || count=200	# each by an sbatch of its own
tell many $count "$t" "$T/work" "$T/sleeps"
many=$asked
wait_for "[ \"\$(grep -c '^$many ok ' $T/client.out)\" = $count ]" 60
diag "$count submissions: $(grep "^$many ok " "$T/client.out" | cut -d' ' -f3 | sort -n | tail -n 1) ms"
ask poll none
is "$result" ok "$count held jobs in one poll"
[ "${rest%% *}" -ge $count ]
is $? 0 "all are told (${rest%% *} in $ms ms)"
first_poll=${rest%% *}
ask poll none
is "${rest%% *}" "$first_poll" "and told again when nothing has changed ($ms ms)"

# --- the helper follows its lbd ---------------------------------------------------------------
helper=$(helper_pid)
ok "the client ends with an empty loop" client_stop
wait_for "! kill -0 $helper" 10
passed "no helper stays behind"

# --- a controller that may have forgotten a release --------------------------------------------
client_start slurm "$B/$helper_name" 6000
held=$(token)
submit_job "$held" sleeps
ask poll "$held"
start=$(field_of "$held" 13)
ok "when the controller was started is told of a job that is held" \
	[ "$start" -gt 0 -a "$start" -le "$(field_of "$held" 5)" ]
if [ "$helper_name" = lbd-slurm ]; then	# commands.t has it for the other
	client_stop
	{ echo 'SlurmctldHost=gone(127.0.0.3)' && cat "$SLURM_CONF"; } >"$T/backup.conf"
	SLURM_CONF=$T/backup.conf client_start slurm "$B/$helper_name" 6000
	ask poll "$held"
	ok "a backup was started long before it took over: what it forgot is not known" \
		[ "$(field_of "$held" 13)" -gt "$start" ]
fi

# --- and it dies with it ------------------------------------------------------------------------
helper=$(helper_pid)
kill -KILL "$client"
wait_for "! lives $helper" 10
passed "a helper dies with a client that is killed"
done_testing
