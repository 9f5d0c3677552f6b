#!/bin/sh
# SPDX-License-Identifier: MIT
# hold, release, restart --from and --set, submit --dry-run: what a person wants happens, with a
# checkpoint, and nothing else does.
. "$(dirname "$0")/lib.sh"

CLIENT=$src/docs
DIGEST=06b05ab6733a618578af5f94892f3950		# XXH3-128 of "abc"
export CLIENT DIGEST

# Saves a checkpoint when it is asked to stop, and every 10 steps; ends after $LAST.
cat >"$T/trainer.py" <<'PY'
import json, os, sys, time
sys.path.insert(0, os.environ["CLIENT"])
import lb_client as lb

folder = os.environ["LB_CHECKPOINT_DIR"]
last = int(sys.argv[1])

def save(step):
    path = f"{folder}/step-{step:08d}"
    os.makedirs(path, exist_ok=True)
    open(path + "/w", "w").write("abc")
    json.dump({"format": 1, "step": step, "tokens": 0, "world_size": 1, "config_hash": "", "attempt": 1,
               "files": [{"name": "w", "bytes": 3, "xxh3_128": os.environ["DIGEST"]}]},
              open(path + "/manifest.json", "w"))
    lb.send("checkpoint", step=step, path=path)

first = int(os.environ.get("LB_RESUME_FROM", "-0").rsplit("-", 1)[1])
open(os.environ["LB_RUN_DIR"] + "/starts", "a").write(f"{first}\n")
lb.send("hello", rank=0, world=1, pid=os.getpid())
for step in range(first + 1, last + 1):
    lb.send("step", step=step, loss=1.0 / step, target_step=last)
    if lb.asked("stop"):
        time.sleep(float(os.environ.get("SLOW_SAVE", "0")))
        save(step)
        lb.send("bye", status="stopped")
        sys.exit(0)
    if step % 10 == 0:
        save(step)
    time.sleep(0.05)
lb.send("bye", status="done")
PY

step_of() { lbctl status "$1" --json | json step; }
starts() { tr '\n' ' ' <"$LB_HOME/runs/$1/starts"; }
train() {	# NAME LAST OPTION…
	name=$1 last=$2
	shift 2
	lbctl submit --name "$name" "$@" -- env "CLIENT=$CLIENT" "DIGEST=$DIGEST" \
		"SLOW_SAVE=${SLOW_SAVE:-0}" python3 "$T/trainer.py" "$last" >/dev/null
}

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start

# --- hold and release --------------------------------------------------------------------------
train a 100000
wait_for '[ "$(step_of a)" -ge 12 ]' 20
exits 0 "a running run can be held" lbctl hold a --reason "maintenance"
is "$out" "a stopping" "it is stopping first"
run_reaches a held 20
step=$(step_of a)
is "$(lbctl status a --json | json checkpoint.step)" "$step" "its last step was saved"
is "$(lbctl status a --json | json checkpoint.valid)" true "… in a valid checkpoint"
is "$(lbctl status a | head -n 1)" "a  held" "it is not called killed"
like "$(lbctl events a --json)" '"held".*put on hold by .*: maintenance' \
	"the event says who and why"
lbd_kill9
lbd_start
is "$(run_state a)" held "it stays on hold when lbd starts anew"
is "$(lbctl status a --json | json attempts.#)" 1 "no other attempt was made"
exits 0 "held twice is held" lbctl hold a
exits 8 "who waits for it" lbctl wait a --timeout 2s
is "$(printf '%s\n' "$err" | grep -c 'lbctl: a is held: .* holds it: maintenance; lbctl release lets it go on')" 1 \
	"is told once that it is held, and why"
timeout -s INT 2 lbctl follow a >/dev/null 2>"$T/said"
is "$(grep -c 'lbctl: a is held: .* holds it: maintenance; ' "$T/said")" 1 "and so is who follows it"
exits 0 "a held run can be released" lbctl release a
is "$out" "a created" "and goes on"
wait_for '[ "$(step_of a)" -gt $((step + 3)) ]' 20
is "$(starts a)" "0 $step " "from the checkpoint of its end"
lbctl kill --now a >/dev/null
run_reaches a killed 20
exits 4 "a finished run cannot be held" lbctl hold a
exits 4 "nor released" lbctl release a
exits 3 "a run that does not exist neither" lbctl hold nobody

