#!/bin/sh
# SPDX-License-Identifier: MIT
# $LB_HOME moves while a run lives in it; one that was moved by hand is refused, with what mends it.
. "$(dirname "$0")/lib.sh"

# another file system than that of $T
far=$(mktemp -d /dev/shm/lb.XXXXXX) || bail_out "no folder in /dev/shm"
end() { result=$?; end_own_processes; rm -rf "$far"; (exit "$result"); cleanup; }
trap end EXIT
[ "$(stat -c %d "$far")" != "$(stat -c %d "$T")" ] || bail_out "/dev/shm is no file system of its own"

old=$LB_HOME
new=$T/elsewhere/lb
mkdir "$T/elsewhere"
lbd_start
is "$(lbctl home)" "$old" "lbctl home says where it is"
lbctl submit --name lives -- sh -c 'echo 1 >"$LB_RUN_DIR/one"; await "$LB_RUN_DIR/go"
	echo 2 >"$LB_RUN_DIR/two"; mkdir -p "$LB_CHECKPOINT_DIR"' >/dev/null
wait_for '[ -s "$old/runs/lives/one" ]' 30
exits 2 "not into itself" lbctl home move "$old/deeper"
exits 2 "not into a folder that is not there" lbctl home move "$T/no/such"
mkdir "$T/taken"
exits 6 "not onto something else" lbctl home move "$T/taken"
ok "it is moved, with lbd and a run at work" lbctl home move "$new"
is "$(readlink "$old")" "$new" "a link stands where it was"
is "$(run_state lives)" running "lbd answers by the old path"
is "$(LB_HOME=$new run_state lives)" running "and by the new one"
ok "saying it again does no harm" lbctl home move "$new"
: >"$new/runs/lives/go"
run_reaches lives completed 30
is "$(cat "$new/runs/lives/two")" 2 "the run went on"
lbd_stop
LB_HOME=$new
lbd_start
is "$(run_state lives)" completed "lbd starts at the new path, too"
ok "and relaunches what began at the old one" lbctl restart lives --from scratch
run_reaches lives completed 30
lbd_stop
ok "it can move again" lbctl home move "$T/third"
is "$(readlink "$new")" "$T/third" "from where it really is"
is "$(cat "$old/runs/lives/two")" 2 "the oldest path still leads there"

# --- by hand --------------------------------------------------------------------------------------
LB_HOME=$T/one
mkdir "$LB_HOME"
lbd_start
lbd_stop
mv "$T/one" "$T/two"
LB_HOME=$T/two
exits 6 "a folder that somebody moved is refused" lbd --foreground --home "$LB_HOME"
like "$err" "LB_HOME was moved here from $T/one.*lbctl --home $T/two home move $T/two" "with the command that mends it"
ok "which does" lbctl --home "$T/two" home move "$T/two"
lbd_start
is "$(lbctl ls --json)" "[]" "lbd works there"
lbd_stop
# as a power cut may leave a file that was just written
for torn in '' '\0\0\0\0' "$T"; do
	printf '%b' "$torn" >"$T/two/home"
	lbd_start
	lbd_stop
	is "$(cat "$T/two/home")" "$T/two" "where it belongs is written anew where the file holds '$torn'"
done
echo "$T/one" >"$T/two/home"
cp -a "$T/two" "$T/copy"
exits 6 "a copy is refused" lbd --foreground --home "$T/copy"
like "$err" "belongs at $T/one" "with the place of the original"
ln -s "$T/five" "$T/five"
ok "what a killed move left behind is no hindrance" lbctl home move "$T/five"
ok "and it is there" test -f "$T/five/ledger.db"

