#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl daemon: start, stop, restart, status and logs of an lbd in the background, also when it is
# dead.
. "$(dirname "$0")/lib.sh"

lease() { json "$1" <"$LB_HOME/lbd.lease"; }
follow_pid() { lbd_pid=$(lease pid); }	# cleanup ends it

exits 5 "nothing was ever started: status says so by its exit status" lbctl daemon status
like "$out" 'does not run here' "and in words"
like "$out" 'lbctl daemon start' "and what to do"
ln -s lbd.lease "$LB_HOME/lbd.lease"
exits 9 "a folder that cannot be looked into" lbctl daemon status
like "$err" 'cannot see whether lbd runs: .*lbd.lease: ' "is not one in which nothing runs"
rm "$LB_HOME/lbd.lease"
exits 0 "start returns once lbd answers" lbctl daemon start
follow_pid
ok "it does" lbctl ls
exits 0 "starting it twice is no error" lbctl daemon start
like "$out" "runs already: pid $lbd_pid on " "it is named"
exits 0 "status" lbctl daemon status
like "$out" "^lbd serves: pid $lbd_pid on $(hostname) since " "who, where, since when"
like "$out" '^Slurm +none' "what of Slurm"
like "$out" "^log +$LB_HOME/lbd.log" "where its log is"
is "$(lbctl daemon status --json | json state)" serves "the same for programs"
is "$(lbctl daemon status --json | json lbd.pid)" "$lbd_pid" "with its own words"
ok "a run is submitted" lbctl submit --name r -- sleep 60
exits 0 "logs" lbctl daemon logs
like "$out" 'lbd .* serves ' "shows the end of the log"

rm "$LB_HOME/lbd.sock"
wait_for 'lbctl ls' 20
passed "a socket that a cleaner of old files has removed comes back"

before=$lbd_pid
exits 0 "restart" lbctl daemon restart
follow_pid
[ "$before" != "$lbd_pid" ]
is $? 0 "another process serves"
is "$(lease generation)" 2 "it is the second one here"
run_reaches r running 20
exits 0 "stop returns when it has ended" lbctl daemon stop
like "$out" 'jobs run on' "and says what becomes of jobs"
wait_for 'lbd_is_gone' 20
exits 5 "status of one that ended" lbctl daemon status
like "$out" 'it ended .* ago: stopped \(SIGTERM\)' "why"
exits 0 "stopping it twice is no error" lbctl daemon stop

# as systemd ends a session (KillUserProcesses)
ok "started" lbctl daemon start
follow_pid
kill -TERM "$lbd_pid"
kill -HUP "$lbd_pid"
wait_for 'lbd_is_gone' 20
exits 5 "status of one that ended at a logout" lbctl daemon status
like "$out" 'it ended .* ago: hung up .SIGHUP.: its terminal or session has ended' "it ended in peace, and says so"
like "$(lbctl doctor)" 'if that ends at each logout: lbctl daemon start --in-slurm' "doctor has what helps"

# as Slurm and then the script of a job do, and whoever is impatient
ok "started" lbctl daemon start
follow_pid
while kill -TERM "$lbd_pid" 2>/dev/null; do :; done
exits 5 "status of one that was told to end many times" lbctl daemon status
like "$out" 'it ended .* ago: stopped \(SIGTERM\)' "it ended in peace"
is "$(tail -n 1 "$LB_HOME/lbd.log" | sed 's/.* lbd: //')" "ends on signal 15; jobs run on" "and said so once"

ok "started by who has closed input and output, as behind ssh" \
	timeout 60 sh -c 'exec lbd --home "$LB_HOME" <&- >&- 2>&-'
