#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of lbd, again and again, while runs are submitted, train, crash and come back: no run is
# lost, none gets a second job or a second trainer at the same time, and every step that lbrun
# acknowledged is in the ledger exactly once. Nor does a run appear that was refused.
. "$(dirname "$0")/lib.sh"

# A trainer that keeps its own record of what was acknowledged, and of being alone. It dies once,
# without a checkpoint to come back to, so its second launch begins at step 1 again.
cat >"$T/trainer.py" <<'PY'
import fcntl, os, sys, time
sys.path.insert(0, os.environ["CLIENT"])
import lb_client as lb

folder = os.environ["LB_RUN_DIR"]
alone = open(folder + "/alone", "w")
fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)      # a second live trainer fails here
acked = open(folder + "/acked", "a")
launch = int(os.environ["LB_LAUNCH"])
lb.send("hello", rank=0, world=1, pid=os.getpid())
for step in range(1, 41):
    seq = lb.send("step", step=step, loss=1.0 / step, target_step=40)
    acked.write(f"{os.environ['LB_ATTEMPT']} {launch} {step}\n")
    acked.flush()
    if launch == 1 and step == 20:
        os.kill(os.getpid(), 9)
    time.sleep(0.05)
lb.send("bye", status="done")
PY

# What the ledger has, in order of arrival, as the trainer would have written it. Of a copy: there
# SQLite before 3.37 can be told that no table is strict, and reads those without rowids, too.
ledger_steps() {
	cp "$LB_HOME/ledger.db" "$T/copy.db"
	python3 - "$T/copy.db" "$1" <<'PY'
import sqlite3, sys
path, run = sys.argv[1:]
db = sqlite3.connect(path)
db.execute("PRAGMA writable_schema = ON")
db.execute("UPDATE sqlite_master SET sql = replace(replace(sql, ' STRICT, ', ' '), ') STRICT', ')')")
db.commit()
db.close()
for row in sqlite3.connect(path).execute("""SELECT a.number, m.launch, m.step FROM metrics m
        JOIN attempts a ON a.id = m.attempt_id JOIN runs r ON r.id = m.run_id
        WHERE r.name = ? ORDER BY m.id""", (run,)):
    print(*row)
PY
}

all_over() {
	for run in $runs; do
		[ "$(run_state "$run")" = completed ] || return 1
	done
}

crash_until_over() {
	crashes=0
	until all_over || [ $crashes -ge 60 ]; do
		sleep "0.$(((crashes * 7 + 1) % 10))$(((crashes * 3) % 10))"	# the moment of the crash
		lbd_kill9
		crashes=$((crashes + 1))
		lbd_start
	done
	diag "lbd was killed $crashes times"
	# no life of lbd may have been long enough for a submission; the last one is
	all_over || wait_for all_over 60
}

# Debian 11's sqlite3 knows no strict tables: lbd looks as well, whenever it starts, and refuses
# damage.
is_sound() {
	said=$(sqlite3 "$LB_HOME/ledger.db" 'PRAGMA integrity_check' 2>&1)
	case $said in
	ok) return 0 ;;
	*'near "STRICT"'*) lbd_try && lbd_stop ;;
	*) echo "$said" && return 1 ;;
	esac
}

check_runs() {
	for run in $runs; do
		is "$(run_state "$run")" completed "$1: $run is completed"
		is "$(jobs_of "$run")" 1 "$1: $run had one job"
		is "$(lbctl status "$run" --json | json attempts.-1.launches.#)" 2 \
			"$1: $run was launched twice"
	done
	lbd_stop
	for run in $runs; do
		is "$(ledger_steps "$run")" "$(cat "$LB_HOME/runs/$run/acked")" \
			"$1: $run: every acknowledged step is in the ledger, once and in order"
	done
	ok "$1: the ledger is sound" is_sound
}

need sqlite3 sqlite3
CLIENT=$src/docs
export CLIENT
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"

submit_all() {
	for run in $runs; do
		lbctl submit --name "$run" --set restart.backoff_first=1s --set "run.scheduler=$1" \
			-- env "CLIENT=$CLIENT" python3 "$T/trainer.py" >/dev/null || return 1
	done
}

runs="a b"
lbd_start
ok "submitted to the local scheduler" submit_all local
crash_until_over
check_runs local

# The ledger cannot be written for a second, from the moment a run is released: who is refused
# meanwhile leaves nothing behind that the next commit would carry in. A second may be over before
# we ask: then again.
refused() {
	LB_FAILPOINT=released.written:error lbd_start
	tried=$((tried + 1))
	lbctl submit --name "waits$tried" -- sleep "$mark" >/dev/null
	for turn in 1 2 3 4 5; do
		full=full$tried-$turn
		lbctl submit --name "$full" -- true >/dev/null 2>"$T/refused" && continue
		grep -q "cannot be written" "$T/refused" && lbctl hold "waits$tried" >/dev/null && return
	done
	lbctl kill --now "waits$tried" >/dev/null
	lbd_stop
	return 1
}
tried=0
until refused || [ $tried -ge 20 ]; do :; done
lbd_stop
lbd_start
is "$(grep -c "cannot be written" "$T/refused") $(lbctl ls --all --json | grep -c "\"$full\"")" "1 0" "a run that was refused does not appear later"
is "$([ -e "$LB_HOME/runs/$full" ] && echo there)" "" "nor does its folder stay"
lbctl kill --now "waits$tried" >/dev/null
lbd_stop

# The last sync of a commit fails: it was made, and lbd cannot know. The next one does, and finds
# the folder, too. The commit of the submission is one of the first.
unsure=0
for n in 1 2 3 4 5 6 7 8; do
	LB_FAILPOINT=ledger.committed:error@$n lbd_try
	lbctl submit --name "unsure$n" -- true 2>>"$T/unsure" >/dev/null
	lbd_stop
	lbd_start
	if grep -q "unsure$n may have been submitted all the same" "$T/unsure"; then
		unsure=$((unsure + 1))
		wait_for "[ \"\$(run_state unsure$n)\" = completed ]" 30
	fi
	lbd_stop
done
like "$unsure" '^[1-8]$' "a submission of which nobody knows whether it was taken is found, and done"

cluster_start 2
runs="c d"
lbd_start
ok "submitted to Slurm" submit_all slurm
crash_until_over
jobs=$(scontrol show job -o | grep -c '^JobId=')
check_runs slurm
is "$jobs" 2 "slurm: two runs made two jobs"

# On the rungs of the submission itself: lbd dies within milliseconds of the answer. The job script
# notes each start of its trainer.
runs=
lbd_start
for delay in 000 001 002 003 004 006 008 012 016 024; do
	runs="$runs r$delay"
	lbctl submit --name "r$delay" -- sh -c 'echo started >>"$LB_RUN_DIR/starts"' >/dev/null
	sleep 0.$delay
	lbd_kill9
	lbd_start
done
wait_for all_over 60
is "$(for run in $runs; do wc -l <"$LB_HOME/runs/$run/starts"; done | sort | uniq -c | tr -s ' ')" \
	" 10 1" "ten runs were submitted under fire: ten trainers were started, once each"
wait_for '[ -z "$(squeue -h)" ]' 30 && passed "no job of theirs is left in the queue"
done_testing
