# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# lib.sh - what every system test begins with:
#
#   . "$(dirname "$0")/lib.sh"
#   plan 2                         # or done_testing at the end
#   cluster_start 2                # a private Slurm; absent: scheduler "local"
#   lbd_start                      # returns once lbd says that it is ready
#   ok "a run can be submitted" lbctl submit --name r1 -- true
#   wait_for '[ "$(run_state r1)" = completed ]' 20
#   is "$(lbctl status r1 --json | json attempts.0.exit_code)" 0 "its exit code is known"
#
# Each test has its own folder $T, its own $LB_HOME and socket, and talks to nobody else. It begins
# in $T/here, which is empty; $src is the top folder, $suite this one. When it ends, however
# it ends, every process that belongs to $T is ended, and no other. Tests do not sleep: they wait
# for a condition with a deadline. Something that a test needs and that is missing fails it, with a
# line that says what.
#
# Environment: B        build folder (absolute; build/ of this tree)
#              LB_SRC   top folder, for scripts that do not lie in tests/system
#              LB_PATIENCE   how many times as long as on a quiet machine things may take (4)
#              LB_KEEP=1     keep $T and say where it is
#              LB_ASKER      an lbctl that starts faster than the one under test; wait_for asks with
#                            it
#              LB_TEST_SLURM=commands   lbd speaks to Slurm through its commands
#              LB_DEBUGGER   put in front of lbd, e.g. "strace -f -o /tmp/trace"
set -u
umask 022

src=${LB_SRC:-$(cd "$(dirname "$0")/../.." && pwd -P)}
# shellcheck disable=SC2034 # for the tests
suite=$src/tests/system
B=${B:-$src/build}
T=$(mktemp -d "${TMPDIR:-/tmp}/lb.XXXXXX") || exit 1
LB_HOME=$T/home
PATH=$B:$B/tests:$PATH	# trainers, too, await
SLURM_CONF=$T/none		# until cluster_start: never the site's own Slurm
mkdir "$LB_HOME" "$T/here"
# What is submitted here is in no git repository: lbctl would look at all files of this tree, each
# time.
cd "$T/here" || exit 1
# A trainer that aborts would leave its core where we were called: slurmd raises what a soft limit
# says.
# shellcheck disable=SC3045 # dash has it
[ -n "${wants_cores:-}" ] || ulimit -c 0
ASAN_OPTIONS=${ASAN_OPTIONS:-}${ASAN_OPTIONS:+:}log_path=$T/sanitizer:disable_coredump=0
UBSAN_OPTIONS=${UBSAN_OPTIONS:-}${UBSAN_OPTIONS:+:}log_path=$T/sanitizer:print_stacktrace=1
# libslurm's own: of the controller's plain answer it keeps the number, and forgets the rest.
echo leak:slurm_update_job2 >"$T/leaks"
LSAN_OPTIONS=${LSAN_OPTIONS:-}${LSAN_OPTIONS:+:}suppressions=$T/leaks:print_suppressions=0
export B T LB_HOME PATH SLURM_CONF ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
[ -z "${LB_ASKER:-}" ] || { mkdir "$T/asker" && ln -s "$LB_ASKER" "$T/asker/lbctl"; }
unset LB_SOCKET LB_RUN LB_ATTEMPT LB_LAUNCH LB_RUN_DIR LB_CHECKPOINT_DIR LB_SHARED_DIR LB_RESUME_FROM

# Names here are global, as all names of a POSIX shell: those of helpers begin with tap_ or lbd_.

# --- TAP ------------------------------------------------------------------------------------
tests_run=0
tests_failed=0
tests_planned=

plan() {	# COUNT
	tests_planned=$1
	echo "1..$1"
}

# To stderr: prove shows that, and what failed on another machine must be seen in its log.
diag() { [ -z "$*" ] || printf '%s\n' "$*" | sed 's/^/# /' >&2; }

passed() {	# NAME
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1"
}
failed() {	# NAME
	tests_run=$((tests_run + 1))
	tests_failed=$((tests_failed + 1))
	echo "not ok $tests_run - $1"
}

# ok NAME COMMAND [ARG…]: the command succeeds. Its output is shown only when it does not.
ok() {
	tap_name=$1
	shift
	if "$@" >"$T/ok.out" 2>&1; then
		passed "$tap_name"
	else
		status=$?
		failed "$tap_name"
		diag "exit status $status: $*"
		diag "$(tail -n 30 "$T/ok.out")"
		return 1
	fi
}

