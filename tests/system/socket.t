#!/bin/sh
# SPDX-License-Identifier: MIT
# The control socket under attack by members of the team: 10,000 connections, writers that never
# come to an end, peers that ask and never read, garbage, twenty users at once, no file descriptor
# left. lbd's memory stays bounded, and other users are served meanwhile. (How fast is printed;
# bench/run orders has the figure.)
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP two users take root to play"
	tests_planned=0
	exit 0
fi
need setpriv util-linux
need prlimit util-linux
team=games
team_gid=$(getent group $team | cut -d: -f3)
chmod 755 "$T"
cp "$B"/lb* "$T"/ 2>/dev/null
B=$T PATH=$T:$PATH
printf '[team]\ngroup = "%s"\n' $team >"$LB_HOME/lbd.toml"
chown -R 51001:51001 "$LB_HOME"
LB_DEBUGGER="setpriv --reuid 51001 --regid 51001 --groups $team_gid"
lbd_start
as_owner() { setpriv --reuid 51001 --regid 51001 --clear-groups env PATH="$T:/usr/bin:/bin" "$@"; }
for i in 1 2 3 4 5; do as_owner lbctl submit --name run-$i -- true >/dev/null; done
run_reaches run-5 completed 30

cp "$src/tests/system/press.py" "$T/press.py"
chmod 644 "$T/press.py"
as_member() { setpriv --reuid 51002 --regid 51002 --groups "$team_gid" env PATH="$T:/usr/bin:/bin" "$@"; }
memory() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" /proc/$lbd_pid/status; }

ok "500 questions in one go are answered in order, to who has closed its end, too" \
	as_owner python3 "$T/press.py" "$LB_HOME" order
before=$(memory VmRSS)
mkdir "$T/flags" && chmod 777 "$T/flags"
as_member python3 "$T/press.py" "$LB_HOME" flood "$T/flags/underway" >"$T/flood.out" 2>&1 &
flood=$!
wait_for '[ -e "$T/flags/underway" ] || ! kill -0 $flood 2>/dev/null' 30
as_owner python3 "$T/press.py" "$LB_HOME" others "$T/flags/done" >"$T/others.out" 2>&1 &
others=$!
wait $flood
is $? 0 "10,000 connections were tried"
touch "$T/flags/done"
wait $others
is $? 0 "the owner was served all the while"
diag "the owner's ls: p50 and p99 in ms, n: $(cat "$T/others.out")"
ok "at once, or nearly" sh -c 'read -r _ p99 _ <"$1" && [ "${p99%.*}" -le $((1000 * $2)) ]' sh "$T/others.out" "$patience"
like "$(tail -n 1 "$T/flood.out")" '^[0-9]{4}$' "what was too much was told so"
grown=$(($(memory VmHWM) - before))
diag "lbd's memory grew by $grown KiB at most"
limit=65536
nm "$B/lbd" 2>/dev/null | grep -q __asan_init && limit=1048576	# which keeps what is freed
ok "lbd's memory is bounded" [ $grown -le $limit ]

# What costs lbd work without ever being a question: whatever a member's bytes are, the owner's come
# first.
for kind in newlines drip garbage; do
	rm -f "$T"/flags/*
	as_member python3 "$T/press.py" "$LB_HOME" press $kind "$T/flags/underway" "$T/flags/done" \
		>"$T/press.out" 2>&1 &
	press=$!
	wait_for '[ -e "$T/flags/underway" ]' 60
	as_owner python3 "$T/press.py" "$LB_HOME" others /dev/null 50 >"$T/others.out" 2>&1
	is $? 0 "a member presses with $kind: the owner is served"
	touch "$T/flags/done"
	wait $press
	diag "the owner's ls: p50 and p99 in ms, n: $(cat "$T/others.out"); $(tail -n 1 "$T/press.out")"
	ok "at once" sh -c 'read -r _ p99 _ <"$1" && [ "${p99%.*}" -le $((500 * $2)) ]' sh "$T/others.out" "$patience"
done
ok "who is slow, or never reads, is given up" as_member python3 "$T/press.py" "$LB_HOME" slow
ok "a member is served again" as_member lbctl ls

# Twenty users, two of them with one question at a time, the others with more than is ever answered:
# a turn is one question of each, so nobody gets much more than the modest ones: without turns a
# hundred times as much. Who waits for a processor cannot ask, therefore patience.
ok "twenty users ask at once" sh -c 'python3 "$1" "$2" many $3 >"$4"' sh "$T/press.py" "$LB_HOME" \
	"$team_gid" "$T/many.out"
read -r modest least most <"$T/many.out"
diag "answers in 5 s: a modest user $modest, a greedy one $least to $most"
ok "who asks modestly has a fair share" [ $((4 * patience * modest)) -ge "$most" ]
ok "so has each of the greedy ones" [ $((4 * patience * least)) -ge "$most" ]

as_owner lbctl submit --name live -- sleep 6543 >/dev/null
run_reaches live running 30
as_owner prlimit --pid "$lbd_pid" --nofile=48:
ok "without a file descriptor left: those inside are served, those who come are told, and it passes" \
	as_owner python3 "$T/press.py" "$LB_HOME" files live
run_reaches live killed 20
passed "and the order that was given meanwhile is obeyed"
ok "lbd is the same one" kill -0 "$lbd_pid"
done_testing
