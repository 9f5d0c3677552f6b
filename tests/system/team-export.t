#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users hold no blanks
# The runs of a whole team: what each lbd tells in a common folder, who may read it, orders that
# reach a colleague's run without a word to the colleague's lbd, and files that are not what they
# seem.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

# colleagues have no lbd, and know of the folder only
F=$T/team
as_member() { as $member env LB_HOME="$T/none" LB_TEAM="$F" timeout 20 "$@"; }
as_outsider() { as $outsider env LB_HOME="$T/none" LB_TEAM="$F" timeout 20 "$@"; }

play_owner
make_team "$LB_HOME"
E=$F/$owner.json

# --- telling --------------------------------------------------------------------------------------
as $member touch "$E"
lbd_start
wait_for "lbctl events | grep -q 'team_refused.*$owner.json cannot be written'" 10
as $member rm "$E"
as $member touch "$F/.$owner.new"	# stays, and stops nothing
for run in first frozen sweep-1 sweep-2; do
	as $owner lbctl submit --name $run --set watch.kill_grace=1s --set run.group=g-$run \
		-- sleep 6543 >/dev/null
done
told() { wait_for "grep -q '\"name\":\"$1\",\"state\":\"$2\"' $E" 20; }
for run in first frozen sweep-1 sweep-2; do told $run running; done
is "$(stat -c %U "$F/.$owner.new")" $member "what a colleague has put in the way stays, and stops nothing"
is "$(stat -c '%a %U %G' "$E")" "640 $owner $team" \
	"an export is its owner's to write, the team's to read"
is "$(json switches <"$E")" "$LB_HOME/switches" "it says where orders go"
ok "no path of a run, no token, no text" sh -c "! grep -Eq 'attempts|token\"|text|runs/' '$E'"
exits 0 "a member looks" as_member lbctl ls --team
like "$out" "^OWNER +NAME +STATE" "whose they are is a column"
like "$out" "^$owner +frozen +running" "and sees the owner's runs"
is "$(as_member lbctl ls --team --json --group g-first | json 0.user)" $owner \
	"as JSON, of one group"
is "$(as_member lbctl ls --team --json --group g-first | json '#')" 1 "… and of no other"
exits 0 "the owner needs no variable" as $owner lbctl ls --team
exits 6 "an outsider sees nothing" as_outsider lbctl ls --team
exits 2 "without a folder that is said" as $member env LB_HOME="$T/none" lbctl ls --team
like "$err" "which team\? .*LB_TEAM names none" "and what to name"

mkdir -m 777 "$T/pages"
exits 0 "a page of the team's, for one without an lbd" as_member lbctl report --team -o "$T/pages/member.html"
like "$(cat "$T/pages/member.html")" '<h2>frozen</h2>' "has a colleague's runs"
exits 0 "the owner's page" as $owner lbctl report --team -o "$T/pages/owner.html"
is "$(grep -c '<h2>frozen</h2>' "$T/pages/owner.html")" 1 "has each run once"
exits 6 "an outsider gets none" as_outsider lbctl report --team -o "$T/pages/outsider.html"

# --- output: what lbd made is the team's to read, and nobody else's -------------------------------
run_folder=$LB_HOME/runs/first
is "$(as $member lbctl status first --json | json dir)" "$run_folder" \
	"a member is told where a run lies"
exits 0 "and reads its output" as $member lbctl logs first
exits 0 "also without lbctl" as_member cat "$run_folder/attempts/1/out.log"
ok "but writes nothing there" as_member sh -c "! touch '$run_folder/x' '$run_folder/attempts/1/x'"
ok "and reads no environment" as_member sh -c "! cat '$run_folder/env.json'"
ok "an outsider gets nothing" as_outsider sh -c "! ls '$run_folder'"

# --- looking at one: by the export and the files; lbd is frozen, so nobody asks it ----------------
cat >"$T/reports.py" <<'PY'
import json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["LB_SOCKET"])
lines = s.makefile("r")
for step in range(1, 8):
    line = {"type": "step", "step": step, "loss": 9 / step, "target_step": 9}
    s.sendall(json.dumps(line).encode() + b"\n")
    lines.readline()
