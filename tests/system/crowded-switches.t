#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users hold no blanks
# A member fills the folder of switches: with 20,000 files that do not count, with 70,000 that could
# hide an order, with more orders than one may leave, with somebody else's file. lbd serves the
# owner meanwhile, an order that names its run counts at once, and looking costs next to nothing.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

chmod 755 "$T"
cp "$B"/lb* "$T"/ 2>/dev/null		# the build folder may be closed to others
B=$T PATH=$T:/usr/bin:/bin:/usr/sbin:/sbin
printf '[team]\ngroup = "%s"\n[poll]\ninterval = "200ms"\n' $team >"$LB_HOME/lbd.toml"
chown -R $owner "$LB_HOME"
LB_DEBUGGER="setpriv --reuid $owner --regid $owner --init-groups"
S=$LB_HOME/switches
cp "$src/tests/system/press.py" "$T/press.py"
chmod 644 "$T/press.py"
as_owner() { as $owner "$@"; }
slow=1
nm "$B/lbd" 2>/dev/null | grep -q __asan_init && slow=5		# sanitized

lbd_start
for run in first second third; do
	as_owner lbctl submit --name $run --set watch.kill_grace=1s -- sleep 6543 >/dev/null
	run_reaches $run running 30
done

crowd() {	# COUNT FORMAT: so many files of the member's
	as $member python3 -c '
import os, sys
os.umask(0o22)
for i in range(int(sys.argv[2])):
    os.close(os.open(sys.argv[1] + "/" + sys.argv[3] % i, os.O_CREAT | os.O_WRONLY, 0o644))
' "$S" "$1" "$2"
}
served() {	# WHAT: the owner is answered, in so many ms at most
	as_owner python3 "$T/press.py" "$LB_HOME" others /dev/null 200 >"$T/others.out" 2>&1
	diag "the owner's ls $1: p50 and p99 in ms, n: $(tail -n 1 "$T/others.out")"
	ok "the owner is served $1" sh -c 'read -r _ p99 _ <"$1" && [ "${p99%.*}" -le $((500 * $2)) ]' sh "$T/others.out" $patience
}
lbruns() { pgrep -f "lbrun --[a-z]* $LB_HOME/runs/$1/"; }	# the shepherd and its guard
ticks() {	# RUN: of a processor, that its lbruns have taken
	for pid in $(lbruns $1); do sed 's/.*) //' "/proc/$pid/stat"; done | awk '{ n += $12 + $13 } END { print n }'
}
told() { lbctl events | grep -c 'not count'; }

# --- what does not count --------------------------------------------------------------------------
crowd 20000 'x%d.kil'
served "among 20,000 files that do not count"
wait_for "lbctl events | grep -q 'more files do not count'" 30
ok "they are told in a few lines: $(told)" [ "$(told)" -le 40 ]
lbd_kill9
begin=$(now_ms)
lbd_start
took=$(($(now_ms) - begin))
diag "lbd was ready after $took ms"
ok "lbd starts as fast as ever" in_time $took $((2500 * slow))

# --- an order among very many ---------------------------------------------------------------------
crowd 70000 'zz-%d.kill'
served "among 70,000 switches"
begin=$(now_ms)
as_owner touch "$S/first.kill"
run_reaches first killed 20
took=$(($(now_ms) - begin))
diag "a run was killed by its name after $took ms"
ok "an order that names its run counts at once" in_time $took $((2500 * slow))
too_many() { lbctl events | grep -c "$member has left more than 1000 switches"; }
wait_for '[ "$(too_many)" -ge 1 ]' 60		# the folder is read in pieces
is "$(too_many)" 1 "a member has left too many, and it is told once"

kill -STOP $lbd_pid
ok "the run's lbrun is there" [ -n "$(lbruns second)" ]
before=$(ticks second) begin=$(now_ms)
wait_for "[ \$(now_ms) -ge $((begin + 5000)) ]" 20
share=$((($(ticks second) - before) * 1000 * 100 / $(getconf CLK_TCK) / ($(now_ms) - begin)))
diag "an lbrun takes $share % of a processor"
ok "an lbrun's looks cost little" [ $share -le $((5 * slow)) ]
begin=$(now_ms)
as_owner touch "$S/second.kill"
wait_for '[ -e "$LB_HOME/runs/second/attempts/1/exit.json" ]' 20
took=$(($(now_ms) - begin))
diag "with lbd frozen lbrun obeyed after $took ms"
ok "it obeys without lbd" in_time $took $((2500 * slow))
kill -CONT $lbd_pid
run_reaches second killed 30
as_owner touch "$S/th*.kill"
run_reaches third killed 120
passed "a glob is found, too"
as $member sh -c "find $S -name 'zz-*' -delete; find $S -name 'x*' -delete"
rm -f "$S"/*.kill

# --- whose order ----------------------------------------------------------------------------------
mkdir -m 777 "$T/open"
as_owner lbctl submit --name moved --set watch.kill_grace=1s -- sleep 6543 >/dev/null
run_reaches moved running 30
as_owner touch "$T/open/notes"
exits 0 "a member moves a file of the owner's into the folder" as $member mv "$T/open/notes" "$S/moved.kill"
run_reaches moved killed 20
like "$(lbctl events moved)" "$owner.s file +kill" "nobody says that the owner gave that order"
ok "lbd is the same one" kill -0 "$lbd_pid"
done_testing