# exits STATUS NAME COMMAND [ARG…]: it ends with just this status. Afterwards $out and $err hold
# what it printed.
exits() {
	tap_want=$1
	tap_name=$2
	shift 2
	"$@" >"$T/exits.out" 2>"$T/exits.err"
	status=$?
	out=$(cat "$T/exits.out")
	err=$(cat "$T/exits.err")
	if [ "$status" = "$tap_want" ]; then
		passed "$tap_name"
	else
		failed "$tap_name"
		diag "exit status $status, expected $tap_want: $*"
		diag "$out"
		diag "$err"
		return 1
	fi
}

is() {	# GOT WANT NAME
	if [ "$1" = "$2" ]; then
		passed "$3"
	else
		failed "$3"
		diag "got:      $1"
		diag "expected: $2"
		return 1
	fi
}

like() {	# GOT ERE NAME
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		passed "$3"
	else
		failed "$3"
		diag "got:            $1"
		diag "does not match: $2"
		return 1
	fi
}
unlike() {	# GOT ERE NAME
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		failed "$3"
		diag "got:            $1"
		diag "matches:        $2"
	else
		passed "$3"
	fi
}

# Gives up now. cleanup prints what may explain it.
bail_out() {
	echo "Bail out! $*"
	exit 1
}

done_testing() {
	if [ -z "$tests_planned" ]; then
		tests_planned=$tests_run
		echo "1..$tests_run"
	fi
	exit 0		# cleanup decides the status
}

# --- what a test needs -----------------------------------------------------------------------
need() {	# PROGRAM PACKAGE
	PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
		bail_out "$1 is missing (Debian package $2); etc/install-deps installs it"
}

# json PATH <JSON: one value of a document; "#" counts: attempts.0.job_id, attempts.#.
# Absent members print as "absent", null as "null".
build=$B	# a test may set B to a copy of the programs
json() { "$build/tests/json" "$1"; }

# A port of this machine at which nobody listens; not one of those that outgoing connections are
# given meanwhile.
free_port() {
	python3 -c 'import random, socket
while True:
    port, s = random.randrange(10000, 30000), socket.socket()
    try:
        s.bind(("127.0.0.1", port))
        break
    except OSError: pass
print(port)'
}

# lives PID: nor is it a zombie.
lives() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

# no %3N: the date of uutils, Ubuntu's since 25.10, has nine digits for it
now_ms() {
	tap_ns=$(date +%s%N)
	echo "${tap_ns%??????}"
}
# starts no program
uptime_ms() {
	read -r uptime _ </proc/uptime
	echo "${uptime%.*}${uptime#*.}0"
}

# How many times as long as on a quiet machine something may take, before it counts as broken.
patience=${LB_PATIENCE:-4}
in_time() { [ "$1" -le $(($2 * patience)) ]; }	# MS LIMIT_MS, which is for a quiet machine

# A length of sleep by which a test tells its processes from those of tests beside it.
# shellcheck disable=SC2034 # for the tests
mark=1000.$$

# wait_for 'CONDITION' SECONDS: until the shell condition holds, else the test fails here. SECONDS
# is generous for a quiet machine; the rest is patience.
wait_for() {
	deadline=$(($(uptime_ms) + $2 * 1000 * patience))
	pause=0.02
	until holds "$1" >"$T/wait.out" 2>&1; do
		now=$(uptime_ms)
		if [ "$now" -ge $deadline ]; then
			failed "within $2 s, and $patience times that: $1"
			patience=1	# what is broken need not be waited for again
			diag "$(tail -n 5 "$T/wait.out")"
			context
			return 1
		fi
		sleep $pause
		# who waits long need not look often: the others have the processor
		case $(((now - deadline + $2 * 1000 * patience) / 100)) in
		0) ;;
		[1-4]) pause=0.06 ;;
		[5-9]) pause=0.12 ;;
		*) pause=0.2 ;;
		esac
	done
}

# The condition, asked with the lbctl that starts faster, if there is one: a hundred questions of a
# sanitized lbctl take more of the processor than what is waited for. Not where a test has copied
# the programs.
holds() {
	if [ -n "$tap_path" ] || [ ! -e "$T/asker" ] || [ "$(command -v lbctl)" != "$build/lbctl" ]; then
		eval "$1"
		return
	fi
	tap_path=$PATH
	PATH=$T/asker:$PATH
	eval "$1"
	tap_holds=$?
	PATH=$tap_path
	tap_path=
	return $tap_holds
}
tap_path=

# What a test that failed leaves behind: every log of its folder, for prove.sh to print at the end.
keep_logs() {
	[ -n "${LB_RECORD:-}" ] || return 0
	find "$T" -type f \( -name '*.log' -o -name 'sanitizer.*' -o -name exit.json -o -name order \
		-o -name stderr -o -name spool.jsonl \) -size +0 | sort | while read -r log; do
		printf -- '--- %s\n' "${log#"$T"/}"
		tail -n 200 "$log" | cut -c 1-500
	done >"$LB_RECORD.logs"
}