# --- to another file system, with live runs -------------------------------------------------------
LB_HOME=$T/near
mkdir "$LB_HOME"
lbd_start
lbctl submit --name over -- sh -c 'mkdir -p "$LB_CHECKPOINT_DIR/step-7" && echo w >"$LB_CHECKPOINT_DIR/step-7/w"' >/dev/null
run_reaches over completed 30
stays='echo 1 >"$LB_RUN_DIR/one"; await "$LB_RUN_DIR/go"; echo 2 >"$LB_RUN_DIR/two"'
for run in lives ends; do lbctl submit --name $run -- sh -c "$stays" >/dev/null; done
for run in lives ends; do wait_for "[ -s $LB_HOME/runs/$run/one ]" 30; done
exits 6 "not while lbd works there" lbctl home move "$far/lb"
like "$err" "lbctl daemon stop" "with what to say first"
ok "and nothing is there" [ ! -e "$far/lb" ]
lbd_stop
# whatever dies in between
for after in 0.002 0.004 0.008 0.015 0.03 0.05 0.08; do
	timeout -s KILL $after lbctl home move "$far/lb" >/dev/null 2>&1
	[ -f "$LB_HOME/ledger.db" ] || failed "killed after $after s: \$LB_HOME leads to nothing whole"
done
passed "a move that is killed leaves a whole folder at the old path"
wait_for 'lbctl home move "$far/lb"' 20	# what a killed one began to copy holds the lock
exits 0 "it is moved" lbctl --home "$LB_HOME" home move "$far/lb"
like "$out" "2 runs are not over and stay on the old file system; .* lbctl --home [^ ]+ home move $far/lb" \
	"but for live runs, which another lbd would not fetch"
is "$(readlink "$LB_HOME")" "$far/lb" "a link stands where it was"
ok "what is over has moved" [ -s "$far/lb/runs/over/checkpoints/step-7/w" ]
ok "it is gone from the old place" [ ! -e "$T/near.left/runs/over" ]
is "$(ls "$T/near.left")" runs "as is everything but runs"
: >"$LB_HOME/runs/ends/go"	# while no lbd is there
wait_for '[ -s "$LB_HOME/runs/ends/attempts/1/exit.json" ]' 30
lbd_start
run_reaches ends completed 30
passed "a run that ended without lbd is known at the new place"
is "$(run_state over)" completed "what had ended is known"
is "$(run_state lives)" running "a live one lives"
ok "its space is counted" test "$(lbctl du --json lives | json 0.other)" -gt 0
lbctl submit --name new -- sh -c 'echo n >"$LB_RUN_DIR/n"' >/dev/null
run_reaches new completed 30
ok "new runs lie on the new file system" [ -s "$far/lb/runs/new/n" ]
exits 4 "what has not been fetched is not removed" lbctl rm --yes ends
like "$err" "lbctl home move" "but fetched first"
: >"$LB_HOME/runs/lives/go"
run_reaches lives completed 30
lbd_stop
exits 0 "later the others are fetched" lbctl home move "$far/lb"
is "$(cat "$far/lb/runs/lives/two" "$far/lb/runs/ends/two")" "2
2" "whole"
ok "they are folders there" [ ! -L "$far/lb/runs/lives" ]
ok "and nothing is left of the old place" [ ! -e "$T/near.left" ]
lbd_start
is "$(run_state lives)" completed "lbd knows them"
ok "and restarts what began there" lbctl restart over --from scratch
run_reaches over completed 30
lbd_stop

# --- an evaluation writes into a run that is over, while that is carried --------------------------
LB_HOME=$T/busy
mkdir "$LB_HOME" "$T/beside"
lbd_start
lbctl submit --name over -- true >/dev/null
run_reaches over completed 30
lbd_stop
cat >"$T/beside/cp" <<END
#!/bin/sh
$(command -v cp) "\$@" || exit
case \$5 in */runs/over) [ -e "$T/written" ] || echo new | tee "$T/written" >"\$5/scores" ;; esac
END
chmod +x "$T/beside/cp"
exits 0 "it is moved" env PATH="$T/beside:$PATH" lbctl home move "$far/busy"
ok "while somebody wrote" [ -s "$T/written" ]
is "$(cat "$LB_HOME/runs/over/scores")" new "which is there"
done_testing