# A hold that is taken back at once: the attempt was told to end, and another follows.
SLOW_SAVE=3 train b 100000
wait_for '[ "$(step_of b)" -ge 3 ]' 20
lbctl hold b >/dev/null
run_reaches b stopping 10
like "$(lbctl why b)" "it is being put on hold" "why says what for"
lbctl release b >/dev/null
run_reaches b running 20
wait_for '[ "$(lbctl status b --json | json attempts.#)" = 2 ]' 20
is "$(lbctl status b --json | json attempts.0.cause)" killed "a hold taken back: the attempt ended"
# A kill is stronger than the hold before it, and does not wait for the checkpoint.
wait_for 'lbctl status b --json | json attempts.1.launches.0.first_step | grep -q "[0-9]"' 20
lbctl hold b >/dev/null
lbctl kill --now b >/dev/null
run_reaches b killed 10
exits 4 "a killed run cannot be released" lbctl release b

# --- stop: as a hold, but for good; a kill after it does not wait for the checkpoint --------------
train s1 100000
train s2 100000
wait_for '[ "$(step_of s1)" -ge 3 ] && [ "$(step_of s2)" -ge 3 ]' 20
exits 2 "a glob is not obeyed away from a terminal" lbctl stop 's?'
like "$err" 'that means 2 runs.*--yes; nothing was done' "and the way on is told"
exits 0 "what it means can be seen" lbctl stop --dry-run 's?'
is "$out" "s2 running
s1 running" "all of it"
cat >"$T/typed.py" <<'PY'
import os, pty, sys		# typed.py WHAT COMMAND…: types it on a terminal, shows what came, ends as it did
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[2], sys.argv[2:])
os.write(fd, sys.argv[1].encode() + b"\n")
try:
    while part := os.read(fd, 4096): os.write(1, part)
except OSError: pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
exits 2 "on a terminal it asks" python3 "$T/typed.py" n lbctl stop 's?'
like "$out" 'stop 2 runs: s2 s1\? \[y/N\]' "naming them"
like "$out" 'nothing was done' "no is no"
is "$(run_state s1) $(run_state s2)" "running running" "and both run on"
exits 0 "yes is yes" python3 "$T/typed.py" y lbctl stop 's?' --reason "good enough"
run_reaches s1 killed 20
run_reaches s2 killed 20
is "$(lbctl status s1 --json | json checkpoint.step)" "$(step_of s1)" "its last step was saved"
like "$(lbctl status s1 --json | json text)" '^stopped by .*: good enough$' "who and why is told"
lbd_kill9
lbd_start
is "$(run_state s1)" killed "it stays so when lbd starts anew"
SLOW_SAVE=60 train s3 100000 --set watch.kill_grace=1s
wait_for '[ "$(step_of s3)" -ge 3 ]' 20
lbctl stop s3 >/dev/null
run_reaches s3 stopping 10
lbctl kill s3 >/dev/null
run_reaches s3 killed 15

# --- restart -------------------------------------------------------------------------------------
train c 40
run_reaches c completed 20
C=$LB_HOME/runs/c/checkpoints
exits 0 "restart from a step, with a setting" lbctl restart c --from 20 --set restart.in_place=0
run_reaches c completed 20
is "$(starts c)" "0 20 " "it began where it was told to"
is "$(cd "$C/set-aside-2" && echo step-*)" "step-00000030 step-00000040" \
	"later checkpoints were set aside"
is "$(lbctl status c --json | json checkpoint.step)" 40 "new ones took their place"
like "$(cat "$LB_HOME/runs/c/spec.toml")" 'in_place = 0' "the setting is in the spec"
like "$(lbctl events c --json)" 'from step 20; restart.in_place=0' "and in the events"
exits 0 "restart from scratch" lbctl restart c --from scratch
run_reaches c completed 20
is "$(starts c)" "0 20 0 " "it began at the beginning"
exits 0 "restart from the newest" lbctl restart c
run_reaches c completed 20
is "$(starts c)" "0 20 0 40 " "it began at the newest"
spec=$(cat "$LB_HOME/runs/c/spec.toml")
exits 3 "a step without checkpoint" lbctl restart c --from 25
like "$err" 'no checkpoint of step 25' "is said"
exits 2 "no step at all" lbctl restart c --from yesterday
exits 2 "a bad setting" lbctl restart c --set restart.in_place=many
exits 2 "a run keeps its name" lbctl restart c --set run.name=d
exits 6 "what this machine does not have" lbctl restart c --set slurm.nodes=2
is "$(cat "$LB_HOME/runs/c/spec.toml")" "$spec" "a refused restart changes nothing"
is "$(run_state c)" completed "and starts nothing"
printf x >>"$C/step-00000020/w"
lbctl restart c --from 20 >/dev/null
run_reaches c failed 20
like "$(lbctl status c --json | json text)" 'step-00000020 is not valid' \
	"a chosen checkpoint that is broken is not replaced"

