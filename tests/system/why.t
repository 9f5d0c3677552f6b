#!/bin/sh
# SPDX-License-Identifier: MIT
# What Slurm would refuse is refused at once and leaves nothing behind; what waits says why, who is
# ahead, and what would start it sooner.
. "$(dirname "$0")/lib.sh"

cat >"$T/partitions" <<END
PartitionName=short Nodes=n1 MaxTime=10 MaxNodes=1 State=UP
PartitionName=other Nodes=n3 MaxTime=240 State=UP
PartitionName=shut Nodes=n1 State=INACTIVE
PartitionName=asleep Nodes=n3 State=DOWN
Licenses=seat:1
END
MC_CONF_EXTRA=$T/partitions
MC_CPUS=2
export MC_CONF_EXTRA MC_CPUS
cluster_start 3
scontrol update partitionname=debug nodes='n[1-2]' || bail_out "no partition to play with"
printf '[poll]\ninterval = "200ms"\nidle_interval = "200ms"\n[notify]\nnot_running_after = "2s"\n' >"$LB_HOME/lbd.toml"
lbd_start

# --- refused at once ------------------------------------------------------------------------
refused() {	# WORDS OPTION…: with one line that says so
	words=$1
	shift
	exits 6 "refused: $*" lbctl submit "$@" -- true
	like "$err" "$words" "in words"
	[ "$(printf '%s\n' "$err" | wc -l)" = 1 ] || failed "in one line"
}
refused 'slurm.partition: there is no partition "nope".*debug, short' --set slurm.partition=nope
refused 'shut' --set slurm.partition=shut
refused 'debug has 2 nodes, the job asks for 5' --set slurm.nodes=5
refused 'short gives a job 1 node at most' --set slurm.partition=short --set slurm.nodes=2
refused 'short lets a job run for 10m.*asks for 1h' --set slurm.partition=short --set slurm.time=1h
refused 'slurm.constraint: warp' --set slurm.constraint=warp
refused '2 CPUs at most, the job asks for 99' --set slurm.cpus_per_task=99
refused 'GPUs at most, the job asks for 9' --set slurm.gpus_per_node=9
refused 'MB of memory at most' --set slurm.mem=900G
refused 'slurm.nodelist: n77' --set slurm.nodelist=n77
refused 'slurm.reservation: gala' --set slurm.reservation=gala
refused 'no partition "nope"' --dry-run --set slurm.partition=nope
printf '#!/bin/sh\n#SBATCH -p short -t 60\ntrue\n' >"$T/long.slurm"
exits 6 "a batch script, too" lbctl submit "$T/long.slurm"
is "$(ls "$LB_HOME/runs")" "" "no folder is left"
is "$(lbctl ls --all --json)" "[]" "and no run"
is "$(lbctl events --json)" "[]" "nor an event"
is "$(squeue -h | wc -l)" 0 "Slurm holds nothing either"

# What may start one day is accepted: a node is drained, a partition is down.
scontrol update nodename=n2 state=drain reason=fan	# one that is down comes back when its slurmd registers
ok "two nodes, one of them drained: accepted" \
	lbctl submit --name later --set slurm.nodes=2 --set slurm.time=5m -- true
wait_for 'lbctl why later --json | json limits.0.text | grep -q "n2 (drained: fan)"' 30
passed "why names the node that is away"
wait_for '[ "$(lbctl why later --json | json reason)" = Resources ]' 30 && passed "and that the job waits for it"
ok "a partition that is down: accepted" lbctl submit --name night --set slurm.partition=asleep -- true
wait_for '[ "$(lbctl why night --json | json reason)" = PartitionDown ]' 30
like "$(lbctl why night)" 'why +PartitionDown: its partition is down' "and why says so"
# as of the last poll, which may be older than that answer
wait_for 'lbctl status night | grep -q PartitionDown' 30
like "$(lbctl status night)" 'waits for +PartitionDown: its partition is down' "as does status"
lbctl kill --yes later night >/dev/null
run_reaches later killed 30
run_reaches night killed 30
scontrol update nodename=n2 state=resume
like "$(lbctl why night)" 'it is over \(killed\)' "what is over does not wait"

# --- a hole, and another partition -----------------------------------------------------------
stay='await "$LB_RUN_DIR/../../go"'
lbctl submit --name one --exclusive --set slurm.time=60m -- sh -c "$stay" >/dev/null
run_reaches one running 30
lbctl submit --name two --set slurm.nodes=2 --exclusive --set slurm.time=60m -- sh -c "$stay" >/dev/null
wait_for 'lbctl why two --json | json start_estimate | grep -q "^[0-9]"' 60
passed "Slurm's plan for a run that needs both nodes is told"
lbctl submit --name three --exclusive --set slurm.time=3h -- sh -c "$stay" >/dev/null
run_reaches three queued 30
wait_for 'lbctl why three --json | json sooner.0.time_minutes | grep -q "^[0-9]"' 30
why=$(lbctl why three --json)
is "$(printf '%s' "$why" | json jobs_ahead)" 1 "one job is ahead"
minutes=$(printf '%s' "$why" | json sooner.0.time_minutes)
ok "a shorter time would fit ($minutes minutes)" test "$minutes" -ge 50 -a "$minutes" -lt 60
is "$(printf '%s' "$why" | json sooner.0.set)" "slurm.time=${minutes}m" "in the words of --set"
is "$(printf '%s' "$why" | json sooner.1.partition)" other "and another partition is free"
like "$(lbctl why three)" 'sooner +now with a time limit of .* minutes' "people read it, too"
is "$(printf '%s' "$why" | grep -c 'reason [0-9]')" 0 "no number stands for a reason"

