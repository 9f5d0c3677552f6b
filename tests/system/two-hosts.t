#!/bin/sh
# SPDX-License-Identifier: MIT
# Two machines, one folder, on a file system whose locks say yes to everybody: a live lbd is never
# taken over, a silent one after its lease; and when that one wakes up, in the middle of submitting,
# it ends before it writes or submits anything: each run gets one job.
. "$(dirname "$0")/lib.sh"

shim=$B/tests/nolocks.so
[ -e "$shim" ] || bail_out "$shim is missing: run make $shim"
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
lease() { json "$1" <"$LB_HOME/lbd.lease"; }

# on HOST COMMAND…: there, with locks that do not lock
on() {
	on_host=$1
	shift
	env LD_PRELOAD="$shim" NOLOCKS_HOST="$on_host" "$@"
}
host_start() {
	LB_DEBUGGER="env LD_PRELOAD=$shim NOLOCKS_HOST=$1"
	lbd_start
	LB_DEBUGGER=
}


cluster_start 1
# a live one on a busy machine or disk is silent for less
printf '[daemon]\nlease = "%ss"\n[poll]\ninterval = "200ms"\n' $((patience + 1)) >"$LB_HOME/lbd.toml"
host_start alpha
exits 4 "the same machine: refused" on alpha lbd --foreground --home "$LB_HOME"
like "$err" "pid $lbd_pid on alpha" "the holder is named"
exits 4 "another machine, a live holder: refused" on beta lbd --foreground --home "$LB_HOME"
like "$err" "pid $lbd_pid on alpha" "the holder is named"
exits 0 "status, seen from there" on beta lbctl daemon status

# The sleeper is stopped at some moment of a submission, as a machine that hangs is.
turn=0
for delay in 000 010 200; do
	turn=$((turn + 1))
	host=$([ $((turn % 2)) = 1 ] && echo beta || echo alpha)
	lbctl submit --name "r$turn" -- sh -c 'echo started >>"$LB_RUN_DIR/starts"' >/dev/null
	sleep 0.$delay		# the moment
	kill -s STOP "$lbd_pid"
	sleeper=$lbd_pid
	rm "$LB_HOME/lbd.sock"	# over there nobody would answer at it
	host_start "$host"
	is "$(lease host).$(lease generation)" "$host.$((turn + 1))" \
		"taken over after the lease ($host)"
	kill -s CONT "$sleeper"
	wait_for '! lives "$sleeper"' 30 || kill -KILL "$sleeper"
	wait "$sleeper"
	is $? 4 "the one that wakes up ends at once"
	ok "and leaves the other's socket alone" lbctl submit --name "s$turn" -- true
done
like "$(cat "$T/lbd.log")" "another lbd is at work here \(pid $lbd_pid on $host" \
	"and says whom it found"
for turn in 1 2 3; do
	run_reaches r$turn completed 60
	run_reaches s$turn completed 60
	is "$(wc -l <"$LB_HOME/runs/r$turn/starts")" 1 "r$turn was started once"
	is "$(jobs_of r$turn)" 1 "by one job"
done
is "$(scontrol show job -o | grep -c '^JobId=')" 6 "six runs made six jobs"
lbd_stop
need sqlite3 sqlite3

# One that hangs while it submits a time of cron: the next one submits that by the same name.
faketime=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null)
[ -n "$faketime" ] || bail_out "libfaketime is missing: apt-get install libfaketime"
mkdir -m 755 "$T/beside" "$LB_HOME/cron"
ln -s "$B/lbrun" "$T/beside/lbrun"
cat >"$T/beside/lbworker" <<END
#!/bin/sh
case "\$*" in *--check*) ;; *) exec sleep 1000 ;; esac
: >"$T/asked"
while [ -e "$T/asks" ]; do sleep 0.1; done
END
chmod +x "$T/beside/lbworker"
printf '[runs]\nlbrun = "%s"\n' "$T/beside/lbrun" >>"$LB_HOME/lbd.toml"
printf '[model]\n' >"$LB_HOME/cron/night.toml"
echo '1 11 * * * night.toml' >"$LB_HOME/cron/crontab"
: >"$T/asks"
shim=$shim:$faketime TZ=UTC
export TZ FAKETIME_FMT=%s
FAKETIME=@$(date -d "2026-11-02 11:00:56" +%s) host_start alpha
sleeper=$lbd_pid
wait_for '[ -e "$T/asked" ]' 30
lbctl cron >/dev/null	# its turn is over
kill -s STOP "$sleeper"
rm "$LB_HOME/lbd.sock" "$T/asks"
FAKETIME=@$(date -d "2026-11-02 11:01:10" +%s) host_start beta
run_reaches night-20261102T1101Z running 30
kill -s CONT "$sleeper"
wait "$sleeper"
ok "what the next one made is left alone by one that wakes up" \
	[ -e "$LB_HOME/runs/night-20261102T1101Z/spec.toml" ]
lbctl kill --now --yes night-20261102T1101Z >/dev/null
run_reaches night-20261102T1101Z killed 30
lbd_stop
shim=${shim%%:*}
rm -r "$LB_HOME/cron"
unset TZ FAKETIME_FMT

# What NFS once said is not there, it repeats for up to a minute: a job's end is seen all the same.
LB_DEBUGGER="env LD_PRELOAD=$shim NOLOCKS_HOST=alpha NOLOCKS_REPEATS=$LB_HOME/runs/told/"
rm "$LB_HOME/lbd.toml"	# as often as lbd looks by itself
lbd_start
lbctl submit --name told -- sleep 2 >/dev/null
run_reaches told completed 30
is "$(attempts told)" 1 "what the other machine wrote down is known, though lbd had looked for it before"
lbd_stop
is "$(sqlite3 "$LB_HOME/ledger.db" 'PRAGMA integrity_check')" ok "the ledger is sound"
done_testing
