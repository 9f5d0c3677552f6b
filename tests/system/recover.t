#!/bin/sh
# SPDX-License-Identifier: MIT
# A ledger that is missing, empty, damaged or replaced: nobody starts on nothing, and from the runs'
# folders alone all comes back that they know. Jobs that live stay the only ones.
. "$(dirname "$0")/lib.sh"
need sqlite3 sqlite3

db=$LB_HOME/ledger.db
sql() { sqlite3 -readonly "${2:-$db}" "$1"; }
# All that the folders know, in words that do not depend on the order in which rows were made.
known() {	# DATABASE
	sql "SELECT 'run', name, owner, owner_uid, state, cause, text, scheduler, dir, wanted, wanted_by,
			wanted_reason, wanted_ms, created_ms, ended_ms, failures, step, target_step, loss,
			resume_from, run_group, wanted_switch FROM runs ORDER BY name;
		SELECT 'attempt', name, number, token, a.state, job_id, submit_time, a.cause, exit_code, signal,
			a.text, nodes, a.ended_ms, resumed_from_step,
			CASE WHEN a.state = 'ended' THEN spool_seq END
			FROM attempts a JOIN runs r ON r.id = run_id ORDER BY name, number;" "$1"
	files_know "$1"
}
# The same without what only the record tells.
files_know() {
	sql "SELECT 'launch', name, a.number, l.number, l.cause, l.exit_code, l.signal, l.text, pid, l.started_ms,
			l.resumed_from_step, first_step, last_step, first_step_ms, last_step_ms, saved_step, saved_ms
			FROM launches l JOIN attempts a ON a.id = attempt_id JOIN runs r ON r.id = run_id
			ORDER BY name, a.number, l.number;
		SELECT 'launch_end', name, a.number, l.number, l.ended_ms FROM launches l
			JOIN attempts a ON a.id = attempt_id JOIN runs r ON r.id = run_id
			WHERE l.cause <> 'lost' ORDER BY name, a.number, l.number;
		SELECT 'checkpoint', name, c.step, attempt, path, c.text, valid, time_ms
			FROM checkpoints c JOIN runs r ON r.id = run_id ORDER BY name, path;
		SELECT 'metric', name, a.number, seq, launch, m.step, time_ms, m.loss, fields
			FROM metrics m JOIN attempts a ON a.id = attempt_id JOIN runs r ON r.id = m.run_id
			ORDER BY name, a.number, seq;
		SELECT 'event', name, e.kind, e.actor, e.text, e.attempt FROM events e JOIN runs r ON r.id = run_id
			WHERE e.actor = 'lbrun' ORDER BY name, e.attempt, e.id;" "$1"
}
doctor_says() { lbctl doctor --json | python3 -c 'import json, sys
print(*[c[sys.argv[2]] for c in json.load(sys.stdin) if c["check"] == sys.argv[1]])' "$1" "$2"; }
lose() { lbd_kill9; mv "$db" "$T/before.db"; mv "$db-wal" "$T/before.db-wal"; rm -f "$db.bak"; }

cat >"$T/trainer.py" <<'END'
import os, sys, time
sys.path.insert(0, os.environ["CLIENT"])
import lb_client as lb
how, steps = sys.argv[1], int(sys.argv[2])
first = int((os.environ.get("LB_RESUME_FROM") or "-0").rsplit("-", 1)[1])
lb.send("hello", rank=0, world=1, pid=os.getpid())
for step in range(first + 1, steps + 1):
    lb.send("step", step=step, loss=1.0 / step, target_step=steps, mfu=0.5)
    if step % 5 == 0:
        path = f"{os.environ['LB_CHECKPOINT_DIR']}/step-{step:08d}"
        os.makedirs(path, exist_ok=True)
        open(path + "/manifest.json", "w").write('{"format":1,"step":%d,"tokens":0,"world_size":1,'
            '"config_hash":"","attempt":1,"files":[]}' % step)
        lb.send("checkpoint", step=step, path=path)
    if how == "crash" and step == 7 and os.environ["LB_LAUNCH"] == "1": os.kill(os.getpid(), 11)
    if how == "fail": sys.exit(3)
open(f"{os.environ['LB_RUN_DIR']}/up", "w").close()
while how == "live" and not lb.asked("stop"):
    time.sleep(0.05)
    if os.path.exists(f"{os.environ['LB_RUN_DIR']}/go"): break
    lb.send("phase", name="train")
lb.send("bye", status="done")
END
CLIENT=$src/docs
export CLIENT
submit() {	# NAME HOW STEPS OPTION…
	run_name=$1 how=$2 steps=$3
	shift 3
	lbctl submit --name "$run_name" "$@" -- env "CLIENT=$CLIENT" python3 "$T/trainer.py" "$how" "$steps" >/dev/null
}

printf '[poll]\ninterval = "100ms"\nspool_interval = "50ms"\n[local]\njobs = 3\n' >"$LB_HOME/lbd.toml"
lbd_start 2>/dev/null || { printf '[local]\njobs = 3\n' >"$LB_HOME/lbd.toml"; lbd_start; }

# --- runs of every kind ---------------------------------------------------------------------------
submit "done" "done" 12
submit crashes crash 12 --set restart.backoff_first=1s --set run.group=sweep
submit fails fail 3 --set restart.max_without_progress=2 --set restart.backoff_first=1s --set restart.in_place=0
run_reaches "done" completed 60
run_reaches crashes completed 60
run_reaches fails failed 60
submit killed live 6
wait_for '[ -e "$LB_HOME/runs/killed/up" ]' 30
lbctl kill killed --reason "wrong data" >/dev/null
run_reaches killed killed 30
submit live live 8
submit live2 live 8
submit live3 live 8
for run in live live2 live3; do wait_for "[ -e \"\$LB_HOME/runs/$run/up\" ]" 30; done
submit waits live 8	# three jobs at most: it stands in line
submit never live 8	# and this one is killed before it ever began
submit held live 8
lbctl hold held >/dev/null
wait_for '[ "$(run_state waits)" = queued ]' 20
lbctl kill never --reason "thought better of it" >/dev/null
run_reaches never killed 20
wait_for '[ "$(run_state held)" = held ]' 20
for run in live live2 live3; do wait_for "[ \"\$(lbctl status $run --json | json step)\" = 8 ]" 20; done

# --- gone under a live lbd ------------------------------------------------------------------------
mv "$db" "$T/moved.db"
ok "deleted under a live lbd: a submission is not acknowledged" sh -c '! lbctl submit --name lost -- true'
wait_for 'lbd_is_gone' 20
passed "and lbd ends"
like "$(cat "$T/lbd.log")" 'ledger.db is gone, or another file is in its place' "it is said why"
lbd_stop
exits 9 "it does not start on nothing" lbd --foreground --home "$LB_HOME"
like "$err" 'ledger.db is missing, but there are [0-9]+ runs in .*lbctl recover' "and says what does"
mv "$T/moved.db" "$db"
rm -rf "$LB_HOME/runs/lost"
lbd_start
cp "$db" "$T/copy.db"
mv "$T/copy.db" "$db"	# another inode: some tool wrote it anew
wait_for 'lbd_is_gone' 20
passed "another file in its place, and an lbd at rest: it ends, too"
lbd_stop
like "$(cat "$T/lbd.log")" 'lbd ends, jobs run on: .*another file is in its place' "and says so"
like "$(cat "$T/lbd.log")" 'the log of the one before it, inode [0-9]+, is kept as .*ledger.db-wal.of-' "its log, too"
ok "which is not beside the other file" sh -c '[ ! -e "$1-wal" ] && ls "$1"-wal.of-*' sh "$db"

# --- from the folders alone -----------------------------------------------------------------------
lbd_start
wait_for '[ "$(run_state live3)" = running ]' 20
exits 4 "beside a live lbd nothing is made anew" lbctl recover
lose
: >"$db"
exits 9 "nor on an empty file" lbd --foreground --home "$LB_HOME"
like "$err" 'ledger.db is empty, but' "as it says"
exits 0 "recover" lbctl recover
like "$out" 'was made anew: 10 runs \(5 live\) with [0-9]+ attempts' "says what it found"
known "$T/before.db" >"$T/before"
known "$db" >"$T/after"
ok "all that was known is known again" diff "$T/before" "$T/after"
is "$(sql 'PRAGMA integrity_check')$(sql 'PRAGMA foreign_key_check')" ok "and it is sound"
exits 0 "once more" lbctl recover
like "$out" 'is sound: nothing was done' "there is nothing to do"
jobs() { for run in live live2 live3; do lbctl status $run --json | json attempts | grep -o '"job_id": [0-9]*'; done; }
sql "SELECT '\"job_id\": ' || a.job_id FROM attempts a JOIN runs r ON r.id = run_id WHERE r.name LIKE 'live%'
	ORDER BY r.name" >"$T/jobs"
lbd_start
touch "$LB_HOME"/runs/live/go "$LB_HOME"/runs/live2/go "$LB_HOME"/runs/live3/go "$LB_HOME"/runs/waits/go
for run in live live2 live3 waits; do run_reaches $run completed 60; done
is "$(jobs)" "$(cat "$T/jobs")" "live jobs were adopted, and no second one was made"
is "$(lbctl status waits --json | json attempts.#)" 1 "nor for the one in line"
is "$(run_state killed) $(run_state never) $(run_state held)" "killed killed held" "killed runs stay killed, held ones held"
like "$(lbctl events never)" 'thought better of it' "with the reason"

# --- what older lbds left: no records -------------------------------------------------------------
submit last live 8
wait_for '[ -e "$LB_HOME/runs/last/up" ]' 30
wait_for '[ "$(lbctl status last --json | json step)" = 8 ]' 20
lose
rm "$LB_HOME"/runs/*/record.json "$LB_HOME/runs/held/spec.toml"
printf '{}' >"$LB_HOME/runs/done/record.json"
exits 0 "recover without records" lbctl recover
files_know "$T/before.db" | grep -v '|last|1|8|\|^event' >"$T/before"
files_know "$db" | grep -v '|last|1|8|\|^event' >"$T/after"
ok "launches, steps, checkpoints and causes are there" diff "$T/before" "$T/after"
is "$(sql "SELECT group_concat(name || ' ' || state, ', ') FROM (SELECT name, state FROM runs WHERE name IN
	('done', 'crashes', 'killed', 'live') ORDER BY name)")" \
	"crashes completed, done completed, killed killed, live completed" "and how runs ended"
touch "$LB_HOME/runs/last/go"

# --- jobs of Slurm --------------------------------------------------------------------------------
lbd_start
run_reaches last completed 30
lbd_stop
cluster_start 1
lbd_start
lbctl submit --name runs --set run.scheduler=slurm -- sh -c 'await "$LB_RUN_DIR/go"' >/dev/null
run_reaches runs running 60
lbctl submit --name pends --set run.scheduler=slurm --set slurm.extra='["--begin=now+1hour"]' -- true >/dev/null
run_reaches pends queued 30
ids() { for run in runs pends; do lbctl status $run --json | json attempts.0.job_id; done; }
ids >"$T/ids"
lose
exits 0 "recover beside jobs of Slurm" lbctl recover
lbd_start
touch "$LB_HOME/runs/runs/go"
run_reaches runs completed 60
is "$(ids)" "$(cat "$T/ids")" "they are adopted by their tokens"
is "$(scontrol show job -o | grep -c '^JobId=')" 2 "and no other was made"
lbctl kill pends >/dev/null
run_reaches pends killed 30
cluster_stop
lbd_stop

# --- damage that no page shows --------------------------------------------------------------------
lbd_start
wait_for 'lbctl doctor --json | grep -q "every page, index and reference was sound"' 40
passed "soon after the start the ledger is looked at as a whole, and doctor says so"
ok "the backup took its place" test -s "$db.bak"
lbd_stop
sqlite3 "$db" "PRAGMA foreign_keys = OFF; DELETE FROM runs WHERE name = 'crashes'"
is "$(doctor_says backup verdict)" fine "the last backup, at the end, has its digest"
exits 9 "rows that refer to nothing" lbd --foreground --home "$LB_HOME"
like "$err" 'damaged \([0-9]+ rows refer to nothing\).*lbctl recover' "are refused, with what to do"
exits 0 "which does it" lbctl recover
is "$(sql "SELECT state FROM runs WHERE name = 'crashes'")" completed "the run is back"
ok "the damaged file is kept" sh -c 'ls "$1".damaged-*' sh "$db"

# A big ledger is not read as a whole at the start: the look soon after it finds what is wrong.
sqlite3 "$db" "CREATE TABLE ballast (x); INSERT INTO ballast VALUES (zeroblob(34 << 20));
	PRAGMA foreign_keys = OFF; DELETE FROM runs WHERE name = 'crashes'"
lbd_start
wait_for 'lbctl events --json | grep -q ledger_damaged' 60
passed "damage under a live lbd is an event"
like "$(doctor_says ledger text)" 'damaged \([0-9]+ rows refer to nothing\)' "which doctor tells"
before=$(cksum <"$db.bak")
lbd_stop
is "$(cksum <"$db.bak")" "$before" "the backup before it stays, at the end, too"
is "$(doctor_says backup verdict)" fine "and is sound"

python3 - "$db.bak" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[data.rindex(b"wrong data")] ^= 1
open(sys.argv[1], "r+b").write(data)
PY
is "$(sqlite3 -readonly "$db.bak" 'PRAGMA integrity_check')" ok "a bit turned inside a value, and SQLite sees nothing"
like "$(doctor_says backup text)" 'ledger.db.bak: some byte has changed' "doctor does"
exits 0 "recover" lbctl recover
like "$out$err" 'backup is of no use: .*some byte has changed' "does not use such a backup, and says so"
ok "nothing of it is taken over" test "${out#*backup knew}" = "$out"
lbd_start
lbd_stop
is "$(doctor_says backup verdict)" fine "the next lbd makes a good one"
done_testing
