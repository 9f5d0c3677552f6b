# shellcheck shell=sh disable=SC2034,SC2154 # the tests use what is set here; build is set in lib.sh
# SPDX-License-Identifier: MIT
# scheduler.sh - drives build/tests/scheduler_client for the scheduler-*.t tests.
#
#   client_start slurm "$B/lbd-slurm" 5000
#   ask poll                  # waits for the answer; sets $result $ms and the words after as $rest
#   tell cancel …             # does not wait; `answer_of $asked` later
#   field_of TOKEN 5          # of the job's line in the last answer
#   job_reaches TOKEN ended 10   # or fails the test here
#
# Questions are counted: do not ask in a subshell.
client=
asked=0

client_start() {
	rm -f "$T/client.in"
	mkfifo "$T/client.in"
	: >"$T/client.out"
	asked=0
	"$B/tests/scheduler_client" "$@" <"$T/client.in" >"$T/client.out" 2>>"$T/client.log" &
	client=$!
	exec 4>"$T/client.in"
}

# Its exit status: 0 when the loop was empty after the close.
client_stop() {
	echo close >&4
	exec 4>&-
	wait "$client"
}

tell() {
	asked=$((asked + 1))
	echo "$*" >&4
}

# answer_of NUMBER: once its line is there, sets $result, $ms and $rest. An `until` takes its time
# first.
answer_of() {
	answer=$("$build/tests/await" line "$T/client.out" "$1 " $((90 * patience))) || {
		failed "no answer to question $1 within 90 s, and $patience times that"
		return 1
	}
	read -r _ result ms rest <<END
$answer
END
}

ask() {
	tell "$@"
	answer_of $asked
}

# Fields of a job's line: 3 token, 4 id, 5 submit time, 6 phase, 7 cause, 8 exit code, 9 signal,
# 10 state, 11 reason, 12 nodes, 13 when the controller was started, of one that is held.
field_of() {	# TOKEN FIELD
	grep "^job $asked $1 " "$T/client.out" | cut -d' ' -f"$2"
}

token() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

script() {	# NAME: a job script from stdin
	{
		echo '#!/bin/sh'
		cat
	} >"$T/$1"
}

# submit_job TOKEN SCRIPT [OPTION…]: sets $job_id and $ref = "TOKEN ID TIME".
submit_job() {
	job_token=$1
	job_script=$2
	shift 2
	mkdir -p "$T/work"
	ask submit "$job_token" "$T/work" "$T/$job_script" "$@" || return 1
	job_id=${rest%% *}
	ref="$job_token $(echo "$rest" | cut -d' ' -f1,2)"
	[ "$result" = ok ]
}

job_reaches() {	# TOKEN PHASE SECONDS
	ask until "$1" "$2" $(($3 * 1000 * patience)) && [ "$(field_of "$1" 6)" = "$2" ] && return
	failed "within $3 s, and $patience times that: job $1 is $2"
	patience=1	# as wait_for
	diag "$(tail -n 5 "$T/client.out")"
	return 1
}

phase_is() {	# TOKEN PHASE NAME
	ask poll "$1"
	is "$(field_of "$1" 6)" "$2" "$3"
}
