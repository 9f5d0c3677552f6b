#!/bin/sh
# SPDX-License-Identifier: MIT
# The output of runs that ended long ago (here: a second) is compressed, still readable, and later
# removed; nothing else is touched.
. "$(dirname "$0")/lib.sh"

config() { printf '[runs]\n%s\n' "$1" >"$LB_HOME/lbd.toml"; }
runs=$LB_HOME/runs

config 'compress_logs = 0'
cat >"$T/bar.py" <<'END'
import sys, time
print("first")
for i in range(31):
    sys.stdout.write(f"\r {i}/30 done")
print("\nTraceback (most recent call last):\n  File \"x.py\", line 1\nValueError: bad\nwaiting for data", flush=True)
time.sleep(1000)
END
mkdir -p "$LB_HOME/cron"
printf '@yearly echo from cron\n@yearly batch.slurm\n@yearly tasks.slurm\n' >"$LB_HOME/cron/crontab"
printf '#!/bin/sh\n#SBATCH --mem=10M\necho from a script\n' >"$LB_HOME/cron/batch.slurm"
printf '#!/bin/sh\n#SBATCH --array=0-1\necho from a task\n' >"$LB_HOME/cron/tasks.slurm"
lbd_start
lbctl submit --name talk \
	-- sh -c 'i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done' >/dev/null
lbctl submit --name trap -- true >/dev/null
run_reaches talk completed 20
run_reaches trap completed 20
wait_for 'lbctl cron run echo >/dev/null' 20
export cron batch tasks
cron=$(lbctl cron --json | json entries.0.last.run)
run_reaches "$cron" completed 20
lbctl cron run batch >/dev/null
lbctl cron run tasks >/dev/null
batch=$(lbctl cron --json | json entries.1.last.run)
tasks=$(lbctl cron --json | json entries.2.last.run)
run_reaches "$batch" completed 20
run_reaches "$tasks" completed 20
lbctl logs talk >"$T/before"
like "$(wc -l <"$T/before")" "^200[0-9]" "there is output"
ok "trackers are told of all" lbctl sync --to tensorboard="$T/board"
ok "who has told no step has nothing for them" [ ! -e "$runs/$cron/sync" ]
mkdir "$runs/$batch/sync"	# another had
echo '{}' >"$runs/$batch/sync/tensorboard-00c0ffee.json"
lbd_stop

# somebody put links where output was
mv "$runs/trap/attempts" "$T/elsewhere"
ln -s "$T/elsewhere" "$runs/trap/attempts"
find "$T/elsewhere" | sort >"$T/list"
touch "$runs/talk/attempts/1/notes.txt"

config 'compress_logs = 1'
sleep_until_old() { wait_for '[ "$(($(date +%s) - $(stat -c %Y "$runs/talk/attempts/1/out.log")))" -ge 2 ]' 20; }
sleep_until_old
lbd_start
wait_for '[ -e "$runs/talk/attempts/1/out.log.zst" ] && [ ! -e "$runs/talk/attempts/1/out.log" ]' 20
wait_for '[ -e "$runs/talk/attempts/1/spool.jsonl.zst" ]' 20
passed "the spool is compressed, too"
lbctl logs talk >"$T/after"
ok "lbctl logs still reads it" cmp "$T/before" "$T/after"
wait_for '[ -e "$runs/$cron/attempts/1/out.log.zst" ]' 20
wait_for '[ -e "$runs/$tasks/attempts/1/task-1/out.log.zst" ]' 20
is "$(lbctl logs "$tasks" | grep -c '^from a task')" 2 "so it does those of an array's tasks"
lbd_stop
ok "nothing was touched through a link" sh -c "find '$T/elsewhere' | sort | cmp - '$T/list'"
truncate -s 10 "$runs/talk/attempts/1/out.log.zst"
exits 9 "a damaged log is told" lbctl logs talk
like "$err" "out.log.zst: damaged" "by its name"

config 'retain_logs = 1'
lbd_start
wait_for '[ ! -e "$runs/talk/attempts/1/out.log.zst" ]' 20
wait_for '[ ! -e "$runs/$cron" ] && [ ! -e "$runs/$batch" ] && [ ! -e "$runs/$tasks" ]' 20
passed "of a periodic job nothing stays, be it a command, a script or an array"
ok "its hours are known all the same" lbctl goodput ALL "$cron"
ok "what somebody else put there stays" test -e "$runs/talk/attempts/1/notes.txt"
ok "and the record of the attempt" test -e "$runs/talk/attempts/1/exit.json"
ok "still nothing through a link" sh -c "find '$T/elsewhere' | sort | cmp - '$T/list'"
ok "the ledger knows the run" lbctl status talk
exits 0 "its logs are empty" lbctl logs talk
is "$err" "lbctl: no output" "and that is said, not that some may come"
lbd_stop

# --- lines ----------------------------------------------------------------------------------------
config 'compress_logs = 0'
lbd_start
lbctl submit --name bar -- python3 "$T/bar.py" >/dev/null
wait_for 'lbctl logs bar | grep -q waiting' 20
like "$(lbctl status bar)" 'output +[0-9.]+m?s ago: waiting for data' "a run without steps shows what it printed last, and its age"
lbctl follow bar >"$T/followed" 2>/dev/null &
follow=$!
wait_for 'grep -q "running .* ago: waiting for data" "$T/followed"' 20
like "$(cat "$T/followed")" 'running +.* ago: waiting for data' "so does follow"
kill $follow
is "$(lbctl logs -n 2 bar | sed 's/^[^ ]* //')" 'ValueError: bad
waiting for data' "-n shows the last lines"
is "$(lbctl logs --grep 'done|first' bar | sed 's/^\[[^ ]* //' | tr '\n' ,)" 'first, 30/30 done,' "a bar is one line, its last; --grep chooses"
is "$(lbctl logs --err bar | sed 's/^\[[^ ]* //' | head -n 1)" 'Traceback (most recent call last):' "--err begins with the traceback"
is "$(lbctl logs --err bar | wc -l)" 3 "and ends with what was raised"
# somebody emptied it, and its writer goes on where he was
log=$runs/bar/attempts/1/out.log
size=$(stat -c %s "$log")
truncate -s 2T "$log" && printf 'a hole\nbehind the hole\n' >>"$log"
is "$(timeout 20 lbctl logs -n 1 bar)" "behind the hole" "of a huge file -n reads the end alone"
is "$(timeout 20 lbctl logs --grep 'first|behind' bar | tr -d '\0' | sed 's/^\[[^ ]* //' | tr '\n' ,)" "first,behind the hole," \
	"and nobody reads holes"
truncate -s "$size" "$log"
exits 2 "a bad expression is refused" lbctl logs --grep '(' bar
like "$err" 'bad regular expression' "in a line"
ok "it is ended" lbctl kill --now bar

# --- a file that is made anew, as scripts do with one for all attempts ---------------------------
lbctl submit --name anew --set restart.in_place=0 --set restart.backoff_first=30m \
	--wrap 'echo of the first; exit 1' >/dev/null
run_reaches anew backoff 20
lbctl logs -f anew >"$T/anew.shown" 2>/dev/null &
follow=$!
wait_for 'grep -q "of the first" "$T/anew.shown"' 20
anew=$runs/anew/attempts/1/out.log
rm "$anew"
seq 101 200 >"$anew"	# it may well get the number of the one that is gone
wait_for 'grep -q 200 "$T/anew.shown"' 20
is "$(grep -c '^[12][0-9][0-9]$' "$T/anew.shown")" 100 "logs -f shows all of it"
kill $follow
ok "it is ended, too" lbctl kill --now anew
done_testing
