#!/bin/sh
# SPDX-License-Identifier: MIT
# upgrade.sh TARBALL - Slurm is exchanged under runs that train: the cluster of one release is
# stopped, its programs, plugins and libslurm are replaced by another's, and it comes back with its
# state, while lbd and the trainers live on. From 24.11 to 26.05, in the root of 26.05 (check.sh
# makes it below ROOTS; a network, for the other's packages), with the programs of a tarball as an
# installation has them. Each run must keep its job and its trainer, and lbd go over to the other
# helper, or, where there is none, to Slurm's commands. Speaks TAP.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd -P)
roots=${ROOTS:-$src/build/roots}
from=trixie to=sid
packages="slurmctld slurmd slurm-client slurm-wlm-basic-plugins"

# --- outside --------------------------------------------------------------------------------------
if [ "${1:-}" != --inside ]; then
	[ $# -ge 1 ] || { sed -n 's/^# \(upgrade.sh .*\) - .*/usage: \1/p' "$0" >&2; exit 2; }
	root=$roots/$to
	[ -e "$root/.bare" ] || "$src/etc/debian-root" make "$to" "$root" build slurm demo test || exit 1
	place=$root/build/upgrade
	for suite in $from $to; do
		[ ! -e "$place/$suite/usr/lib/x86_64-linux-gnu/slurm-wlm" ] || continue
		libslurm=$(chroot "$roots/$suite" dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libslurm[0-9]*' |
			sed -n 's/^installed \(libslurm[0-9t]*\)$/\1/p')
		for package in $libslurm $packages; do
			"$src/etc/debian-unpack" "$suite" "$package" "$place/$suite" || exit 1
		done
	done
	rm -rf "$place/installed"
	mkdir -p "$place/installed"
	tar -C "$place/installed" --strip-components=1 -xf "$1" || exit 1
	"$src/etc/debian-root" run "$roots/bullseye" make -s -C /src B=/build/portable PORTABLE=1 CUDA=0 HAVE_SLURM= \
		/build/portable/tests/json /build/portable/tests/await || exit 1
	cp -r "$roots/bullseye/build/portable/tests" "$place/installed/bin/"
	"$src/etc/debian-root" run "$root" sh /src/tests/slurm/upgrade.sh --inside
	exit
fi

# --- inside ---------------------------------------------------------------------------------------
mount -t tmpfs over /mnt && mkdir /mnt/new /mnt/work &&
	mount -t overlay -o lowerdir=/usr,upperdir=/mnt/new,workdir=/mnt/work over /usr || exit 1
place=/build/upgrade
library=/usr/lib/x86_64-linux-gnu

# The site's Slurm is that of the suite; nothing of another one stays.
install_slurm() {	# SUITE
	rm -rf $library/libslurm.so.* $library/slurm-wlm
	cp -a --remove-destination $place/"$1"/usr/. /usr/
	ldconfig
}
install_slurm trixie

B=/mnt/programs/bin
mkdir -p /mnt/programs
cp -a $place/installed/. /mnt/programs/
ln -s /src/tests /mnt/programs/tests
LB_SRC=/src
export B LB_SRC
# shellcheck source=tests/system/lib.sh
. /src/tests/system/lib.sh
in_use() { basename "$(lbctl version --json | json lbd.slurm_helper)"; }
job_of() { lbctl status "$1" --json | json attempts.0.job_id; }
step_of() { lbctl status "$1" --json | json step; }
release() { scontrol --version | sed 's/.* \([0-9]*\.[0-9]*\).*/\1/'; }
helper_pid() { pgrep -P "$lbd_pid" -f lbd-slurm; }
ctl=$src/etc/minicluster
stop_daemons() {	# their jobs live on
	for daemon in slurmctld slurmd.n1 slurmd.n2; do
		daemon_pid=$(cat "$cluster/run/$daemon.pid")
		kill "$daemon_pid"
		wait_for "! lives $daemon_pid" 20
	done
}
start_daemons() {
	"$ctl" start-ctld "$cluster" && "$ctl" start-node "$cluster" n1 && "$ctl" start-node "$cluster" n2
}

export MC_CPUS=8
LB_TEST_SLURM=commands	# until lbd starts: here helpers lie in lib/lowbits
cluster_start 2
LB_TEST_SLURM=
is "$(release)" 24.11 "a cluster of Slurm 24.11"
lbworker prepare --out "$T/tokens" /usr/share/games/fortunes/fortunes >/dev/null
lbd_start
is "$(in_use)" lbd-slurm-42 "is spoken to by the helper for it"

lbctl submit "$src/etc/train/demo.toml" --name model --set training.dataset_path="$T/tokens" --set training.steps=1000000 \
	--set training.local_batch_size=1 --set training.seq_len=32 --set slurm.cpus_per_task=1 >/dev/null
lbctl submit --name script -- sh -c "echo \$\$ >>$T/starts
	n=0; while n=\$((n + 1)); do echo step \$n loss 1.0; sleep 0.2; done" >/dev/null
printf '#!/bin/sh\n#SBATCH --begin=now+1hour\ntrue\n' >"$T/later.slurm"
lbctl submit --name later "$T/later.slurm" >/dev/null
runs="model script"
for run in $runs; do
	run_reaches "$run" running 60
	wait_for "[ \"\$(step_of $run)\" -gt 3 ]" 60
	job_of "$run" >"$T/job.$run"
done
run_reaches later queued 30
job_of later >"$T/job.later"

# All that must hold of each run after whatever was exchanged.
keeps_all() {	# WHAT
	for run in $runs; do
		before=$(step_of "$run")
		wait_for "[ \"\$(step_of $run)\" -gt $before ]" 60
		is "$(run_state "$run") $(lbctl status "$run" --json | json attempts.#) $(job_of "$run") $(lbctl status "$run" --json |
			json attempts.0.launches.#)" "running 1 $(cat "$T/job.$run") 1" "$1: $run trains on, in its job, never started again"
	done
	is "$(run_state later) $(job_of later)" "queued $(cat "$T/job.later")" "$1: what waits has its job"
	is "$(wc -l <"$T/starts")" 1 "$1: one trainer"
	is "$(squeue -h -t R,PD,S -o %A | wc -l)" 3 "$1: three jobs, and no more"
	lbctl submit --name "new-$turn" -- true >/dev/null
	run_reaches "new-$turn" completed 60
	is "$(run_state "new-$turn")" completed "$1: a new run comes to its end"
	turn=$((turn + 1))
}
turn=1

# --- the upgrade ----------------------------------------------------------------------------------
stop_daemons
install_slurm sid
lbctl submit --name meanwhile -- true >/dev/null
ok "Slurm 26.05 takes over the state of 24.11" start_daemons
is "$(release)" 26.05 "its commands are 26.05's"
wait_for '[ -n "$(lbctl daemon status | grep "Slurm *seen")" ]' 60
keeps_all "24.11 to 26.05"
run_reaches meanwhile completed 60
is "$(run_state meanwhile)" completed "a run that was submitted in between comes to its end"
diag "in use after the upgrade: $(in_use)"
pid=$(helper_pid)
[ "$(in_use)" = lbd-slurm-45 ] || kill -KILL "$pid"	# as the next hang of the controller would
wait_for '[ "$(in_use)" = lbd-slurm-45 ]' 60
is "$(in_use)" lbd-slurm-45 "its library gone, lbd goes over to the helper for 26.05"
unlike "$(lbctl daemon status)" 'take longer|there is no helper' "with nothing slower in use"
keeps_all "the other helper"

# --- no library at all ----------------------------------------------------------------------------
rm -f $library/libslurm.so.*
ldconfig
kill -KILL "$(helper_pid)"
wait_for '[ "$(in_use)" = lbd-slurm-commands ]' 60
like "$(lbctl daemon status)" "libslurm.so.[0-9]*.*Slurm's commands serve, which take longer" \
	"without any libslurm the commands serve, and status says why"
keeps_all "commands"

# --- and back: another lbd, another login ---------------------------------------------------------
cp -a $place/sid/usr/lib/x86_64-linux-gnu/libslurm.so.* $library/
ldconfig
lbd_stop
lbd_start
is "$(in_use)" lbd-slurm-45 "the library is back, and with the next lbd its helper"
keeps_all "library again"
lbctl kill --now model script later >/dev/null
for run in $runs later; do run_reaches "$run" killed 60; done
diag "$(grep -c . "$T/lbd.log") lines of log; of helpers: $(grep -E 'serve' "$T/lbd.log" | cut -c1-200)"
done_testing
