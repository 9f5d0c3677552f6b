#!/bin/sh
# SPDX-License-Identifier: MIT
# Limits of accounting, with a real slurmdbd: what would be refused for good is refused at once,
# what waits for its turn says for whose limit, with its figures.
. "$(dirname "$0")/lib.sh"
need slurmdbd slurmdbd
need mariadbd mariadb-server-core

MC_ACCOUNTING=1
MC_CPUS=4
echo 'PartitionName=other Nodes=n1,n2 MaxTime=240 State=UP' >"$T/partitions"
MC_CONF_EXTRA=$T/partitions
export MC_ACCOUNTING MC_CPUS MC_CONF_EXTRA
cluster_start 2
me=$(id -un)
manage() { sacctmgr -iQ "$@" >"$T/sacctmgr" 2>&1 || bail_out "sacctmgr $*: $(cat "$T/sacctmgr")"; }
manage add account lab
manage add account small maxjobs=1 maxsubmitjobs=2
manage add qos one set maxjobsperuser=1
manage add qos narrow set grptres=cpu=2
manage add qos brief set maxwall=00:05:00 flags=denyonlimit
manage add qos span set grptresrunmins=cpu=20
manage add qos alone
manage add qos few set maxsubmitjobsperuser=0
manage add user "$me" account=lab defaultaccount=lab
manage add user "$me" account=small
manage modify user "$me" set defaultaccount=lab
manage modify user "$me" account=lab set qos=normal,one,narrow,brief,few,span defaultqos=normal
printf '[poll]\ninterval = "200ms"\nidle_interval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
wait_for 'lbctl submit --dry-run --set slurm.account=small -- true' 30	# slurmctld has heard of it

# --- refused at once ------------------------------------------------------------------------------
refused() {	# WORDS OPTION…: with one line that says so
	words=$1
	shift
	exits 6 "refused: $*" lbctl submit "$@" -- true
	like "$err" "$words" "in words"
	is "$(printf '%s\n' "$err" | wc -l)" 1 "in one line"
}
refused 'slurm.account: nope: .*[Ii]nvalid account' --set slurm.account=nope
refused 'slurm.qos: alone: .*[Ii]nvalid qos' --set slurm.qos=alone
refused 'slurm.qos: nope: .*[Ii]nvalid qos' --set slurm.qos=nope
refused 'slurm.qos: brief: over a limit: QOSMaxWallDurationPerJobLimit: its QOS allows no more time for one job' \
	--set slurm.qos=brief --set slurm.time=10m
refused 'slurm.qos: few: over a limit: QOSMaxSubmitJobPerUserLimit: its QOS allows no more jobs in the queue for one user$' \
	--set slurm.qos=few
is "$(squeue -h | wc -l) $(lbctl ls --all --json)" "0 []" "nothing is left of them"

# --- waiting for a limit --------------------------------------------------------------------------
submit() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" --set slurm.time=5m "$@" -- sleep $mark >/dev/null || failed "submit $name"
}
for n in 1 2; do
	submit one$n --set slurm.qos=one
	submit narrow$n --set slurm.qos=narrow --set slurm.cpus_per_task=2
	submit small$n --set slurm.account=small
	for kind in one narrow small; do
		[ $n = 2 ] || run_reaches $kind$n running 30
	done
done
waits() {	# RUN REASON SENTENCE FIELD VALUE FIGURES
	wait_for "lbctl why $1 --json | json reason | grep -qx $2" 30 && passed "$1 waits for $2"
	like "$(lbctl why "$1")" "why +$2: $3" "in words"
	wait_for "lbctl status $1 | grep -Eq 'waits for +$2: $3'" 30 && passed "status says so, too"
	is "$(lbctl why "$1" --json | json "$4")" "$5" "of $4 $5"
	like "$(lbctl why "$1")" "^ +$4 +$5" "which people read, too"
	like "$(lbctl why "$1")" "^ +limits +$6\$" "and how much of it is used"
	is "$(lbctl why "$1" --json | json sooner)" "[]" "which holds in any partition"
}
waits one2 QOSMaxJobsPerUserLimit 'its QOS allows no more running jobs for one user' qos one 'QOS one, for each user: 1 of 1 running jobs taken'
waits narrow2 QOSGrpCpuLimit 'its QOS allows no more CPUs for all its jobs together' qos narrow \
	'QOS narrow: 2 of 2 CPUs taken'