context() {
	for log in "$T"/lbd.log "$LB_HOME"/runs/*/attempts/*/out.log "$T"/sanitizer.*; do
		[ -s "$log" ] || continue
		diag "--- ${log#"$T"/}"
		diag "$(tail -n 25 "$log")"
	done
}

# --- lbd ------------------------------------------------------------------------------------
lbd_pid=

# lbd_try [OPTION…]: fails where lbd does; a deadline, because a test that hangs tells nobody why.
# LB_TEST_SLURM: what lbd.toml is to say of it, in the section where the test may have put more.
lbd_through() {
	[ -n "${LB_TEST_SLURM:-}" ] && [ -n "$cluster" ] || return 0
	lbd_toml=$LB_HOME/lbd.toml
	grep -qs '^through' "$lbd_toml" && return
	if grep -qs '^\[slurm\]' "$lbd_toml"; then
		sed -i "s/^\[slurm\]/&\nthrough = \"$LB_TEST_SLURM\"/" "$lbd_toml"
	else
		printf '[slurm]\nthrough = "%s"\n' "$LB_TEST_SLURM" >>"$lbd_toml"
	fi
}

lbd_try() {
	lbd_through
	rm -f "$T/ready"
	mkfifo "$T/ready"
	# shellcheck disable=SC2086 # LB_DEBUGGER holds words
	${LB_DEBUGGER:-} "$B/lbd" --foreground --home "$LB_HOME" --ready-fd 3 "$@" \
		3>"$T/ready" >>"$T/lbd.log" 2>&1 &
	lbd_pid=$!
	timeout 60 sh -c 'read -r line <"$1"' sh "$T/ready"
}

lbd_start() {	# [OPTION…]
	lbd_try "$@" && return
	context
	bail_out "lbd did not become ready"
}

# lbd_stop [SIGNAL]: ends it and returns its exit status.
lbd_stop() {
	[ -n "$lbd_pid" ] || return 0
	kill -s "${1:-TERM}" "$lbd_pid" 2>/dev/null
	wait "$lbd_pid" 2>/dev/null
	lbd_status=$?
	lbd_pid=
	return $lbd_status
}

# shellcheck disable=SC2015 # returning 0 is the point
lbd_kill9() { lbd_stop KILL || :; }

# jobs_of NAME: how many its attempts had. An attempt whose submission died with lbd on its way has
# none.
jobs_of() {
	lbctl status "$1" --json | python3 -c 'import json, sys
print(sum(1 for a in json.load(sys.stdin)["attempts"] if a.get("job_id")))'
}

