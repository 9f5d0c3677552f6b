#!/bin/sh
# SPDX-License-Identifier: MIT
# Login nodes as they are: folders that take no file or no program, sessions that end what they
# began, limits, another machine after each login. lbctl doctor finds each and says what to do; lbd
# works where it can.
. "$(dirname "$0")/lib.sh"

need unshare util-linux
need prlimit util-linux
shim=$B/tests/nolocks.so
[ -e "$shim" ] || bail_out "$shim is missing: run make $shim"
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0

finds() {	# CHECK TEXT FIX NAME: in what doctor said
	like "$(cat "$T/said")" "^$1: finding: .*$2.*: to do: .*$3" "$4"
}
# Each check a line, from this shell's place in the world.
cat >"$T/say" <<'END'
lbctl doctor --json | python3 -c 'import json, sys
for c in json.load(sys.stdin):
    print(c["check"], c["verdict"], c["text"], "to do: " + (c["fix"] or "nothing"), sep=": ")'
END
# at_site COMMANDS: what doctor says in a world of mounts of its own, made by these commands. An
# ordinary user is root there.
at_site() {
	as_root=
	[ "$(id -u)" = 0 ] || as_root=-r
	# shellcheck disable=SC2086 # one word or none
	unshare -m $as_root sh -c "set -e; $1; . $T/say" 2>&1
}
# Files below $T/over appear over those of /etc and /run.
put_over='mount -t overlay -o lowerdir=$T/over/etc:/etc none /etc; mount -t tmpfs none /run
	cp -a "$T/over/run/." /run/; mount -t tmpfs none /var/lib; cp -a "$T/over/lib/." /var/lib/'

plain=$(sh "$T/say" 2>&1)
like "$plain" '^home: fine' "a home that can be written to"
like "$plain" '^TMPDIR: fine' "a /tmp that takes programs"
like "$plain" '^login node: skipped' "an lbd that never ran"

# --- folders --------------------------------------------------------------------------------------
mkdir "$T/tmp" "$T/other"
at_site "mount -t tmpfs -o noexec none $T/tmp; export TMPDIR=$T/tmp" >"$T/said"
finds TMPDIR 'noexec' 'export TMPDIR=' "a /tmp from which nothing starts"
at_site "mount -t tmpfs -o ro none $T/other; export LB_HOME=$T/other/state" >"$T/said"
finds home "nothing can be written to $T/other: Read-only file system" 'set LB_HOME' \
	"a home that cannot be written to"
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$T"
	mkdir -m 700 "$T/squashed"
	# as a network file system treats root: as nobody, whom this folder is closed to
	setpriv --reuid=65534 --regid=65534 --clear-groups env PATH="$PATH" LB_HOME="$T/squashed" sh "$T/say" >"$T/said" 2>&1
	finds home 'Permission denied' 'root is nobody' "root squash"
fi

# --- logout ---------------------------------------------------------------------------------------
mkdir -p "$T/over/etc/systemd/logind.conf.d" "$T/over/run/systemd/system" "$T/over/lib/systemd/linger"
at_site "$put_over" >"$T/said"
like "$(cat "$T/said")" '^logout: skipped: no systemd session of yours: lbctl daemon start' "no systemd session"
printf '[Login]\nKillUserProcesses=yes\n' >"$T/over/etc/systemd/logind.conf.d/site.conf"
at_site "$put_over" >"$T/said"
finds logout 'KillUserProcesses=yes' 'enable-linger.*--in-slurm' \
	"processes that are ended at logout"
for user in "$(id -un)" root; do : >"$T/over/lib/systemd/linger/$user"; done	# whom an ordinary user is in there
like "$(at_site "$put_over")" '^logout: fine: lingering is on' "lingering is the cure"

# --- limits ---------------------------------------------------------------------------------------
prlimit --cpu=300 sh "$T/say" >"$T/said" 2>&1
finds limits '5m00s of CPU time' '--in-slurm' "five minutes of CPU time"
group=$(sed -n 's/^0:://p' /proc/self/cgroup)
at_site "mount -t tmpfs none /sys/fs/cgroup; mkdir -p /sys/fs/cgroup$group
	echo 2147483648 >/sys/fs/cgroup$group/memory.max
	echo 50000 100000 >/sys/fs/cgroup$group/cpu.max
	export LB_HOME=$T/contained; lbctl daemon start
	lbctl submit --set slurm.mem=3G -- true || :
	lbctl submit --set slurm.cpus_per_task=2 -- true || :
	lbctl daemon stop" >"$T/said"
finds limits 'share 2.0 GiB of memory' '--in-slurm' "a cgroup of 2 GB"
like "$(cat "$T/said")" 'job wants 3072 MB, this machine has 2048 to give' "is all that jobs there may have"
like "$(cat "$T/said")" 'job wants 2 CPUs, this machine has 1 to give' "as is the half CPU that it leaves them"
group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
at_site "mount -t tmpfs none /sys/fs/cgroup; mkdir -p /sys/fs/cgroup/memory$group
	echo 2147483648 >/sys/fs/cgroup/memory$group/memory.limit_in_bytes" >"$T/said"
[ -z "$group" ] || finds limits 'share 2.0 GiB' '--in-slurm' "one of the older kind"
if [ -z "${SAN:-}" ] && ! ldd "$B/lbd" | grep -q asan; then	# which needs terabytes of addresses
	prlimit --as=1024000000 sh "$T/say" >"$T/said" 2>&1
	finds limits '977 MiB of addresses' '--in-slurm' "ulimit -v"
	LB_DEBUGGER="prlimit --as=1024000000"
fi
lbd_start
ok "lbd serves within a gigabyte of addresses" lbctl submit --name small -- true
run_reaches small completed 20

# --- another machine ------------------------------------------------------------------------------
mv "$LB_HOME/lbd.sock" "$T/sock"		# a socket leads nowhere from there
LD_PRELOAD=$shim NOLOCKS_HOST=login2 sh "$T/say" >"$T/said" 2>&1
finds 'login node' "lbd runs on $(json host <"$LB_HOME/lbd.lease"), which is another machine" 'ssh there' \
	"lbd on the login node of yesterday"
mv "$T/sock" "$LB_HOME/lbd.sock"
lbd_stop KILL || :
sh "$T/say" >"$T/said" 2>&1
finds 'login node' 'died here without a word' 'daemon start.*--in-slurm' "lbd that was killed at logout"
lbd_stop || :
done_testing
