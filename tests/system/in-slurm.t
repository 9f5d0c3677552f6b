#!/bin/sh
# SPDX-License-Identifier: MIT
# lbd as a job of Slurm that hands over to its successor, while a run trains, is killed and started
# again, and people give orders between the two. LB_LONG=1 (make faults): five hand-overs of jobs
# with a limit of two minutes; else one, of a job that leaves early.
. "$(dirname "$0")/lib.sh"

hand_overs=1 limit=1m early=50s
[ -z "${LB_LONG:-}" ] || { hand_overs=5 limit=2m early=40s; }

cat >"$T/trainer.py" <<'PY'
import os, sys, time
sys.path.insert(0, os.environ["CLIENT"])
import lb_client as lb

acked = open(os.environ["LB_RUN_DIR"] + "/acked", "a")
open(os.environ["LB_RUN_DIR"] + "/pid", "w").write(str(os.getpid()))
lb.send("hello", rank=0, world=1, pid=os.getpid())
for step in range(1, 100000):
    lb.send("step", step=step, loss=1.0 / step)
    acked.write(f"{os.environ['LB_LAUNCH']} {step}\n")
    acked.flush()
    time.sleep(0.2)
PY
ledger_steps() {
	python3 - "$LB_HOME" <<'PY'
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}/ledger.db?mode=ro&immutable=1", uri=True)
for row in db.execute("SELECT m.launch, m.step FROM metrics m JOIN runs r ON r.id = m.run_id WHERE r.name = 'train' ORDER BY m.id"):
    print(*row)
