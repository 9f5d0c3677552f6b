#!/bin/sh
# SPDX-License-Identifier: MIT
# $LB_HOME moves while a run lives in it; one that was moved by hand is refused, with what mends it.
. "$(dirname "$0")/lib.sh"

old=$LB_HOME
new=$T/elsewhere/lb
mkdir "$T/elsewhere"
lbd_start
is "$(lbctl home)" "$old" "lbctl home says where it is"
lbctl submit --name lives -- sh -c 'echo 1 >"$LB_RUN_DIR/one"; until [ -e "$LB_RUN_DIR/go" ]; do sleep 0.1; done
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
like "$err" "moved here from $T/one.*lbctl --home $T/two home move $T/two" "with the command that mends it"
ok "which does" lbctl --home "$T/two" home move "$T/two"
lbd_start
is "$(lbctl ls --json)" "[]" "lbd works there"
lbd_stop
cp -a "$T/two" "$T/copy"
exits 6 "a copy is refused" lbd --foreground --home "$T/copy"
like "$err" "belongs at $T/one" "with the place of the original"
ln -s "$T/five" "$T/five"
ok "what a killed move left behind is no hindrance" lbctl home move "$T/five"
ok "and it is there" test -f "$T/five/ledger.db"
done_testing
