#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users hold no blanks
# What a whole team takes on disk: also runs that ended so long ago that nobody tells of them any
# more; and what cannot be seen is said.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

F=$T/team
play_owner
mkdir "$T/home2"
make_team "$LB_HOME" "$T/home2"
chown -R $member "$T/home2"
as_member() { as $member env LB_HOME="$T/home2" timeout 20 "$@"; }
lbd_start
as_member lbctl daemon start >"$T/second" 2>&1 || bail_out "no second lbd: $(cat "$T/second")"

saves='mkdir -p "$LB_CHECKPOINT_DIR/step-00000010" && head -c "$0" /dev/urandom >"$LB_CHECKPOINT_DIR/step-00000010/w"'
for run in young old shut; do
	as $owner lbctl submit --name $run --set run.group=lab -- sh -c "$saves" 300000 >/dev/null
done
as_member lbctl submit --name theirs -- sh -c "$saves" 900000 >/dev/null
for run in young old shut; do run_reaches $run completed 30; done
wait_for "grep -q '\"name\":\"theirs\",\"state\":\"completed\"' $F/$member.json" 30

# A week later nobody is told of it any more, and it still lies there.
lbd_stop
sqlite3 "$LB_HOME/ledger.db" "UPDATE runs SET ended_ms = ended_ms - 30 * 86400000 WHERE name = 'old'"
sed -i -E 's/"ended_ms":([0-9]+)/"ended_ms":1000000000000/' "$LB_HOME/runs/old/record.json"
chmod 700 "$LB_HOME/runs/shut/checkpoints"
lbd_start
wait_for "grep -q '\"name\":\"young\"' $F/$owner.json && ! grep -q '\"name\":\"old\"' $F/$owner.json" 20 &&
	passed "the team is not told of what ended a month ago"

exits 0 "du --team" as_member lbctl du --team
like "$out" "^$member +theirs +completed +[0-9ms]+ +8[0-9][0-9].* KiB" "my own runs"
like "$out" "^$owner +young +completed +[0-9ms]+ +30[0-9].* KiB" "a colleague's"
like "$out" "^$owner +old +completed +[0-9]+ *d.* +30[0-9].* KiB" "also those that nobody tells of any more"
like "$out" "^ +total" "and the sum"
like "$err" "$owner/shut.*: not all of it is open to you: it takes more than this" "what is closed is said"
as_member lbctl du --team --json >"$T/du.json"
of() { python3 -c '
import json, sys
runs = [r for r in json.load(open(sys.argv[1])) if (r["user"], r["run"]) == (sys.argv[2], sys.argv[3])]
print(*(runs[0][key] for key in sys.argv[4:]) if len(runs) == 1 else [len(runs)])' "$T/du.json" "$@"; }
is "$(of $owner old state group is_cut)" "completed lab False" "as JSON: its state and group"
ok "… what of it could go" test "$(of $owner old could_go)" -ge 300000
is "$(of $owner shut is_cut)" True "… and that something could not be counted"
ok "the largest first" sh -c '[ "$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))[0][\"run\"])" "$1")" = theirs ]' \
	sh "$T/du.json"
is "$(as_member lbctl du --team --group lab --json | json '#')" 3 "of a group"
is "$(as_member lbctl du --team --json "$owner/o*" | json 0.run)" old "of a colleague's glob"
exits 3 "of what nobody has" as_member lbctl du --team 'none-*'
chmod 700 "$LB_HOME/runs"
exits 0 "a colleague has closed all" as_member lbctl du --team
like "$err" "$LB_HOME/runs/: Permission denied; what $owner ran longer ago than a week is not seen" "says so"
like "$out" "^$member +theirs" "and tells the rest"
chmod 2750 "$LB_HOME/runs"
exits 6 "an outsider sees nothing" as $outsider env LB_HOME="$T/none" LB_TEAM="$F" timeout 20 lbctl du --team
as_member lbctl daemon stop >/dev/null 2>&1
done_testing