PY
}
# Each launch's steps, as the ledger has them, are those that the trainer noted; the last may be
# missing in its notes, since it may have been killed between the acknowledgement and its own line.
steps_agree() {
	ledger_steps >"$T/ledger_steps"
	python3 - "$T/ledger_steps" "$LB_HOME/runs/train/acked" <<'PY'
import sys
def launches(path):
    steps = {}
    for line in open(path):
        launch, step = map(int, line.split())
        steps.setdefault(launch, []).append(step)
    return steps
ledger, noted = map(launches, sys.argv[1:])
for launch in sorted(ledger.keys() | noted.keys()):
    have, want = ledger.get(launch, []), noted.get(launch, [])
    if have[:len(want)] != want or len(have) > len(want) + 1 or have != sorted(set(have)):
        sys.exit(f"launch {launch}: the ledger has {have}, acknowledged were {want}")
PY
}
lease() { json "$1" <"$LB_HOME/lbd.lease"; }
# the longest time from the end of one lbd to the next, in ms
longest_gap() {
	python3 - "$LB_HOME/lbd.log" <<'PY'
import datetime, sys
left, gaps = None, []
for line in open(sys.argv[1]):
    said = lambda: datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00"))
    if "hands over to" in line: left = said()
    elif " serves " in line and left:
        gaps.append((said() - left).total_seconds())
        left = None
print(int(1000 * max(gaps)) if gaps else "none")
PY
}
launches() { lbctl status train --json | json attempts.0.launches.#; }
# its generation is that, and it has ended
is_past() { [ "$(lease generation)" -gt "$1" ] || [ "$(lease ended_ms)" != 0 ]; }

need sqlite3 sqlite3
CLIENT=$src/docs
export CLIENT
MC_KILLWAIT=30 cluster_start 2
printf '[daemon]\ntime = "%s"\nhand_over = "%s"\n[poll]\ninterval = "500ms"\n' $limit $early \
	>"$LB_HOME/lbd.toml"

# What people set for squeue, to see less, hides no job of the chain.
exits 0 "start returns once lbd runs in its job" env SQUEUE_QOS=theirs lbctl daemon start --in-slurm
like "$out" 'lbd runs in job [0-9]+ on' "it says which"
first=$(lease job_id)
begun=$(lease generation)
wait_for 'lbctl daemon status' 20
is "$(squeue -h -j "$first" -o '%T %C')" "RUNNING 1" "a job of one CPU"
wait_for '[ "$(squeue -h -t PENDING -o %j | grep -c ^lbd-)" = 1 ]' 20
passed "its successor waits in the queue"
exits 0 "starting it twice starts no second chain" lbctl daemon start --in-slurm
ok "a run is submitted" lbctl submit --name train --set restart.backoff_first=1s \
	--set restart.max_without_progress=100 --set restart.in_place=100 \
	-- env "CLIENT=$CLIENT" python3 "$T/trainer.py"
run_reaches train running 30

turn=0
while [ $turn -lt $hand_overs ]; do
	turn=$((turn + 1))
	wait_for '[ "$(lease ended_ms)" = 0 ] && lbctl ls' 30
	ok "$turn: another run is submitted" lbctl submit --name "g$turn" -- sleep 600
	run_reaches g$turn running 30
	wait_for '[ "$(launches)" -ge 1 ]' 30
	launched=$(($(launches) + 1))
	wait_for 'kill -KILL "$(cat "$LB_HOME/runs/train/pid")"' 20
	wait_for "[ \"\$(launches)\" -ge $launched ]" 30
	passed "$turn: the trainer was killed, and launched again"
	generation=$(lease generation)
	if [ $turn = 1 ]; then # as "scancel --state=PENDING -u me" does
		scancel "$(squeue -h -t PENDING -o '%j %i' | sed -n 's/^lbd-[^ ]* //p')"
	fi
	wait_for "is_past $generation" 180
	ok "$turn: an order in between is taken" lbctl kill "g$turn" --reason hand-over
	diag "$(cat "$T/ok.out")"
	wait_for "[ \$(lease generation) -gt $generation ]" 30
	wait_for 'lbctl ls' 20
	gap=$(longest_gap)
	diag "the successor was there after $gap ms"
	ok "$turn: the successor is there soon" in_time "$gap" 5000
	run_reaches g$turn killed 30
	is "$(run_state train)" running "$turn: the other run went on" || diag "$(lbctl events train)"
	rm -f "$LB_HOME"/switches/*.kill
done
wait_for '[ "$(squeue -h -t PENDING -o %j | grep -c ^lbd-)" = 1 ]' 30
is "$(lbctl status train --json | json attempts.#)" 1 "all of it was one job"
is "$(launches)" $((hand_overs + 1)) "and each kill of the trainer brought one launch"
is $(($(lease generation) - begun)) "$(grep -c "hands over to" "$LB_HOME/lbd.log")" "each hand-over one successor"
lbctl kill train >/dev/null
run_reaches train killed 30

# Its job submits the next one when the waiting ones have been looked for, as it does right behind
# its start, and every ten minutes.
mkdir "$T/late"
cat >"$T/late/scancel" <<END
#!/bin/sh
case " \$* " in *" --batch "*) sbatch --parsable "$LB_HOME/lbd.job" >"$T/late/job" ;; esac
exec $(command -v scancel) "\$@"
END
chmod +x "$T/late/scancel"
exits 0 "stop ends it, and the chain with it" env SQUEUE_ACCOUNT=theirs PATH="$T/late:$PATH" \
	lbctl daemon stop
ok "also what was submitted meanwhile" test -s "$T/late/job"
is "$(squeue -h -t PENDING,RUNNING -o %j | grep ^lbd-)" "" "none of it waits, or runs"
wait_for '[ -z "$(squeue -h -o %j | grep ^lbd-)" ]' 30
passed "no job of its own is left"
is "$(lease why)" "stopped (SIGTERM)" "it ended in peace"
ok "every acknowledged step is in the ledger, once and in order" steps_agree

# Nor does one that was cancelled submit the next behind the last look.
mkdir "$T/slow"
cat >"$T/slow/sbatch" <<END
#!/bin/sh
trap '' TERM
late=
if [ -n "\${LB_DAEMON_JOB:-}" ] && mkdir "$T/slow/asked" 2>/dev/null; then late=1; fi
[ -z "\$late" ] || await "$T/slow/go"
$(command -v sbatch) "\$@"
status=\$?
[ -z "\$late" ] || touch "$T/slow/submitted"
exit \$status
END
chmod +x "$T/slow/sbatch"
ok "it can be started again" env PATH="$T/slow:$PATH" lbctl daemon start --in-slurm
wait_for '[ -e "$T/slow/asked" ]' 30
lbctl daemon stop >"$T/stop.out" 2>&1 &
stopping=$!
wait_for 'squeue -h -t COMPLETING -o %j | grep -q ^lbd-' 30
touch "$T/slow/go"
wait_for '[ -e "$T/slow/submitted" ]' 20
ok "stop waits for one that is still submitting" wait "$stopping"
wait_for '[ -z "$(squeue -h -o %j | grep ^lbd-)" ]' 30
passed "and what it submitted is gone, too"
is "$(sqlite3 "$LB_HOME/ledger.db" 'PRAGMA integrity_check')" ok "the ledger is sound"
done_testing
