#!/bin/sh
# SPDX-License-Identifier: MIT
# What lbd makes of a Slurm helper that hangs, dies, lies or is not there. No Slurm is needed: the
# helpers are scripts.
. "$(dirname "$0")/lib.sh"
. "$suite/scheduler.sh"

# helper NAME: one from stdin; it logs its starts and every request.
helper() {
	{
		echo '#!/bin/sh'
		echo "log=$T/$1.log"
		cat <<'END'
echo "start $(date +%s%3N)" >>"$log"
answer() { printf '{"id":%s,%s}\n' "$id" "$1"; }
next() {
	IFS= read -r line || exit 0
	id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	op=$(printf '%s' "$line" | sed 's/.*"op":"\([a-z]*\)".*/\1/')
	echo "$op $id" >>"$log"
}
END
		cat
	} >"$T/$1"
	chmod +x "$T/$1"
	: >"$T/$1.log"
}

script nothing </dev/null
mkdir "$T/work"
t=$(token)
ref="$t 7 1000"

# with_helper NAME DEADLINE_MS COMMAND…: one question to a fresh client.
with_helper() {
	client_start slurm "$T/$1" "$2"
	shift 2
	ask "$@"
}

with_helper absent 1000 poll
is "$result" down "no helper: down"
like "$rest" "absent: no such file" "and said"
ok "the client ends" client_stop

helper acts <<'END'
next
answer '"acting":true'
exec sleep 1000
END
# a deadline in which a helper can say that it acts, on a busy machine, too
with_helper acts 2000 submit "$t" "$T/work" "$T/nothing"
is "$result" unclear "a submission that hangs in Slurm: unclear"
[ "$ms" -ge 1990 ] && in_time "$ms" 3700
is $? 0 "at the deadline ($ms ms)"
for verb in release cancel "signal"; do
	ask $verb "$ref" 15
	is "$result" unclear "a $verb that hangs in Slurm: unclear"
done
client_stop

helper waits <<'END'
next
exec sleep 1000
END
with_helper waits 300 submit "$t" "$T/work" "$T/nothing"
is "$result" down "a submission that hangs before it reaches Slurm: nothing was done"
client_stop

helper dies <<'END'
next
answer '"acting":true'
exit 1
END
began=$(now_ms)
with_helper dies 10000 submit "$t" "$T/work" "$T/nothing"
is "$result" unclear "a helper that dies while Slurm acts: unclear"
in_time "$ms" 2000
is $? 0 "at once ($ms ms)"
ask poll
is "$result" down "the next one dies, too: down"
[ "$(grep -c ^start "$T/dies.log")" = 2 ] && [ $(($(now_ms) - began)) -ge 1000 ]
is $? 0 "helpers are started at most once a second"
client_stop

# Its child keeps the pipe open: the end of the helper cannot be seen there.
helper clings <<'END'
next
sleep 1000 &
wait
END
with_helper clings 300 poll
is "$result" down "a helper whose pipe stays open after SIGKILL is left behind"
in_time "$ms" 3000
is $? 0 "soon ($ms ms)"
ok "the client still ends" client_stop

lies() {	# NAME WHAT
	with_helper "$1" 20000 submit "$t" "$T/work" "$T/nothing"
	is "$result" down "$2: down"
	in_time "$ms" 4000
	is $? 0 "without waiting for the deadline ($ms ms)"
	client_stop
}
helper garbage <<'END'
next
echo 'free(): invalid pointer'
exec sleep 1000
END
lies garbage "an answer that is no JSON"
helper mixed <<'END'
next
id=99
answer '"result":"ok","text":"","job_id":1,"submit_time":2'
exec sleep 1000
END
lies mixed "the answer to another question"
helper endless <<'END'
next
exec tr '\0' x </dev/zero
END
lies endless "an endless line"

helper words <<'END'
while next; do answer '"result":"splendid","text":"x"'; done
END
with_helper words 5000 submit "$t" "$T/work" "$T/nothing"
is "$result" unclear "a result that has no meaning: unclear"
client_stop
helper fewer <<'END'
while next; do answer '"result":"ok","text":"","last":5,"rows":1'; done
END
with_helper fewer 5000 poll
is "$result" down "a row less than is told: down"
like "$rest" "cannot be read" "and said"
client_stop
helper rows <<'END'
while next; do
	echo "0123456789abcdef0123456789abcdef 00112233445566aa 7 1000 1 0 0 0 1001 0 0 0 - n1"
	echo "0123456789abcdef0123456789abcdef 00112233445566aa 8 1000 1"
	answer '"result":"ok","text":"","last":5,"rows":1'
done
END
with_helper rows 5000 poll
is "$result" down "a row that cannot be read: down"
client_stop

# The first request keeps the helper busy until the others queue behind it.
helper order <<'END'
next
until [ -e "$log.go" ]; do sleep 0.01; done
while :; do
	answer '"result":"ok","text":"","last":0,"rows":0'
	next
done
END
client_start slurm "$T/order" 20000
tell poll
wait_for "grep -q poll $T/order.log" 10
tell poll
tell cancel "$ref"
tell poll
tell release "$ref"
tell submit "$t" "$T/work" "$T/nothing"
ask read	# else the helper might be free before the client knows of them
: >"$T/order.log.go"
answer_of 4
asked_for() { sed -n '/^start/d; s/ [0-9]*$//p' "$T/order.log"; }
wait_for '[ "$(asked_for | wc -l)" -ge 6 ]' 10
is "$(asked_for | head -n 6 | tr '\n' ' ')" \
	"poll cancel release submit poll poll " "polls wait for those who want something done"
client_stop

rm "$T/order.log.go"
: >"$T/order.log"
client_start slurm "$T/order" 20000
tell poll
wait_for "grep -q poll $T/order.log" 10
tell poll
while [ $asked -lt 102 ]; do tell cancel "$ref"; done
ask read
: >"$T/order.log.go"
answer_of 102
at=$(asked_for | awk 'NR > 1 && /poll/ { print NR; exit }')
[ "${at:-999}" -gt 30 ] && [ "$at" -le 70 ]
is $? 0 "but not for ever (it was number $at)"
client_stop

# A close drops what is pending.
helper slow <<'END'
while next; do sleep 1000; done
END
client_start slurm "$T/slow" 20000
tell poll
tell submit "$t" "$T/work" "$T/nothing"
wait_for "grep -q submit $T/slow.log" 10
ok "a client that is closed in mid-request ends with an empty loop" client_stop
is "$(cat "$T/client.out")" closed "and has no answers"
done_testing