follow_pid
like "$(tail -n 1 "$LB_HOME/lbd.log")" 'lbd .* serves ' "it has its log"
exits 0 "and stops" lbctl daemon stop
deaf() {	# COMMAND…: to whom no signal comes, and no word of children that end
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
ok "started by who has blocked all signals" deaf lbctl daemon start
follow_pid
unlike "$(deaf lbctl doctor)" 'granted twice' "what programs say is heard, too"
exits 0 "and stops" lbctl daemon stop --timeout 5s

ok "started again" lbctl daemon start
follow_pid
kill -KILL "$lbd_pid"
wait_for 'lbd_is_gone' 20
exits 5 "status of one that was killed" lbctl daemon status
like "$out" "it died without a word \(pid $lbd_pid on " "what is known of it"
is "$(lbctl daemon status --json | json state)" died "for programs"
exits 5 "commands say what to do" lbctl ls
like "$err" 'lbctl daemon start' "start it"
exits 0 "a dead one on this machine is not waited for" timeout 20 lbctl daemon start
follow_pid
is "$(run_state r)" running "its runs are found again"
lbctl kill --now r >/dev/null
run_reaches r killed 20

# the login node that it ran on is dead, and the next one sees its folder
kill -KILL "$lbd_pid"
wait_for 'lbd_is_gone' 20
sed -i 's/"host":"[^"]*"/"host":"gone"/; s/"renewed_ms":[0-9]*/"renewed_ms":1/; s/"lease_ms":[0-9]*/"lease_ms":1000/' \
	"$LB_HOME/lbd.lease"
exits 5 "one whose machine is dead: commands" lbctl ls
like "$err" "is silent \(pid $lbd_pid on gone\): lbctl daemon start takes its place" "say what to do"
exits 5 "stop" lbctl daemon stop
like "$err" 'is silent, .*lbctl daemon start takes its place' "says so, too"
sed -i 's/"lease_ms":1000/"lease_ms":90000/' "$LB_HOME/lbd.lease"
lbctl daemon start >"$T/start.out" 2>&1 &
start=$!
wait_for 'grep -q "waits up to 90 s" "$LB_HOME/lbd.log"' 20
kill -KILL "$(pgrep -P "$(pgrep -P $start)")" # as the kernel does where memory is short
wait $start
is $? 1 "one that is killed as it starts"
like "$(cat "$T/start.out")" "^lbd: killed by signal 9 as it started; its log is $LB_HOME/lbd.log" "is told"
sed -i 's/"lease_ms":90000/"lease_ms":1000/' "$LB_HOME/lbd.lease"
exits 0 "start" timeout 60 lbctl daemon start
follow_pid
is "$(lease host) $(run_state r)" "$(hostname) killed" "starts one here"

# kill returns before its process is gone: a start that returns 0 has an lbd that answers
turn=0 answered=0
while [ $turn -lt 20 ]; do
	turn=$((turn + 1))
	kill -KILL "$lbd_pid"
	lbctl daemon start >"$T/start.out" 2>&1 && lbctl ls >"$T/start.out" 2>&1 &&
		answered=$((answered + 1))
	follow_pid
done
is $answered 20 "right after kill -9 a start starts, each of 20 times"

# another one is started before stop has seen the end of the one that it asked
kill -STOP "$lbd_pid"
wait_for 'grep -q "^State:.T" "/proc/$lbd_pid/status"' 20
lbctl daemon stop --timeout 60s >"$T/stop.out" 2>&1 &
stopping=$!
# SIGTERM waits for it
wait_for 'grep -q "^ShdPnd:.*4...$" "/proc/$lbd_pid/status"' 20
kill -STOP $stopping
kill -CONT "$lbd_pid"
wait_for 'lbd_is_gone' 20
asked=$lbd_pid
ok "an lbd is started while another is being stopped" lbctl daemon start
follow_pid
kill -CONT $stopping
wait $stopping
is "$? $(cat "$T/stop.out")" "0 lbd (pid $asked) has ended; jobs run on" "which stop does not wait for, nor names"
ok "and which serves on" lbctl ls

lbctl submit --name deaf -- sh -c "echo step 1 loss 2; exec sleep $mark" >/dev/null
run_reaches deaf running 20
kill -STOP "$lbd_pid"
exits 8 "one that is stopped" timeout 60 lbctl daemon start --timeout 1s
begin=$(now_ms)
exits 0 "what shells complete" lbctl help complete runs
ok "keeps nobody waiting at the prompt" in_time $(($(now_ms) - begin)) 2000

# the hints of running trainers fill its backlog within a minute
cat >"$T/fill.py" <<'END'
import socket, sys
try:
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        s.connect(sys.argv[1])
except BlockingIOError:
    pass
END
python3 "$T/fill.py" "$LB_HOME/lbd.sock"
timeout 90 lbctl logs deaf >"$T/deaf.out" 2>"$T/deaf.err" &
logs=$!
exits 3 "one whose backlog is full: kill of a name that no run has" timeout 90 lbctl kill daef
like "$err" "daef: nothing was done: there is no such run in $LB_HOME/runs" "does nothing"
ok "nor leaves a switch" [ ! -e "$LB_HOME/switches/daef.kill" ]
exits 0 "kill of one that there is" timeout 90 lbctl kill deaf
like "$out" 'lbd cannot be reached; the switch .*/deaf.kill is there' "leaves a switch"
wait $logs
is $? 0 "logs"
like "$(cat "$T/deaf.out")" 'step 1 loss 2' "shows the run's output"
like "$(cat "$T/deaf.err")" 'lbd does not answer' "and says why from its folder"
wait_for '! pgrep -f "sleep $mark"' 20
passed "the trainer is ended by its lbrun"
begin=$(now_ms)
exits 8 "wait: no longer than one is willing to" lbctl wait deaf --timeout 2s
exits 8 "so is stop" lbctl daemon stop --timeout 3s
like "$err" "for good: kill -9 $lbd_pid\$" "which says what does end it"
ok "in their time" in_time $(($(now_ms) - begin)) 10000
kill -CONT "$lbd_pid"
wait_for 'lbd_is_gone' 30
ok "it ends once it can, and is started again" lbctl daemon start
follow_pid

# The disk is ill for a moment: only a new process may look at the ledger again, and nobody else
# would start one.
exits 0 "stop" lbctl daemon stop
export LB_FAILPOINT=ledger.committed:error@30 LB_FAILPOINT_ONCE="$T"
exits 0 "one whose ledger is to break" lbctl daemon start
unset LB_FAILPOINT LB_FAILPOINT_ONCE
follow_pid
before=$lbd_pid
wait_for 'lbctl submit --name "ill$(now_ms)" -- true; ! lives "$before"' 30
wait_for 'lbctl ls' 30
follow_pid
[ "$before" != "$lbd_pid" ]
is $? 0 "a broken ledger: lbd ends, and begins again by itself"
like "$(cat "$LB_HOME/lbd.log")" 'cannot be trusted any more: lbd ends and begins again, jobs run on' "as its log says"
ok "a run is submitted" lbctl submit --name well -- true
run_reaches well completed 20

# somebody tidied up: whoever cannot show that the folder is its own writes nothing more
rm "$LB_HOME/lbd.lease"
wait_for 'lbd_is_gone' 30
like "$(cat "$LB_HOME/lbd.log")" 'lbd.lease is gone' "an lbd without its lease ends, and says why"
exits 2 "another word" lbctl daemon dance
ok "started once more" lbctl daemon start
follow_pid
printf '[poll]\nintervall = "1s"\n' >"$LB_HOME/lbd.toml"
exits 2 "restart with a lbd.toml that is wrong" lbctl daemon restart
like "$err" 'nothing was done: .*lbd.toml:2: poll.intervall' "is refused"
is "$(lbctl daemon status --json | json lbd.pid)" "$lbd_pid" "the one that serves goes on"
ok "ended" lbctl daemon stop
ln -s "$T/away" "$LB_HOME/runs/moved"
exits 0 "kill of a run whose folder is elsewhere (home move), and away" lbctl kill moved
printf '[runs]\nfolder = "/elsewhere"\n' >>"$LB_HOME/lbd.toml"
exits 0 "and of one that may be where runs.folder says" lbctl kill sent
ok "leave their switches" rm "$LB_HOME/switches/moved.kill" "$LB_HOME/switches/sent.kill"

cat >"$T/older.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
open(sys.argv[2], "w")
c = s.accept()[0]
while c.recv(65536):
    c.send(b'{"v":1,"ok":false,"error":"usage","text":"no such verb: run why"}\n')
END
rm -f "$LB_HOME/lbd.sock"
python3 "$T/older.py" "$LB_HOME/lbd.sock" "$T/listens" &
wait_for '[ -e "$T/listens" ]' 20
exits 2 "what an lbd from before an upgrade does not know" lbctl why r
like "$err" 'no such verb: .* older than this lbctl; lbctl daemon restart' "is told with what helps"
wait $!
rm "$LB_HOME/lbd.sock"

# a container without an init: what loses its parent is lbd's, and has to be buried
if unshare -fp --mount-proc true 2>/dev/null; then
	: >"$LB_HOME/lbd.toml"
	unshare -fp --mount-proc sh -c 'exec lbd --foreground' >>"$T/lbd.log" 2>&1 &
	contained=$!
	wait_for 'lbctl ls' 20
	lbctl submit --name buried -- true >/dev/null
	run_reaches buried completed 30
	# shellcheck disable=SC2034 # for the condition
	init=$(pgrep -P $contained)
	wait_for '! grep -qsx "State:	Z (zombie)" /dev/null $(pgrep -P $init | sed "s,.*,/proc/&/status,")' 20
	passed "of a run nothing is left there"
	exits 5 "lbctl daemon stop of another container ends nothing" \
		unshare -fp --mount-proc lbctl daemon stop --timeout 5s
	like "$err" 'in a container .*: stop it there' "and says where it can be stopped"
	exits 0 "outside of it it asks lbd, by the number that it has there" \
		lbctl daemon stop --timeout 10s
	wait $contained
	is $? 0 "and the container ends with lbd"
	printf '[poll]\nintervall = "1s"\n' >"$LB_HOME/lbd.toml"
fi
exits 2 "what keeps lbd from starting" lbctl daemon start
like "$err" 'poll.intervall' "is said"
rm "$LB_HOME/lbd.toml"

# As Slurm's signal to all processes of a job that ends.
LB_FAILPOINT=backup.copied:delay:3s "$B/lbd" --foreground --home "$LB_HOME" --until $(($(date +%s) + 3)) \
	>"$T/over.log" 2>&1 &
lbd_pid=$!
wait_for 'grep -q "hands over" "$T/over.log"' 20
kill -s TERM $lbd_pid
wait $lbd_pid
is "$? $(json why <"$LB_HOME/lbd.lease")" "0 handed over to the next one" "a signal on its way down does not hide why it ends"
for name in lbd.log lbd.lock; do
	rm -f "$LB_HOME/$name"
	mkfifo "$LB_HOME/$name"
	exits 9 "a pipe called $name keeps nobody waiting" timeout 20 lbctl daemon start
	like "$err" "/$name: (a pipe that nobody reads|not a regular file)" "and is named"
	rm "$LB_HOME/$name"
done
done_testing
