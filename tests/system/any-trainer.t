#!/bin/sh
# SPDX-License-Identifier: MIT
# What a newcomer's own script saves is found without a line of configuration: it is killed while it
# saves, comes back from the newest whole checkpoint, and a checkpoint that is whole but no good is
# not handed over again and again.
. "$(dirname "$0")/lib.sh"
lbd_start

json_run() { lbctl status "$1" --json | json "$2"; }
saves() { echo "$LB_HOME/runs/$1/checkpoints"; }
starts() { grep -h -o 'starting from.*' "$LB_HOME/runs/$1/attempts"/*/out.log | tr '\n' ' '; }

# --- ckpt_N.npz, written piece by piece, without NumPy: a zip as numpy.savez makes it -------------
cat >"$T/train.py" <<'END'
import io, os, sys, zipfile
folder, source = os.environ["LB_CHECKPOINT_DIR"], os.environ.get("LB_RESUME_FROM")
start = 0
if source:
    with zipfile.ZipFile(source) as z:		# a broken one fails here
        assert z.testzip() is None
        start = int(z.read("step.npy"))
print("starting from", start, flush=True)
for step in range(start + 1, 61):
    print(f"step {step}/60 loss {60 / step:.4f}", flush=True)
    if step % 10 == 0:
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as z:
            z.writestr("w.npy", bytes(100000))
            z.writestr("step.npy", str(step))
        data = whole.getvalue()
        with open(f"{folder}/ckpt_{step}.npz", "wb") as out:
            out.write(data[:70000])
            out.flush()
            if step == 30 and start < 30 and not os.path.exists("died"):
                open("died", "w")
                os.kill(os.getpid(), 9)
            out.write(data[70000:])
END
mkdir "$T/npz" && cd "$T/npz" || exit 1
ok "a script that saves ckpt_N.npz" lbctl submit --name npz -- python3 "$T/train.py"
run_reaches npz completed 40
is "$(starts npz)" "starting from 0 starting from 20 " "killed while saving it goes on from the newest whole one"
like "$(lbctl events npz)" 'checkpoint_bad .*ckpt_30.npz: .*cut short' "the one that was cut short is told"
is "$(json_run npz checkpoint.step)" 60 "its checkpoints are known"
is "$(json_run npz attempts.0.launches.1.resumed_from_step)" 20 "and where it went on"

# --- the same by way of a folder of the node ------------------------------------------------------
mkdir "$T/staged" "$T/stage" && cd "$T/staged" || exit 1
ok "one that saves to a folder of its node" lbctl submit --name staged --set "checkpoint.stage=$T/stage" \
	-- python3 "$T/train.py"
run_reaches staged completed 40
is "$(starts staged)" "starting from 0 starting from 20 " "killed while saving it goes on in place"
is "$(json_run staged checkpoint.step)" 60 "what came from there is known"
like "$(json_run staged checkpoint.path)" "runs/staged/checkpoints/ckpt_60.npz" "and lies where it is shared"
ok "the node keeps nothing" wait_for '[ -z "$(find "$T/stage" -mindepth 2)" ]' 20
unlike "$(lbctl events staged)" stage_off "and did use the node's folder"
like "$(lbctl advise staged)" 'troubles: *1 in [0-9.]*[1-9][0-9.]*[smh].* of node time.* one in [0-9]+d' "lbctl advise tells how often trouble came"
like "$(lbctl advise staged)" '[(]all runs: [1-9][0-9.]* in ' "by what all runs of the ledger met"
like "$(lbctl advise staged --json)" '"best_interval_s"' "and is there for programs"

# --- folders, from a shell script: what the README shows ------------------------------------------
cat >"$T/folders.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=$(cat "$LB_RESUME_FROM/step")
echo "starting from $step"
while [ "$step" -lt 60 ]; do
	step=$((step + 20))
	echo "step $step/60 loss 1.0"
	to=$LB_CHECKPOINT_DIR/step-$(printf %08d $step)
	mkdir -p "$to"
	seq 1000 >"$to/weights"
	[ $step != 40 ] || [ -e died ] || { touch died; kill -9 $$; }
	echo $step >"$to/step"
done
END
mkdir "$T/folders" && cd "$T/folders" || exit 1
ok "a script that saves step-N folders" lbctl submit --name folders -- sh "$T/folders.sh"
run_reaches folders completed 40
is "$(starts folders)" "starting from 0 starting from 20 " "goes on from the one that has all files"

# --- raw files without any format -----------------------------------------------------------------
cat >"$T/raw.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*_}
echo "starting from $step"
while [ "$step" -lt 60 ]; do
	step=$((step + 20))
	echo "step $step/60 loss 1.0"
	seq 500 >"$LB_CHECKPOINT_DIR/ckpt_$step"
	[ $step != 40 ] || [ -e died ] || { touch died; kill -9 $$; }
	seq 500 >>"$LB_CHECKPOINT_DIR/ckpt_$step"
done
END
mkdir "$T/raw" && cd "$T/raw" || exit 1
ok "a script that saves ckpt_N without a format" lbctl submit --name raw -- sh "$T/raw.sh"
run_reaches raw completed 40
is "$(starts raw)" "starting from 0 starting from 20 " "goes on from the one that is as large as it should be"

# --- whole, but no good: suspect, in place and in the next job ------------------------------------
cat >"$T/poison.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*_}
echo "starting from $step"
[ "$step" != 30 ] || [ -e enough ] || { echo "KeyError: 'optimizer'" >&2; touch enough; exit 1; }
while [ "$step" -lt 60 ]; do
	step=$((step + 1))
	echo "step $step/60 loss 1.0"
	[ $((step % 10)) != 0 ] || echo "state of $step" >"$LB_CHECKPOINT_DIR/ckpt_$step"
	[ $step != 35 ] || [ -e died ] || { touch died; exit 1; }
done
END
for where in 0 1; do
	mkdir "$T/poison$where" && cd "$T/poison$where" || exit 1
	ok "a checkpoint that is no good (restart.in_place = $where)" lbctl submit --name "poison$where" \
		--set restart.in_place=$where --set restart.backoff_first=1s -- sh "$T/poison.sh"
	run_reaches "poison$where" completed 60
	is "$(starts "poison$where")" "starting from 0 starting from 30 starting from 20 " \
		"the next launch takes the one before"
	like "$(lbctl events "poison$where")" 'checkpoint_suspect .*ckpt_30.*exit status 1' "which is said"
done

# --- names that tell a time, and no step: how far a launch came is told by its own steps ----------
cat >"$T/times.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=$(cat "$LB_RESUME_FROM/counter.ckpt")
echo "starting from $step"
while [ "$step" -lt 40 ]; do
	step=$((step + 1))
	echo "step $step/40 loss 1.0"
	to="$LB_CHECKPOINT_DIR/CKPT+2026-11-28+10-15-00+$step"
	[ $((step % 10)) != 0 ] || { mkdir "$to"; echo $step >"$to/counter.ckpt"; }
	[ $step != 25 ] || [ -e died ] || { touch died; exit 1; }
	[ $step != 28 ] || [ -e died2 ] || { touch died2; exit 1; }
done
END
mkdir "$T/times" && cd "$T/times" || exit 1
ok "a trainer that names checkpoints by the time" lbctl submit --name times --set restart.backoff_first=1s \
	-- sh "$T/times.sh"
run_reaches times completed 60
is "$(starts times)" "starting from 0 starting from 20 starting from 20 " \
	"a launch that came further leaves its checkpoint trusted"

# --- no checkpoint is to blame for a port that is taken, or a module that is not there ------------
cat >"$T/port.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*_}
echo "starting from $step"
[ "$step" != 20 ] || [ -e port ] || { touch port; exec python3 -c 'raise OSError(98, "Address already in use")'; }
[ "$step" != 20 ] || [ -e module ] || { touch module; exec python3 -c 'import no_such_module'; }
while [ "$step" -lt 40 ]; do
	step=$((step + 1))
	echo "step $step/40 loss 1.0"
	[ $((step % 10)) != 0 ] || echo "state of $step" >"$LB_CHECKPOINT_DIR/ckpt_$step"
	[ $step != 25 ] || [ -e died ] || { touch died; exit 1; }
done
END
mkdir "$T/port" && cd "$T/port" || exit 1
ok "a trainer that finds its port taken" lbctl submit --name port --set restart.backoff_first=1s -- sh "$T/port.sh"
run_reaches port completed 60
is "$(starts port)" "starting from 0 starting from 20 starting from 20 starting from 20 " \
	"the next launch takes the same checkpoint again"

# --- a deterministic end is no progress, however often what lay behind it is saved again ----------
cat >"$T/wall.sh" <<'END'
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*_}
echo "starting from $step"
while [ "$step" -lt 31 ]; do
	step=$((step + 1))
	[ $step != 31 ] || exit 1
	echo "step $step/60 loss 1.0"
	[ $((step % 10)) != 0 ] || echo "state of $step" >"$LB_CHECKPOINT_DIR/ckpt_$step"
done
END
ok "a wall at step 31" lbctl submit --name wall --set restart.backoff_first=1s -- sh "$T/wall.sh"
run_reaches wall failed 60
is "$(starts wall)" "starting from 0 starting from 30 starting from 20 starting from 30 " \
	"saving step 30 again does not count as progress"
like "$(lbctl checkpoints wall)" '^ +30 .* suspect .*exit status 1' "lbctl checkpoints marks the suspect"
is "$(lbctl checkpoints wall --json | json 0.valid) $(lbctl checkpoints wall --json | json 0.suspect)" \
	"true true" "which is whole"

# --- some are there, none is whole ----------------------------------------------------------------
cat >"$T/none.sh" <<'END'
[ -n "${LB_RESUME_FROM:-}" ] || seq 1000 >"$LB_CHECKPOINT_DIR/ckpt_10.bin"
[ -z "${LB_RESUME_FROM:-}" ] || : >"$LB_CHECKPOINT_DIR/ckpt_10.bin"
exit 1
END
ok "a run that spoils its own checkpoint" lbctl submit --name none -- sh "$T/none.sh"
wait_for 'lbctl events none | grep -q "no_valid_checkpoint"' 30
run_reaches none failed 30
like "$(lbctl events none)" 'no_valid_checkpoint .*lbctl checkpoints none .*lbctl restart none --from' \
	"names the commands that help"
like "$(lbctl events none)" 'ckpt_10.bin: is empty \(0 bytes\)' "and the file, and what is wrong with it"
unlike "$(lbctl events none)" 'move the' "and does not tell anybody to move checkpoints"

# --- a trainer that finds its own -----------------------------------------------------------------
cat >"$T/own.sh" <<'END'
step=$(cat mine 2>/dev/null || echo 0)
[ -z "${LB_RESUME_FROM:-}" ] || exit 9
while [ "$step" -lt 60 ]; do
	step=$((step + 1))
	echo "step $step/60 loss 1.0"
	echo $step >mine
	[ $((step % 10)) != 5 ] || [ $step = 5 ] || exit 1
done
END
for layout in auto own; do
	mkdir "$T/$layout" && cd "$T/$layout" || exit 1
	ok "a trainer that finds its own checkpoints ($layout)" lbctl submit --name $layout \
		--set checkpoint.layout=$layout -- sh "$T/own.sh"
	run_reaches $layout completed 60
	passed "goes on for as long as it gets on"
done
is "$(lbctl events auto | grep -c 'finds its own')" 1 "that it is left alone is said once"
is "$(lbctl events own | grep -c 'no checkpoint')" 0 "and not at all where it was asked for"

ok "a file that is called like no checkpoint" lbctl submit --name stranger -- \
	sh -c '[ ! -e "$LB_CHECKPOINT_DIR/weights.dat" ] || exit 0; echo x >"$LB_CHECKPOINT_DIR/weights.dat"; exit 1'
run_reaches stranger completed 30
like "$(lbctl events stranger)" 'no checkpoint in .* \(weights.dat is called like none, see' "is named"

# --- a training that diverged goes back once ------------------------------------------------------
cat >"$T/telling.py" <<'END'
# A trainer that goes on from a checkpoint called ckpt_STEP and tells lbrun what it does.
import json, os, socket
where, start = os.environ["LB_CHECKPOINT_DIR"], int(os.environ.get("LB_RESUME_FROM", "_0").rsplit("_", 1)[1])
print("starting from", start, flush=True)
lb = socket.socket(socket.AF_UNIX)
lb.connect(os.environ["LB_SOCKET"])
def say(**line):
    lb.sendall(json.dumps(line).encode() + b"\n")
say(type="hello", rank=0, world=1, pid=os.getpid())
END
cat >"$T/diverge.py" <<'END'
import sys
from telling import say, start, where
for step in range(start + 1, 46):
    say(type="step", step=step, loss=1.0)
    if step % 10 == 0:
        open(f"{where}/ckpt_{step}", "w").write("state")
say(type="bye", status="diverged")
sys.exit(3)
END
ok "a training that diverges" lbctl submit --name diverge --set restart.rollback=2 \
	--set restart.backoff_first=1s -- python3 "$T/diverge.py"
run_reaches diverge failed 60
is "$(starts diverge)" "starting from 0 starting from 20 " "goes back two checkpoints, once"
is "$(json_run diverge cause)" diverged "and then fails"

# --- what the trainer called complete is sealed: any byte that differs later is found -------------
cat >"$T/seal.py" <<'END'
import glob, json, os, time
from telling import say, start, where
def sealed():
    files = [json.load(open(seal))["files"] for seal in glob.glob(os.environ["LB_RUN_DIR"] + "/seals/*.json")]
    return sum(all(f["xxh3_128"] for f in one) for one in files)
for step in range(start + 10, 31, 10):
    say(type="step", step=step, loss=1.0)
    open(f"{where}/ckpt_{step}", "wb").write(os.urandom(200000))
    say(type="checkpoint", step=step, path=f"{where}/ckpt_{step}")
    if step == 20 and start == 0:
        # the second is told while the first is still being read: both get their digests
        until = time.monotonic() + 60
        while sealed() < 2 and time.monotonic() < until:
            time.sleep(0.02)
        with open(f"{where}/ckpt_20", "r+b") as out:
            out.seek(123456)
            byte = out.read(1)[0]
            out.seek(123456)
            out.write(bytes([byte ^ 1]))
        os.kill(os.getpid(), 9)
say(type="bye", status="done")
END
ok "a trainer that tells of its checkpoints" lbctl submit --name seal -- python3 "$T/seal.py"
run_reaches seal completed 90
is "$(starts seal)" "starting from 0 starting from 10 " "the one before is taken when one byte has changed"
like "$(lbctl events seal)" 'ckpt_20 differs from what it was when the trainer called it complete' "which is said"
is "$(cd "$(saves seal)" && echo *)" "ckpt_10 ckpt_20 ckpt_30" "nothing is put into the trainer's folder"

# --- a status that is another's -------------------------------------------------------------------
cat >"$T/breaks.py" <<'END'
import os
start = int(os.path.basename(os.environ.get("LB_RESUME_FROM", "_0")).split("_")[1])
print("starting from", start, flush=True)
for step in range(start + 1, 21):
    print(f"step {step}/20 loss 1.0", flush=True)
    if step % 5 == 0:
        open(f"{os.environ['LB_CHECKPOINT_DIR']}/ckpt_{step}", "w").write("state")
    if step == 12 and start == 0:
        raise ValueError("bad")
END
ok "a command that is a shell" lbctl submit --name piped -- env A=b sh -c "python3 $T/breaks.py 2>&1 | cat"
run_reaches piped completed 40
is "$(starts piped)" "starting from 0 starting from 10 " "is not done where its trainer broke off before a pipe"
like "$(lbctl events piped)" 'launch 1: error: it broke off, though .* status 0 .*ValueError: bad' "which is told"
ok "nor is one of script(1)" lbctl submit --name typed -- script -c "python3 $T/breaks.py" "$T/typescript"
run_reaches typed completed 40
is "$(starts typed | tr -d "\r")" "starting from 0 starting from 10 " "whose status is always 0"

# --- a checkpoint that tells no step --------------------------------------------------------------
cat >"$T/stepless.py" <<'END'
import os, zipfile
with zipfile.ZipFile(os.environ["LB_CHECKPOINT_DIR"] + "/ckpt.pt", "w") as z:
    z.writestr("archive/data.pkl", b"state")
END
ok "a checkpoint without a step" lbctl submit --name stepless -- python3 "$T/stepless.py"
run_reaches stepless completed 30
like "$(lbctl events stepless)" 'checkpoint .*/ckpt.pt' "is told by its path"
unlike "$(lbctl events stepless; lbctl status stepless)" 'step -1' "and never as step -1"

exits 2 "an unknown layout" lbctl submit --set checkpoint.layout=lightening -- true
like "$err" 'checkpoint.layout: must be one of auto, own, lbworker' "is refused with the ones there are"
exits 2 "a pattern that could match nothing" lbctl submit --set 'checkpoint.pattern=**/{step}' -- true
like "$err" 'checkpoint.pattern: "\*\*" is not known' "is refused, too"
done_testing