run_state() { lbctl status "$1" --json | json state; }
attempts() { lbctl status "$1" --json | json attempts.#; }	# RUN: how many
job_of() { lbctl status "$1" --json | json "attempts.${2:-0}.job_id"; }	# RUN [ATTEMPT], from 0 on

# run_reaches NAME STATE SECONDS [ATTEMPTS]. What await cannot say, without lbd for instance, is
# asked as people do.
run_reaches() {
	# shellcheck disable=SC2086 # a word or none
	"$build/tests/await" "$1" "$2" $(($3 * patience)) ${4:-} || [ $? != 3 ] || patience=1
	wait_for "run_is_at $1 $2 ${4:-}" "$3"
}
run_is_at() {	# NAME STATE [ATTEMPTS]
	lbctl status "$1" --json >"$T/run_is_at" && [ "$(json state <"$T/run_is_at")" = "$2" ] &&
		{ [ -z "${3:-}" ] || [ "$(json attempts.# <"$T/run_is_at")" = "$3" ]; }
}

# --- Slurm ----------------------------------------------------------------------------------
cluster=

# cluster_start [NODES]: a private cluster for this test alone, and lbd will use it.
cluster_start() {
	need slurmctld slurmctld
	need slurmd slurmd
	need srun slurm-client
	need munged munge
	[ -x "$B/lbd-slurm" ] || [ "${LB_TEST_SLURM:-}" = commands ] || bail_out \
		"$B/lbd-slurm is missing: it is built where libslurm-dev is"
	cluster=$T/slurm
	"$src/etc/minicluster" start "$cluster" "${1:-1}" >"$T/cluster.log" 2>&1 ||
		bail_out "no private cluster: $(tail -n 1 "$T/cluster.log")"
	# shellcheck disable=SC1091 # written by minicluster
	. "$cluster/env"
}

cluster_stop() {
	[ -z "$cluster" ] || "$src/etc/minicluster" stop "$cluster" >>"$T/cluster.log" 2>&1
	cluster=
	SLURM_CONF=$T/none
}

# cluster_signal DAEMON SIGNAL: munged, slurmctld, slurmd.n1 …
cluster_signal() { "$src/etc/minicluster" signal "$cluster" "$1" "$2"; }
# DOWN: jobs wait, UP: they start. (Drained nodes would register when they resume, and a slurmd that
# is busy then takes the script of a job that it just starts for a stray one, and removes it.)
partition() { scontrol update PartitionName=debug State="$1"; }	# UP|DOWN

# shepherds JOB: the processes of its lbrun; the command line names the job's script, not the run.
shepherds() { pgrep -f "lbrun --job $cluster/spool/.*/job0*$1/"; }

# --- the end --------------------------------------------------------------------------------
# naming TEXT: the processes whose arguments or environment contain it, but for this one. The list
# of candidates is made first, so the helpers of this function are not among them.
naming() {
	tap_text=$1
	set -- /proc/[0-9]*/environ /proc/[0-9]*/cmdline
	grep -lsaF -e "$tap_text" "$@" | cut -d / -f 3 | sort -u | grep -vx $$
}

# Processes of this test: those that name its folder. Jobs of the local scheduler outlive lbd by
# design, so they are looked for rather than remembered.
own_processes() { naming "$T/"; }

end_own_processes() {
	tries=0
	while pids=$(own_processes) && [ -n "$pids" ] && [ $tries -lt 50 ]; do
		# shellcheck disable=SC2086 # numbers
		kill -KILL $pids 2>/dev/null
		tries=$((tries + 1))
		sleep 0.02
	done
}

lbd_is_gone() { ! lives "$lbd_pid"; }

# With grace, so that a leak in lbd is reported; a frozen one is killed.
lbd_end() {
	[ -n "$lbd_pid" ] || return 0
	kill -s TERM "$lbd_pid" 2>/dev/null
	tries=0
	until lbd_is_gone || [ $tries -ge 250 ]; do
		tries=$((tries + 1))
		sleep 0.02
	done
	lbd_stop KILL
}

cleanup() {
	result=$?
	trap '' HUP INT TERM PIPE
	lbd_end
	cluster_stop
	end_own_processes
	# a program that is killed while its leaks are counted leaves this line, or an empty file:
	# nothing
	grep -hv -e 'Unable to get registers from thread' -e 'was not suspended. False leaks are possible' \
		"$T"/sanitizer.* >"$T/found" 2>/dev/null
	if [ -s "$T/found" ]; then
		diag "a sanitizer found something"
		result=1
		context
	fi
	[ $tests_failed = 0 ] || result=1
	if [ -n "$tests_planned" ] && [ "$tests_run" != "$tests_planned" ]; then
		diag "planned $tests_planned tests, ran $tests_run"
		result=1
	fi
	[ $result = 0 ] || keep_logs
	if [ -n "${LB_KEEP:-}" ]; then
		diag "kept: $T"
	else
		rm -rf "$T"
	fi
	exit $result
}
trap cleanup EXIT
# PIPE: who reads our output, prove or a terminal, may be gone before us.
trap 'exit 130' HUP INT TERM PIPE

need python3 python3
for program in lbd lbctl lbrun tests/json tests/await; do
	[ -x "$B/$program" ] || bail_out "$B/$program is missing: run make"
done

# sync_trainer FILE: makes a trainer of thirty steps for sync.t and tests/trackers; FILE FOLDER.
# Launch N's loss of step S is N.SS. It saves at step 10, dies at step 15 of its first launch, and
# waits for FOLDER/go in its second.
sync_trainer() {
	cat >"$1" <<'END'
#!/bin/sh
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*-}
launch=$LB_ATTEMPT
[ "$LB_ATTEMPT" = 1 ] && launch=$LB_LAUNCH || launch=3
case $launch in 2) touch "$1/second"; until [ -e "$1/go" ]; do sleep 0.05; done ;; 3) touch "$1/third" ;; esac
while [ "$step" -lt 30 ]; do
	step=$((step + 1))
	printf 'step %d/30 loss %d.%02d tokens/s: 1000\n' "$step" "$launch" "$step"
	[ "$step" != 10 ] || { mkdir "$LB_CHECKPOINT_DIR/.new" && echo x >"$LB_CHECKPOINT_DIR/.new/model.pt" &&
		mv "$LB_CHECKPOINT_DIR/.new" "$LB_CHECKPOINT_DIR/step-10"; }
	[ "$step" != 15 ] || [ "$launch" != 1 ] || kill -9 $$
	sleep 0.02
done
END
	chmod +x "$1"
}
# curve FROM TO LAUNCH: what it tells of these steps.
curve() { for s in $(seq "$1" "$2"); do printf '%d %d.%02d\n' "$s" "$3" "$s"; done; }
