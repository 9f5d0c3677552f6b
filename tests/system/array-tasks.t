#!/bin/sh
# SPDX-License-Identifier: MIT
# lbrun of tasks of an array, without lbd: whom a task waits for, and what is said of the whole when
# some of them fail.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"

# array NUMBER 'JSON OF THE COMMAND'
array() {
	attempt "$1" "$2" "${3:-0}"
	sed -i 's|}$|,"is_script":true}|' "$F/attempt.json"
}
# task INDEX OF
task() {
	SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=$2 timeout $((60 * patience)) "$B/lbrun" --attempt "$F" \
		>"$T/task.$1" 2>&1
}
said() { json "$1" <"$F/exit.json"; }

# --- whom it waits for ----------------------------------------------------------------------------
# The first task of attempt 1 is dead, the second lives.
claim() { # FOLDER PID
	mkdir -p "$1"
	printf '{"version":1,"token":"%032d","host":"%s","boot_id":"%s","pid":%d}' 1 "$(uname -n)" \
		"$(cat /proc/sys/kernel/random/boot_id)" "$2" >"$1/claim"
}
took_ms() { # INDEX
	begun=$(uptime_ms)
	task "$1" 3
	echo $(($(uptime_ms) - begun))
}
sh -c 'exit 0' &
dead=$!
wait "$dead"
sleep "$mark" &
lives=$!
array 1 '["true"]'
claim "$F" "$dead"
claim "$F/task-1" "$dead"
claim "$F/task-2" "$lives"
array 2 '["true"]'
ok "a task waits for its predecessor that may live" [ "$(took_ms 2)" -ge 4000 ]
kill "$lives"
ok "and not for that of another, which is dead" [ "$(took_ms 1)" -lt 4000 ]

# --- what is said of the whole --------------------------------------------------------------------
cat >"$T/ends" <<'END2'
#!/bin/sh
case $SLURM_ARRAY_TASK_ID in
2 | 7) kill -9 $$ ;;
5) exit 9 ;;
11) kill -9 "$(cut -d ' ' -f 4 "/proc/$$/stat")" && sleep 60 ;;
esac
END2
chmod +x "$T/ends"
fresh
array 1 "[\"$T/ends\"]"
for index in 7 3 2 5; do task $index 4; done
is "$(said cause)" crash "the first that failed says how an attempt ended"
like "$(said text)" '^task 2: killed by signal 9.*; 2 more did not complete$' "and that it was not the only one"
is "$(said time_ms)" "$(json time_ms <"$F/task-5/exit.json")" "when the last did"

# What a scheduler did to a task says less than what the task did itself.
fresh
array 1 "[\"$T/ends\"]"
mkdir -p "$F/task-1" "$F/task-9"
for index in 1 9; do
	printf '{"version":1,"token":"%032d","cause":"preempted","text":"preempted","launches":1}' 1 \
		>"$F/task-$index/exit.json"
done
for index in 5 3; do task $index 4; done
is "$(said cause) $(said exit_code)" "error 9" "what is the run's fault weighs more than a preemption"

# An lbrun that is killed.
fresh
array 1 "[\"$T/ends\"]"
task 11 2
ok "one whose lbrun was killed says nothing of the whole" [ ! -e "$F/exit.json" ]
task 3 2
is "$(said cause)" lost "until the others have ended, too"
like "$(said text)" '^task 11: lbrun was killed by signal 9' "and then which it was"

# --- what is done is not run again ----------------------------------------------------------------
# Its lbrun is killed as soon as its end can be seen.
fresh
array 1 "[\"$T/ends\"]"
LB_FAILPOINT=exit.written:kill task 1 2
is "$(json cause <"$F/task-1/exit.json")" completed "a task ended, and its lbrun was killed behind that"
ok "it is known as done" [ -e "$R/tasks/1" ]
done_testing