waits small2 AssocMaxJobsLimit 'its account allows no more running jobs' account small \
	'(you in )?account small: 1 of 1 running jobs taken'
is "$(lbctl why narrow2 --json | json limits.0.used)" 2 "as a number, too"
submit big --set slurm.qos=narrow --set slurm.cpus_per_task=4
waits big QOSGrpCpuLimit 'its QOS allows no more CPUs for all its jobs together' qos narrow \
	'QOS narrow: 2 CPUs in all, the job asks for 4: it will not start as it is'
refused 'slurm.account: small: over a limit: AssocMaxSubmitJobLimit: its account allows no more jobs in the queue' \
	--set slurm.account=small --set slurm.time=5m
# Slurm may make its time shorter, and then it fits.
submit span1 --set slurm.qos=span --set slurm.time=19m
run_reaches span1 running 30
submit span2 --set slurm.qos=span --set slurm.time=1h --time-min=5
waits span2 QOSGrpCPURunMinutesLimit 'its QOS allows no more CPUs times minutes of running jobs for all its jobs together' \
	qos span 'QOS span: 1[0-9] of 20 minutes of CPUs taken'
lbctl kill --yes 'one*' 'narrow*' 'small*' 'span*' big >/dev/null
for run in one1 one2 narrow1 narrow2 small1 small2 span1 span2 big; do run_reaches $run killed 30; done

# --- a limit that a relaunch meets
# ---------------------------------------------------------------------- Others of the account have
# taken its place in the queue meanwhile: no reason to give the run up.
lbctl submit --name back --set slurm.account=small --set slurm.time=5m --set restart.in_place=0 \
	--set restart.backoff_first=200ms -- sh -c 'until [ -e "$LB_RUN_DIR/die" ]; do sleep 0.1; done
		[ "$LB_ATTEMPT" -gt 1 ]' >/dev/null
run_reaches back running 30
other=$(sbatch --parsable -H -A small -o /dev/null --wrap true)
manage modify user "$me" account=small set maxsubmitjobs=1
: >"$LB_HOME/runs/back/die"
wait_for 'lbctl why back | grep -q "AssocMaxSubmitJobLimit: its account allows no more jobs in the queue"' 30 &&
	passed "a relaunch that a limit is in the way of says so"
like "$(lbctl status back)" 'waits for +.*AssocMaxSubmitJobLimit' "status, too"
wait_for '[ "$(run_state back)" = submitting ]' 10 && passed "and is asked for again"
scancel "$other"
run_reaches back completed 60 && passed "until there is room"

# --- a federation ---------------------------------------------------------------------------------
# A job would begin in any of its clusters, where lbd neither sees nor reaches it.
lbd_stop
manage add cluster elsewhere
manage add federation both clusters=mini,elsewhere
wait_for 'scontrol show federation | grep -q "^Sibling: *elsewhere:"' 30
lbd_start
ok "a run can be submitted in a federation" lbctl submit --name here --set slurm.time=5m -- sleep $mark
run_reaches here running 30
like "$(scontrol show job "$(job_of here)")" 'FedViableSiblings=mini ' "and stays in this cluster"
like "$(lbd --home "$LB_HOME" --print-job)" '^#SBATCH --clusters=mini$' "as lbd's own job does"
lbctl kill --yes --now here >/dev/null
run_reaches here killed 30 && passed "where orders reach it"
done_testing
