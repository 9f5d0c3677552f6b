#!/bin/sh
# SPDX-License-Identifier: MIT
# What runs take on disk, and how they go: du tells each kind, rm and prune remove what is over and
# nothing else, and whatever dies in between, no half of a run is left.
. "$(dirname "$0")/lib.sh"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
R=$LB_HOME/runs

make_run() {	# NAME [OPTION…]: one that completes and leaves a checkpoint of 300 kB
	name=$1
	shift
	lbctl submit --name "$name" "$@" -- sh -c 'mkdir -p "$LB_CHECKPOINT_DIR/step-00000010" &&
		head -c 300000 /dev/urandom >"$LB_CHECKPOINT_DIR/step-00000010/w"
		head -c 50000 /dev/zero | tr "\0" x; echo' >/dev/null
}
gone() { [ -z "$(find "$R" -mindepth 1 -maxdepth 1 \( -name "$1" -o -name '.removed-*' \))" ]; }
of_run() { lbctl du --json | python3 -c '
import json, sys
print(next((r[sys.argv[2]] for r in json.load(sys.stdin) if r["run"] == sys.argv[1]), "absent"))' "$@"; }

exits 0 "du of nothing" lbctl du
like "$err" "no runs yet" "says so"
for run in one two sweep-1 sweep-2; do make_run $run; done
make_run away --set checkpoint.folder="$T/away"
make_run "group" --set run.group=g
for run in one two sweep-1 sweep-2 away group; do run_reaches $run completed 30; done
lbctl submit --name live -- sleep 6543 >/dev/null
run_reaches live running 20

# --- du -------------------------------------------------------------------------------------------
exits 0 "du" lbctl du
like "$out" "^OWNER +RUN +STATE +AGE +CHECKPOINTS +LOGS +SPOOLS +OTHER +TOTAL" "has a column for each kind"
like "$out" "^$(id -un) +one +completed +([0-9]+m)?[0-9]+s +30[0-9] KiB" "and for each run its checkpoints"
like "$out" "^ +total " "and a sum"
ok "checkpoints are what du(1) says" sh -c '[ "$1" -ge 300000 ] && [ "$1" -lt 400000 ]' sh \
	"$(of_run one checkpoints)"
ok "output is told apart" sh -c '[ "$1" -ge 50000 ] && [ "$1" -lt 100000 ]' sh "$(of_run one logs)"
is "$(of_run away checkpoint_folder)" "$T/away" "checkpoints that lie elsewhere are found"
ok "and counted" [ "$(of_run away checkpoints)" -ge 300000 ]
is "$(lbctl du --json 'sweep-*' | json '#')" 2 "du of a glob"
exits 3 "du of what is not there" lbctl du 'none-*'
is "$(lbctl du --json --group g | json '#')" 1 "du of a group"
exits 3 "du of a group that is not there" lbctl du --group none
exits 2 "du of a colleague's runs, without a team, is not of one's own" lbctl du 'colleague/*'

# --- checkpoints ----------------------------------------------------------------------------------
cat >"$T/saves.py" <<'PY'
import json, os, zipfile
folder = os.environ["LB_CHECKPOINT_DIR"]
if "LB_RESUME_FROM" in os.environ:
    print("came from", os.environ["LB_RESUME_FROM"])
    raise SystemExit(0)
os.makedirs(folder, exist_ok=True)
for step in (20, 40, 60, 80):
    with zipfile.ZipFile(f"{folder}/ckpt_{step}.npz", "w") as z: z.writestr("w.npy", b"x" * 100000)
whole = open(f"{folder}/ckpt_80.npz", "rb").read()
open(f"{folder}/ckpt_100.npz", "wb").write(whole[:5000])
PY
lbctl submit --name saves -- python3 "$T/saves.py" >/dev/null
run_reaches saves completed 20
exits 0 "checkpoints of another trainer" lbctl checkpoints saves
like "$out" "^ +80 +[0-9.]+ KiB +([0-9]+m)?[0-9]+s +numpy +yes +$R/saves/checkpoints/ckpt_80.npz$" \
	"step, size, age, layout, path"
like "$out" "^ +100 +4.9 KiB .* no +$R/saves/checkpoints/ckpt_100.npz: a zip .* cut short" "and of one that is not whole, why"
lbctl checkpoints saves --json >"$T/list.json"
is "$(json '#' <"$T/list.json")" 5 "all of them as JSON"
is "$(json 0.step <"$T/list.json") $(json 0.valid <"$T/list.json")" "100 false" "the newest first"
is "$(json 1.step <"$T/list.json") $(json 1.valid <"$T/list.json") $(json 1.why <"$T/list.json")" \
	"80 true null" "whole ones have no why"
is "$(json 1.path <"$T/list.json")" "$R/saves/checkpoints/ckpt_80.npz" "their path"
ok "those past their use are counted" [ "$(of_run saves old_checkpoints)" -ge 200000 ]
lbctl submit --name named --set checkpoint.pattern='weights@{step}' -- sh -c \
	'mkdir -p "$LB_CHECKPOINT_DIR" && echo w >"$LB_CHECKPOINT_DIR/weights@7"' >/dev/null
run_reaches named completed 20
is "$(lbctl checkpoints named --json | json 0.step)" 7 "those that only the run's own pattern knows"
exits 3 "a step that there is none of" lbctl restart saves --from 50
like "$err" "there is no checkpoint of step 50 in .*, but of: 20, 40, 60, 80, 100; see: lbctl checkpoints saves" \
	"which there are is told"
exits 0 "any of them is what a restart goes back to" lbctl restart saves --from 40
run_reaches saves completed 20
like "$(lbctl logs --attempt 2 saves)" "came from $R/saves/checkpoints/ckpt_40.npz" "and is handed over"
is "$(lbctl checkpoints --all saves --json | grep -o 'set-aside-2/ckpt_[0-9]*' | sort -u | tr '\n' ' ')" \
	"set-aside-2/ckpt_100 set-aside-2/ckpt_60 set-aside-2/ckpt_80 " "--all shows what it set aside"
exits 3 "of a run that there is none of" lbctl checkpoints savesx
exits 0 "of one that saves none" lbctl checkpoints live
like "$err" "no checkpoints in $R/live/checkpoints" "says so"

# --- keeping few ----------------------------------------------------------------------------------
cat >"$T/many.py" <<'PY'
import os, sys, time, zipfile
folder, last, left = os.environ["LB_CHECKPOINT_DIR"], int(sys.argv[1]), int(sys.argv[2])
os.makedirs(folder, exist_ok=True)
for step in range(10, last + 10, 10):
    with zipfile.ZipFile(f"{folder}/.new", "w") as z: z.writestr("w.npy", b"x" * 100000)
    os.rename(f"{folder}/.new", f"{folder}/ckpt_{step}.npz")
while not os.path.exists(sys.argv[3]) or \
        len([n for n in os.listdir(folder) if n.startswith("ckpt_")]) > left: time.sleep(0.05)
PY
many() {	# NAME LAST LEFT OPTION…
	name=$1 last=$2 left=$3
	shift 3
	lbctl submit --name "$name" --set checkpoint.pattern='ckpt_{step}.npz' "$@" \
		-- python3 "$T/many.py" "$last" "$left" "$T/enough" >/dev/null
}
steps() { lbctl checkpoints "$1" --json | python3 -c '
import json, sys
print(*(c["step"] for c in json.load(sys.stdin)))'; }
many few 60 3 --set checkpoint.keep_latest_k=3
many bytes 60 4 --set checkpoint.max_bytes=450K --set checkpoint.keep_every=20
many all 60 6 --set checkpoint.note_bytes=500K
wait_for 'lbctl events all | grep -q checkpoints_large' 30
touch "$T/enough"
many quick 60 99 --set checkpoint.keep_latest_k=2
for run in few bytes all quick; do run_reaches $run completed 60; done
is "$(steps few)" "60 50 40" "keep_latest_k keeps the newest"
like "$(lbctl events few)" "checkpoints_removed +3 old checkpoints, 0.0 GB, of steps 10, 20, 30" "which is told"
is "$(steps quick)" "60 50" "also of one that ends before anybody looked"
is "$(steps bytes)" "60 50 40 20" "max_bytes takes the oldest, what keep_every keeps last"
is "$(steps all)" "60 50 40 30 20 10" "unasked nothing goes"
like "$(lbctl events all)" "checkpoints_large +the checkpoints in .*keep_latest_k or max_bytes keeps fewer" \
	"but it is told that they are large"
is "$(lbctl events all | grep -c checkpoints_removed)" 0 "and nothing else"
exits 2 "a size that is none" lbctl submit --set checkpoint.max_bytes=many -- true
like "$err" 'checkpoint.max_bytes: "many" is no size; write it like "500G"' "is refused, and shown how"
lbctl rm --yes few bytes all quick >/dev/null

# --- what is refused ------------------------------------------------------------------------------
exits 4 "a live run stays" lbctl rm --yes live
like "$err" "live is running: only a run that is over can be removed; end it with: lbctl kill live" \
	"with what helps"
exits 4 "also where nothing would be done" lbctl rm --dry-run live
is "$out" "" "and it is not shown as one that would go"
lbctl submit --name waits --after live --after-ok one --set slurm.time=1h -- true >/dev/null
exits 4 "a run that another one waits for stays" lbctl rm --yes one
like "$err" "waits waits for how one ended" "which is said"
lbctl kill waits >/dev/null
run_reaches waits killed 20
exits 3 "no such run" lbctl rm --yes onee
like "$err" "onee: no such run; did you mean one\?" "with the nearest"
exits 3 "a glob that means nothing" lbctl rm --yes 'none-*'
exits 2 "away from a terminal nothing goes" lbctl rm one
like "$err" "that removes 1 run for good, [0-9]+ KiB: look with --dry-run, then say --yes" "unasked"
exits 0 "--dry-run" lbctl rm --dry-run one 'sweep-*'
like "$out" "^sweep-1  completed, ended ([0-9]+m)?[0-9]+s ago, [0-9]+ KiB" "shows what would go"
like "$out" "^3 runs, .*; nothing was done" "and the sum"
exits 6 "a colleague's run is theirs" lbctl rm --yes somebody/one
like "$err" "only somebody can remove runs of somebody" "which is said"
exits 2 "prune wants to know how old" lbctl prune
like "$err" "say how old: lbctl prune --older-than 30d" "and shows how"
exits 2 "and of what" lbctl prune --yes --older-than 30
like "$err" '"30": say of what, as in "30d" for days' "for seconds in the place of days remove too much"

# --- what goes ------------------------------------------------------------------------------------
exits 0 "rm" lbctl rm --yes one
is "$out" "one removed" "says what it did"
wait_for 'gone one' 10 && passed "its folder is gone"
exits 3 "and the run" lbctl status one
like "$(lbctl events)" "$(id -un) +removed +one" "who did it is on record"
make_run one
run_reaches one completed 20 && passed "its name is free again"
exits 0 "checkpoints that lie elsewhere" lbctl rm --yes away
like "$err" "away: its checkpoints in $T/away are not below its folder: they stay" "stay"
ok "really" [ -s "$T/away/step-00000010/w" ]
exits 0 "a glob" lbctl rm --yes 'sweep-*'
is "$out" "sweep-2 removed
sweep-1 removed" "removes what is over"
exits 0 "prune of what is young" lbctl prune --yes --older-than 1h
like "$err" "there is no run that ended so long ago" "does nothing"
sleep 1.1		# what ended less than a second ago is not older than one
exits 0 "prune" lbctl prune --yes --older-than 1s 'o*' g@group
is "$(echo "$out" | sort | tr '\n' ' ')" "group removed one removed " "removes what it is told to"
is "$(run_state two)" completed "and nothing else"
is "$(run_state live)" running "the live run runs on"

# --- whatever dies --------------------------------------------------------------------------------
for point in removal.written removal.committed removal.hidden; do
	make_run victim
	run_reaches victim completed 20
	lbd_stop
	LB_FAILPOINT=$point:kill lbd_start
	lbctl rm --yes victim >/dev/null 2>&1
	wait $lbd_pid 2>/dev/null
	lbd_start
	if [ $point = removal.written ]; then
		is "$(run_state victim)" completed "$point: the run is whole"
		ok "… with its checkpoint" [ -s "$R/victim/checkpoints/step-00000010/w" ]
		lbctl rm --yes victim >/dev/null
	fi
	exits 3 "$point: the run is gone" lbctl status victim
	wait_for 'gone victim' 10 && passed "$point: so is its folder"
done
lbd_stop
LB_FAILPOINT=removal.written:error lbd_start
exits 9 "a full disk" lbctl rm --yes two
is "$(run_state two)" completed "removes nothing"
ok "not a file" [ -s "$R/two/checkpoints/step-00000010/w" ]

lbd_stop

# --- folders that cannot be renamed ---------------------------------------------------------------
# overlayfs answers so for those of its lower layer.
need strace strace
LB_DEBUGGER="strace -f -qq -o $T/strace.out -e trace=rename,renameat,renameat2 -P $R/two
	-e inject=rename,renameat,renameat2:error"
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
with=$LB_DEBUGGER
LB_DEBUGGER=$with=EXDEV LB_FAILPOINT=removal.hidden:kill lbd_start
lbctl rm --yes two >/dev/null 2>&1
wait $lbd_pid 2>/dev/null
ok "a folder that cannot be renamed is still there" [ -s "$R/two/checkpoints/step-00000010/w" ]
LB_DEBUGGER=$with=EXDEV lbd_start
wait_for 'gone two' 10 && passed "it is removed where it is"
wait_for '[ -z "$(ls -d "$R"/.removed-* 2>/dev/null)" ]' 10 && passed "with what noted it"
make_run two
run_reaches two completed 20 && passed "and its name is free again"
lbctl daemon stop >/dev/null	# strace would not pass a signal on
lbd_stop
LB_DEBUGGER=$with=EACCES lbd_start
exits 9 "one that can neither be removed" lbctl rm --yes two
is "$out" "" "is not called so"
like "$err" "two: it is no run any more, but its folder stays: $R/two: cannot be moved away: Permission denied" "and why"
exits 4 "its name is not free" make_run two

lbctl kill --now live >/dev/null
lbctl daemon stop >/dev/null

# runs.folder on a file system that is away
LB_DEBUGGER=
mkdir -p "$T/scratch/runs" && printf '[runs]\nfolder = "%s"\n' "$T/scratch/runs" >>"$LB_HOME/lbd.toml"
lbd_start
make_run far
run_reaches far completed 20
mv "$T/scratch" "$T/unmounted"
exits 9 "a run whose file system is away" lbctl rm --yes far
is "$out" "" "is not called removed"
like "$err" "far: $T/scratch/runs is not there: .*nothing was done" "and why"
mv "$T/unmounted" "$T/scratch"
exits 0 "when it is back" lbctl rm --yes far
wait_for '[ -z "$(ls -A "$T/scratch/runs")" ]' 10 && passed "it goes, with its folder"
done_testing