# The proposal is true.
lbctl hold three >/dev/null
run_reaches three held 30
exits 6 "settings that Slurm would refuse" lbctl restart three --set slurm.partition=nope
like "$err" 'slurm.partition: there is no partition "nope"' "are refused, as those of a submission"
ok "with that time" lbctl restart three --set "slurm.time=${minutes}m"
run_reaches three running 20
passed "it starts before the job that was ahead"
like "$(lbctl why three)" 'it does not wait: it runs' "a run that runs does not wait"
: >"$LB_HOME/go"
for run in one two three; do run_reaches $run completed 20; done

# --- a reservation -----------------------------------------------------------------------------
scontrol create reservation reservationname=service starttime=now+2hours duration=60 users=root \
	nodes='n[1-2]' flags=maint,ignore_jobs >"$T/reservation" 2>&1
lbctl submit --name four --set slurm.time=5h -- true >/dev/null
wait_for 'lbctl why four --json | json reservations.0.name | grep -q service' 30
wait_for 'lbctl why four --json | json sooner.0.time_minutes | grep -q "^[0-9]"' 30
minutes=$(lbctl why four --json | json sooner.0.time_minutes)
ok "what ends before the reservation would start now ($minutes minutes)" \
	test "$minutes" -ge 110 -a "$minutes" -lt 120
like "$(lbctl why four)" 'reserved +service: n\[1-2\]' "the reservation is named"
scontrol delete reservationname=service
run_reaches four completed 20

# --- what no other place has ---------------------------------------------------------------------
# Slurm plans a job as if it waited for none of these.
lbctl submit --name seated --set slurm.licenses=seat:1 --set slurm.time=5m -- sleep "$mark" >/dev/null
run_reaches seated running 20
lbctl submit --name stands --set slurm.licenses=seat:1 --set slurm.time=5m -- true >/dev/null
lbctl submit --name behind "--dependency=afterok:$(job_of seated)" --set slurm.time=5m -- true >/dev/null
for waits in stands=Licenses behind=Dependency; do
	wait_for '[ "$(lbctl why ${waits%=*} --json | json reason)" = ${waits#*=} ]' 30
	is "$(lbctl why ${waits%=*} --json | json sooner)" "[]" "${waits#*=}: neither another partition nor less time helps"
done
lbctl kill --yes --now seated stands behind >/dev/null

# --- without an answer ---------------------------------------------------------------------------
exits 3 "no such run" lbctl why nobody
lbctl submit --name five --set slurm.nodelist=n1 --begin=now+1hour -- true >/dev/null
wait_for '[ "$(lbctl why five --json | json reason)" = BeginTime ]' 30
cluster_signal slurmctld STOP
ok "Slurm is frozen: a run is accepted all the same" lbctl submit --name six -- true
cluster_signal slurmctld CONT
run_reaches six completed 20
lbctl hold five --reason 'not today' >/dev/null
run_reaches five held 30
like "$(lbctl why five)" 'holds it: not today; lbctl release' "who holds a run is named, with the reason"

# --- its partition is closed ---------------------------------------------------------------------
# Whoever submits is told so; a run that goes on is asked for again until it is open. So is one
# whose reservation is over: people may give it another.
reserve() {
	scontrol create reservation reservationname=ours starttime=now duration=60 users=root \
		nodes=n2 >"$T/reservation" 2>&1
}
reserve
lbctl submit --name nine --set slurm.reservation=ours --set slurm.time=5m --set restart.backoff_first=1s \
	-- sh -c '[ "$LB_ATTEMPT" = 1 ] || exit 0; sleep 1000' >/dev/null
wait_for 'lbctl events nine | grep -q " launch "' 20	# it has trained
lbctl submit --name early --set slurm.reservation=ours --set slurm.time=5m --begin=now+20minutes -- true >/dev/null
run_reaches early queued 20	# it has not
lbctl hold nine >/dev/null
lbctl hold early >/dev/null
run_reaches nine held 30
run_reaches early held 30
scontrol delete reservationname=ours
lbctl release nine >/dev/null
lbctl release early >/dev/null
wait_for 'lbctl why nine | grep -q "reservation is invalid"' 30
wait_for 'lbctl why early | grep -q "reservation is invalid"' 30
is "$(run_state early)" submitting "so does one that has not begun yet"
lbctl kill early >/dev/null
lbctl submit --name eight --set slurm.partition=other --set restart.in_place=0 --set restart.backoff_first=1s \
	-- sh -c '[ "$LB_ATTEMPT" = 1 ] || exit 0; until [ -e "$LB_RUN_DIR/fail" ]; do sleep 0.1; done; exit 3' >/dev/null