# --- where the time went
exits 0 "goodput" lbctl goodput c
like "$out" 'were productive \(ETTR 0\.[0-9]+\)' "tells the productive share"
like "$out" '% of [0-9m]+s were productive' "in seconds"
ok "and nowhere in thousandths of an hour" sh -c '! echo "$1" | grep -Eq "[0-9] hours|HOURS"' sh "$out"
like "$(lbctl goodput c --since 1h --json | json hours.productive)" '^0\.0' "as JSON, too"
like "$(lbctl goodput c --since 1ms --json | json hours_total)" '^(0|0\.0|0\.000[0-2][0-9]*|.*e-.*)$' "less than a second is not all"
like "$(lbctl goodput 'c*' --since 1ms --json | json 0.hours_total)" '^(0|0\.0|0\.000[0-2][0-9]*|.*e-.*)$' "nor of many runs"
exits 0 "of many runs, a row for each" lbctl goodput ALL
like "$out" '^c +1 +0 +0\.' "with the run that is asked about among them"
like "$(lbctl goodput ALL --by owner --json)" "\"owner\": ?\"$(id -un)\".*\"hours\": ?[{]" "sums as JSON"
exits 0 "summed by owner" lbctl goodput ALL --by owner --csv
like "$(echo "$out" | head -n 1)" '^owner,runs,hours,gpu_hours,ettr,productive_hours,queue_hours' "as a spreadsheet takes it"
is "$(echo "$out" | wc -l)" 2 "all are one person's"
is "$(echo "$out" | python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin):
    parts = sum(float(v) for k, v in row.items() if k.endswith("_hours") and k != "gpu_hours")
    print(abs(parts - float(row["hours"])) < 1e-4)')" True "and the kinds of hours are all of them"
like "$(lbctl goodput c --by week)" "^$(date +%G-W%V) +1 " "by week: this one, but on a Monday's midnight"
exits 2 "not by what there is not" lbctl goodput ALL --by month
exits 3 "nor of nobody" lbctl goodput 'nobody*'

# --- what is started again ------------------------------------------------------------------------
lbctl submit --name never --set restart.policy.crash=stop -- sh -c 'kill -SEGV $$' >/dev/null
run_reaches never failed 20
is "$(lbctl status never --json | json attempts.0.launches.#)" 1 "policy stop: not even in place"
is "$(lbctl status never --json | json attempts.#)" 1 "… and no other job"

# --- dry run --------------------------------------------------------------------------------------
printf 'CANARY=7a11y-ho\n' >"$T/secrets"
chmod 600 "$T/secrets"
before=$(ls "$LB_HOME/runs")
exits 0 "a dry run" lbctl submit --dry-run --name dry --set slurm.cpus_per_task=1 \
	--set "run.env_file=$T/secrets" \
	-- echo 'two words'
like "$out" '^  cpus_per_task = 1$' "shows resources"
like "$out" '^  two words$' "the command"
like "$out" '^  #!/.*/lbrun --job$' "the script"
like "$out" '^  #LB attempt .*/runs/dry/attempts/1$' "… which names its attempt"
like "$out" '^  PATH = /' "the environment"
like "$out" '^  CANARY   \(not shown' "the names of secrets"
like "$(lbctl submit --dry-run --json -- true | json environment.PATH)" '^/' "as JSON, too"
is "$(printf '%s' "$out" | grep -c 7a11y-ho)" 0 "but no values of secrets"
is "$(ls "$LB_HOME/runs")" "$before" "nothing of it stays"
exits 3 "and there is no such run" lbctl status dry
exits 2 "what would be refused is refused" lbctl submit --dry-run --set slurm.nodes=x -- true
lbd_stop
done_testing