print("a line for the log", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
PY
as $owner lbctl submit --name told -- python3 "$T/reports.py" "$T/end" >/dev/null
as $owner lbctl submit --name quiet -- sh -c 'echo no steps here; until [ -e "$0" ]; do sleep 0.1; done' "$T/end" >/dev/null
wait_for "grep -q '\"name\":\"told\",.*\"step\":7' $E" 20
wait_for "grep -qs 'no steps here' $LB_HOME/runs/quiet/attempts/1/out.log" 20 &&
	wait_for "grep -q '\"name\":\"quiet\",\"state\":\"running\"' $E" 20
as $owner lbctl submit --name tasks --array=0-1 --wrap "[ \$SLURM_ARRAY_TASK_ID = 1 ] && exit 3; until [ -e '$T/end' ]; do sleep 0.1; done" >/dev/null
wait_for "[ -s $LB_HOME/runs/tasks/attempts/1/task-1/exit.json ] && [ -s $LB_HOME/runs/tasks/attempts/1/task-0/claim ]" 20 &&
	wait_for "grep -q '\"name\":\"tasks\",\"state\":\"running\"' $E" 20
kill -STOP $lbd_pid
exits 0 "a member looks at a colleague's array" as_member lbctl status $owner/tasks
like "$out" "failed +task 1\$" "what failed of it"
like "$out" "attempt 1: running, " "and that it runs"
like "$(as_member lbctl events $owner/tasks)" "task_failed +task 1: error: exit status 3" "its events"
exits 0 "a member looks at a colleague's run" as_member lbctl status $owner/told
like "$out" "^told +running" "how it stands"
like "$out" "step +7/9" "how far it is"
like "$out" "attempt 1: running, .* on " "its attempt"
like "$out" "launch 1: running, steps 1 to 7" "and its launches"
exits 0 "one that tells no steps" as_member lbctl status $owner/quiet
like "$out" "output .*ago: no steps here" "shows what it printed last"
is "$(as_member lbctl status $owner/told --json | json dir)" "$LB_HOME/runs/told" "as JSON, too"
exits 0 "its events" as_member lbctl events $owner/told
like "$out" "lbrun +launch +launch 1, from scratch" "from the spool"
exits 0 "its output" as_member lbctl logs $owner/told
like "$out" "a line for the log" "from its file"
as $member env LB_HOME="$T/none" LB_TEAM="$F" timeout 120 lbctl follow $owner/told >"$T/followed" 2>&1 &
follower=$!
wait_for "grep -q 'told.*step 7/9' $T/followed" 20 && passed "and it is followed"
kill -CONT $lbd_pid
touch "$T/end"
wait $follower
is $? 0 "until it has completed"
like "$(cat "$T/followed")" "launch_end +launch 1: completed" "with what happens meanwhile"
run_reaches told completed 20
wait_for '[ -s "$LB_HOME/runs/tasks/attempts/1/exit.json" ]' 20
like "$(as_member lbctl events $owner/tasks)" "attempt_end +attempt 1: error: task 1: exit status 3" "how an array ended"
as $owner lbctl kill --now tasks >/dev/null

# A month of steps: looked at in little memory, and by few of them.
spool=$LB_HOME/runs/told/attempts/1/spool.jsonl
cp -p "$spool" "$T/spool"
python3 - "$spool" <<'PY'
import json, sys
seq = json.loads(open(sys.argv[1]).readlines()[-1])["seq"]
with open(sys.argv[1], "a") as f:
    for i in range(1, 600001):
        f.write('{"v":1,"seq":%d,"time_ms":1,"launch":1,"from":"trainer","line":'
                '{"type":"step","step":%d,"loss":2.5}}\n' % (seq + i, i + 9))
PY
cat >"$T/takes.py" <<'PY'
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print("took", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, "MB")
sys.exit(status)
PY
# (a sanitizer keeps what was freed)
exits 0 "a spool of months" as $member env ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=16" \
	LB_HOME="$T/none" LB_TEAM="$F" python3 "$T/takes.py" lbctl status $owner/told
like "$out" "launch 1: .* steps 1 to 600009" "is read to its end"
like "$out" "^took 1?[0-9]?[0-9] MB" "and not held in memory"
cat "$T/spool" >"$spool"

# --- where the hours went: the export tells it, by weeks ------------------------------------------
goes() { as_member lbctl goodput "$@"; }
wait_for "grep -q '\"name\":\"told\",.*completed.*\"goodput\"' $E" 20
exits 0 "a colleague's goodput" goes $owner/told
like "$out" "^productive +([0-9]+m)?[0-9]+s" "where its hours went"
ettr() { "$@" lbctl goodput "$run" --json | json ettr; }
# the export may be of a moment ago
wait_for '[ "$(run=$owner/told ettr as_member)" = "$(run=told ettr as $owner)" ]' 130 && passed "is what its owner is told"
exits 2 "not since a moment" goes $owner/told --since 1h
like "$err" "weeks are told: --by week" "which is said"
exits 0 "of the team" goes --team
like "$out" "^$owner/told +1 +0 +[0-9.]+ +[0-9.]+ +0\.[0-9]+ " "a row for each run"
like "$out" "^all +7 +" "and one for all"
exits 0 "by week, for spreadsheets" goes --team --by week --csv
like "$out" "^\"$(date +%G-W%V)\",7,.*,0\$" "this one, but on a Monday's midnight"
is "$(goes --team --by team --json | json 0.runs)" 7 "the team as one"
is "$(goes --team "$owner/to*" --by owner --json | json 0.runs)" 1 "or of some runs"
exits 2 "not by what there is not" goes --team --by month
exits 6 "an outsider is told nothing" as_outsider lbctl goodput --team
like "$(as_member lbctl report --team --week -o "$T/pages/week.html"; cat "$T/pages/week.html")" \
	"hours are those of these 7 days" "a page of the team's week"

exits 3 "a checkpoint that is not there" as $owner lbctl restart told --from 99
unlike "$err" "did you mean" "has no name of a run offered for it"
exits 3 "a run nobody tells of" as_member lbctl status $owner/nothing
exits 3 "a colleague who tells of none" as_member lbctl events nobody/told
exits 2 "one run, not many" as_member lbctl status "$owner/*"
like "$err" "may be many runs: name one" "which is said"
exits 6 "an outsider reads none" as_outsider lbctl logs $owner/told
chmod 700 "$LB_HOME/runs/told"
exits 6 "nor does anybody past a folder that is closed" as_member lbctl events $owner/told
like "$err" "lbctl doctor says what keeps the team out" "what helps is said"
exits 0 "a page of the team all the same" as_member lbctl report --team -o "$T/pages/closed.html"
like "$(grep "<td>$owner</td><td class=.n.>7" "$T/pages/closed.html")" '>7<.*[0-9]</td></tr>$' \
	"counts its hours by what is told"
chmod 2750 "$LB_HOME/runs/told"
exits 0 "the owner's own by its whole name" as $owner lbctl status $owner/told
exits 3 "ls of what nobody has" as_member lbctl ls --team 'none-*'
exits 0 "ls of a colleague's" as_member lbctl ls "$owner/fir*"
like "$out" "^$owner +first " "lists them"
is "$(as_member lbctl ls "$owner/fir*" --json | json '#')" 1 "and no others"

# --- orders: lbd is frozen, so nobody asks it -----------------------------------------------------
kill -STOP $lbd_pid
exits 6 "an outsider orders nothing" as_outsider lbctl kill $owner/frozen
exits 0 "a member sees what it would be" as_member lbctl kill --dry-run $owner/frozen
ok "and leaves nothing" [ ! -e "$LB_HOME/switches/frozen.kill" ]
# As the README shows it, with the names that are here.
sed -n "s,^    \\(lbctl kill \\)ada/first,\\1$owner/frozen,p" "$src/README.md" >"$T/colleague.sh"
is "$(wc -l <"$T/colleague.sh")" 1 "the README kills a colleague's run"
exits 0 "a member kills" as_member sh -e "$T/colleague.sh"
like "$out" "the switch $LB_HOME/switches/frozen.kill is there" "by a switch where the export says"
wait_for '[ -e "$LB_HOME/runs/frozen/attempts/1/exit.json" ]' 30 &&
	passed "the job obeys it with lbd frozen"
kill -CONT $lbd_pid
run_reaches frozen killed 20
like "$(lbctl events frozen)" "$member.s file .*switch frozen.kill: it hangs" "who and why is on record"
told frozen killed && passed "and told to the team"
exits 0 "what is over is left alone" as_member lbctl kill $owner/frozen
as_member rm "$LB_HOME/switches/frozen.kill"

exits 0 "a member asks a colleague's trainer for a checkpoint" as_member lbctl save $owner/first \
	--reason "before lunch"
like "$out" "the switch $LB_HOME/switches/first.save is there" "by a switch, too"
wait_for '[ ! -e "$LB_HOME/switches/first.save" ]' 10 &&
	passed "which lbd takes away when it has asked"
like "$(lbctl events first)" "$member.s file +save +switch first.save: before lunch" \
	"who and why is on record"
is "$(run_state first)" running "and the run goes on"

exits 2 "a bare name is not taken for a colleague's run" as_member lbctl hold first
like "$err" "if you mean $owner/first, say so" "but which it may be is told"
exits 0 "unless one says yes" as_member lbctl hold --yes first
run_reaches first held 20
exits 0 "who held it lets it go on" as_member lbctl release $owner/first
run_reaches first running 20
exits 2 "a glob asks" as_member lbctl stop "$owner/sweep-*"
exits 0 "or is told yes" as_member lbctl stop --yes "$owner/sweep-*"
run_reaches sweep-1 killed 20
run_reaches sweep-2 killed 20
is "$(run_state first)" running "what it does not mean runs on"
as_member rm "$LB_HOME"/switches/sweep-1.stop "$LB_HOME"/switches/sweep-2.stop
exits 3 "a run that nobody tells of" as_member lbctl kill $owner/nothing
exits 3 "a colleague who tells of nothing" as_member lbctl kill nobody/first
exits 2 "a name that is none" as_member lbctl kill "../../first"
exits 0 "the owner's own goes to lbd" as $owner lbctl hold $owner/first
like "$out" "^first " "by its socket"
for what in why restart wait; do
	exits 2 "$what of a colleague's run" as_member lbctl $what $owner/first
	like "$err" "$owner/first is a colleague's" "is refused as that"
done
exits 0 "why of the owner's own" as $owner lbctl why $owner/first
like "$out" "^first  (held|stopping)" "is of the run here"
exits 0 "and so is a report" as $owner lbctl report "$owner/fi*" -o "$T/pages/own.html"
told first held

# --- files that are not what they seem ------------------------------------------------------------
cat >"$T/hostile.py" <<'PY'
import json, os, sys, time
folder, member, owner_home, what = sys.argv[1:]
path = f"{folder}/{member}.json"
if os.path.lexists(path): os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
run = {"name": "first", "state": "running", "owner": member, "step": 1, "created": time.time()}
def export(**more):
    return json.dumps({"format": 1, "user": member, "switches": f"{owner_home}/switches",
                       "written": time.time(), "runs": [run], "left_out": 0} | more)
def put(text):
    open(path, "wb").write(text if isinstance(text, bytes) else text.encode())
if what == "link": os.symlink(f"{folder}/../home/lbd.toml", path)
elif what == "hardlink":
    put(export()); os.link(path, f"{folder}/other")
elif what == "fifo": os.mkfifo(path)
elif what == "folder": os.mkdir(path)
elif what == "empty": put("")
elif what == "garbage": put(bytes(range(256)) * 1000)
elif what == "deep": put("[" * 100000)
elif what == "huge": put(export()); os.truncate(path, 1 << 40)
elif what == "version": put(export(format=2))
elif what == "shape": put(export(runs={"a": 1}))
elif what == "many": put('{"format":1,"runs":[' + ",".join(['{"name":"a","state":"held"}'] * 35000) + "]}")
elif what == "controls":
    bad = "\x1b]0;pwned\x07\x9b2J\u202e\n\r"
    put(export(user=bad, switches="/tmp/" + bad, runs=[
        {"name": "x" + bad, "state": "running"}, {"name": "../x", "state": "running"}, "no run", None, 7,
        run | {"state": bad}, {"name": "y", "state": "running", "owner": bad, "cause": bad * 99, "step": "1", "loss": [],
         "created": 1e300, "tokens_per_s": "x", "group": bad, "mfu": {"a": bad}, "goodput": [1]},
        {"name": "z", "state": "held", "goodput": {"gpus": 10**18, "last7d": [], "weeks":
            [{"week": bad, "ms": {"productive": 10**18, "lost": -5, "hang": bad, bad: 7}, "interruptions": 4}]}}]))
elif what == "deputy": put(export())
elif what == "linked":
    link = f"{folder}/away"
    if not os.path.lexists(link): os.symlink(f"{owner_home}/switches", link)
    put(export(switches=link))
elif what == "relative": put(export(switches="../home/switches"))
elif what == "old": put(export(written=time.time() - 86400))
PY
hostile() { as $member env python3 "$T/hostile.py" "$F" $member "$LB_HOME" $1; }
M=$F/$member.json
wait_for 'as $owner lbctl ls --team | grep -q "^$owner  *first  *held"' 20
for row in "link:a symbolic link" "hardlink:a file with several names" \
	"fifo:only an ordinary file" "folder:only an ordinary" \
	"empty:it makes no sense" "garbage:it makes no sense" "deep:it makes no sense" \
	"huge:it is too large" \
	"version:it is of another version" "shape:it lists no runs"; do
	hostile ${row%%:*}
	exits 0 "${row%%:*}: the others are listed" as $owner timeout 20 lbctl ls --team
	like "$err" "$M does not count: ${row#*:}" "${row%%:*}: it is told"
	like "$out" "^$owner +first +held" "${row%%:*}: nothing is lost"
done
rm -rf "$F/other"
hostile many
is "$(as $owner lbctl ls --team --json | json '#')" 4103 \
	"so many runs are taken from one file, and no more"
hostile controls
exits 0 "hours that make no sense" as_member lbctl goodput --team --by owner --csv
like "$out" '^"-",1,4886718\.345671,4886718345671\.[0-9]+,1\.000000,.*,4$' "are cut to some that do"
like "$err" "1 runs of $member are not counted: where their hours went is not told" \
	"and what tells none is not counted as none"
unlike "$out" "[^ -~]" "nor does any character arrive"
exits 0 "control characters" as $owner lbctl ls --team
ok "control characters: none arrives" \
	sh -c '! grep -Pq "[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]" "$T/exits.out" "$T/exits.err"'
is "$(as $owner lbctl ls --team | grep -c "^$member ")" 2 "only what can be a run's name is one"
exits 3 "nor is its folder used" as $owner lbctl kill $member/y
for what in deputy linked relative; do
	hostile $what
	status=6
	[ $what != relative ] || status=3
	exits $status "$what: no order to who did not ask for it" \
		as $owner lbctl kill $member/first
	ok "$what: no switch is left" [ ! -e "$LB_HOME/switches/first.kill" ]
done
hostile old
exits 0 "an old one is listed" as $owner lbctl ls --team
like "$err" "$member's lbd has told nothing for 1d" "and how old it is"
cp "$M" "$T/copy" && rm "$M"
install -o $outsider -m 644 "$T/copy" "$F/$outsider.json"
install -o $outsider -m 644 "$T/copy" "$M"
exits 0 "files of an outsider" as $owner lbctl ls --team
like "$err" "$outsider.json does not count: its owner is not in the team" "do not count"
like "$err" "$member.json does not count: it belongs to another user" \
	"nor do those of somebody else"
rm "$F/$outsider.json" "$M"
chmod 3777 "$F"
exits 6 "a folder that all can write to does not count" as_member lbctl ls --team
like "$err" "mend it with: chmod 3770 $F" "and how to mend it"
chmod 2770 "$F"
exits 6 "nor one where files can be replaced" as_member lbctl ls --team
chmod 3770 "$F"

# --- the end --------------------------------------------------------------------------------------
lbctl kill --now first >/dev/null
run_reaches first killed 20
lbd_stop
is "$(json runs.3.state <"$E")" killed "what lbd tells last is how things stand"
done_testing