run_reaches eight running 20
scontrol update partitionname=other state=drain
refused 'other' --set slurm.partition=other
touch "$LB_HOME/runs/eight/fail"
wait_for 'lbctl why eight | grep -q "partition not available (inactive or drain)"' 30
# by then a job that cannot start would have used up its tries
wait_for '[ $(($(date +%s) - $(date -r "$LB_HOME/runs/eight/attempts/1/exit.json" +%s))) -gt 12 ]' 30
is "$(run_state eight) $(lbctl status eight --json | json attempts.#)" "submitting 2" "a relaunch waits for its partition to be open"
is "$(run_state nine) $(lbctl status nine --json | json attempts.#)" "submitting 2" "… and for its reservation to be there"
scontrol update partitionname=other state=up
reserve
run_reaches eight completed 40
run_reaches nine completed 40
scontrol delete reservationname=ours

# --- somebody replaces the comment of its job -----------------------------------------------------
# By it lbd knows its jobs: the run keeps its place in line, and a kill its hold.
lbctl submit --name ten --begin=now+1hour -- sleep 1000 >/dev/null
wait_for '[ "$(lbctl why ten --json | json reason)" = BeginTime ]' 30
job=$(lbctl status ten --json | json attempts.0.job_id)
scontrol update jobid="$job" comment="please be quick"
wait_for 'scontrol show job "$job" | grep -q "Comment=lbd1:[0-9a-f:]* please be quick"' 30 &&
	passed "a comment that somebody replaces gets lbd's token back"
is "$(run_state ten) $(lbctl status ten --json | json attempts.#)" "queued 1" "… and the run keeps its place"
lbctl kill ten >/dev/null
run_reaches ten killed 30
wait_for '[ "$(squeue -h -t PD -o %A | grep -cx "$job")" = 0 ]' 30 && passed "… until it is killed, and its job with it"

# --- it has begun, and stands still --------------------------------------------------------------
lbctl submit --name seven -- sleep 1000 >/dev/null
run_reaches seven running 20
job=$(lbctl status seven --json | json attempts.0.job_id)
scontrol suspend "$job" || bail_out "no job can be suspended here"
wait_for 'lbctl status seven | grep -q "waits for  *Suspended: its job has its nodes"' 20
is "$(lbctl why seven --json | json reason)" Suspended "a job that is suspended is told as that"
like "$(COLUMNS=100 lbctl top </dev/null)" '^seven +running .*waits: Suspended' "… in the view of all runs, too"
scontrol resume "$job"
wait_for 'lbctl why seven | grep -q "it does not wait: it runs"' 20 && passed "… until it goes on"
lbctl submit --name tasks --array=1-2%1 --wrap 'until [ -e "$LB_RUN_DIR/go" ]; do sleep 0.1; done' >/dev/null
run_reaches tasks running 20
job=$(lbctl status tasks --json | json attempts.0.job_id)
scontrol hold "${job}_2"
touch "$LB_HOME/runs/tasks/go"
wait_for 'lbctl why tasks | grep -q "why  *JobHeld"' 20 && passed "an array of which only a held task is left is told as that"
wait_for 'lbctl events tasks | grep -q "not_running .*held\|not_running .*holds"' 20 && passed "and warned of"
ok "lbctl release lets it go" lbctl release tasks
run_reaches tasks completed 40
like "$(lbctl events tasks)" ' release  *it was held in Slurm' "which is no failure where other tasks are over"

# --- held in Slurm, behind lbd's back -----------------------------------------------------------
lbctl submit --name more --array=1-2%1 --wrap 'until [ -e "$LB_RUN_DIR/go" ]; do sleep 0.1; done' >/dev/null
wait_for '[ "$(lbctl status more --json | json target_step)" = 2 ]' 30
job=$(lbctl status more --json | json attempts.0.job_id)
lbctl release more >/dev/null
scontrol uhold "${job}_2"
lbctl release more >/dev/null
wait_for '! squeue -h -r -j "$job" -o %r | grep -q Held' 20 && passed "… also while other tasks run"
wait_for 'lbctl events more | grep -q " release "' 20
is "$(lbctl events more | grep -c " release ")" 1 "a release is told of where there was something to release"
touch "$LB_HOME/runs/more/go"
run_reaches more completed 40
partition DOWN
lbctl submit --name plain -- true >/dev/null
wait_for 'lbctl why plain | grep -q PartitionDown' 20
job=$(lbctl status plain --json | json attempts.0.job_id)
scontrol uhold "$job"
wait_for '[ "$(lbctl status plain --json | json waits_for)" = JobHeldUser ]' 20
lbd_kill9
lbd_start
wait_for '[ "$(lbctl status plain --json | json waits_for)" = JobHeldUser ]' 20
lbctl release plain >/dev/null
wait_for 'lbctl why plain | grep -q PartitionDown' 20 && passed "… and a job that is no array"
like "$(lbctl events plain)" ' release  *it was held in Slurm' \
	"which was held moments after lbd had released it, and stayed so, also when lbd began anew"
partition UP
run_reaches plain completed 40
done_testing
