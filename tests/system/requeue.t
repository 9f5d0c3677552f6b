#!/bin/sh
# SPDX-License-Identifier: MIT
# An administrator sends a job back into the queue, held or not: the run goes on in another attempt,
# the old job never starts a second trainer, and nothing counts against the run.
. "$(dirname "$0")/lib.sh"


printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
cluster_start 2
lbd_start

cat >"$T/train.sh" <<END
echo "\$LB_ATTEMPT \$\$" >>$T/starts
exec sleep 1000
END
for how in requeue requeuehold; do
	: >"$T/starts"
	lbctl submit --name "$how" --set restart.max_without_progress=1 -- sh \
		"$T/train.sh" >/dev/null
	wait_for '[ -s "$T/starts" ]' 30
	first=$(job_of "$how" 0)
	read -r _ pid <"$T/starts"
	scontrol update jobid="$first" requeue=1	# lbd asks for none
	scontrol "$how" "$first"
	wait_for '[ "$(wc -l <"$T/starts")" = 2 ] && [ "$(run_state "$how")" = running ]' 25
	is "$(lbctl status "$how" --json | json attempts.0.cause)" preempted \
		"$how: the attempt ended as preempted"
	is "$(attempts "$how")" 2 "… and there is a second one"
	is "$(lives "$pid" && echo lives)" "" "… the first trainer is gone"
	[ "$how" != requeue ] || scontrol update jobid="$first" starttime=now 2>/dev/null
	wait_for '[ -z "$(squeue -h -j "$first" 2>/dev/null)" ]' 60
	is "$(sort -u "$T/starts" | wc -l)" 2 "… the old job went without starting a third"
	is "$(run_state "$how")" running "… and the run runs"
	lbctl kill --now "$how" >/dev/null
	run_reaches "$how" killed 20
done
is "$(json kill_wait_ms <"$LB_HOME/runs/requeuehold/attempts/2/attempt.json")" 5000 \
	"lbrun knows how long this Slurm waits before it kills"
done_testing
