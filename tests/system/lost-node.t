#!/bin/sh
# SPDX-License-Identifier: MIT
# A node of several falls silent, with all its processes, while Slurm believes in it for another
# five minutes: it is known in seconds, a spare node takes its place in the same job, or the run
# goes on in another one, and what the node does when it wakes up counts nowhere. So with a node
# that srun cannot reach.
. "$(dirname "$0")/lib.sh"
. "$suite/lost.sh"

lost_start 4 2

# The job's second node: the first has lbrun.
second_of() { # second_of RUN LAUNCH
	trains "$1" "$2"
	second=$(sed -n "s/^$2 1 \(n[0-9]*\) .*/\1/p" "$T/steps.$1" | head -n 1)
}
woken() { # woken RUN LAUNCH NODE STEPS: nothing is left of that launch, within a second
	wait_for "[ -z \"\$(of_launch $1 $2)\" ]" 20 && [ "$(steps_of "$1" "$2" "$3")" -le $(($4 + 10 * patience)) ]
}

# --- a spare takes its place, in the same job -----------------------------------------------------
exits 2 "spares are for several nodes" lbctl submit --set restart.spare_nodes=1 --set slurm.nodes=1 "$T/job.toml"
like "$err" "restart.spare_nodes: needs slurm.nodes of at least 2" "which is told"
like "$(lbctl submit --dry-run --name s --set restart.spare_nodes=1 "$T/job.toml")" 'nodes *=* *3' "a dry run shows the nodes that the job takes"
ok "a run on two nodes, and one to spare" lbctl submit --name s --set restart.spare_nodes=1 "$T/job.toml"
second_of s 1.1
is "$(squeue -h -o %N) $second $(steps_of s 1.1 n3)" "n[1-3] n2 0" "the spare does nothing"
on_node n2 STOP
frozen_ms=$(now_ms)
wait_for '[ "$(steps_of s 1.2 n3)" -gt 0 ]' 30
back_ms=$(($(now_ms) - frozen_ms))
diag "$((back_ms / 1000)).$((back_ms % 1000 / 100)) s from the node's silence to the first new step, by a spare"
ok "the next launch has the spare, in seconds" in_time $back_ms 8000
silent=$(steps_of s 1.1 n2)
on_node n2 CONT
ok "the node wakes up: its rank ends in a moment" woken s 1.1 n2 "$silent"
events=$(lbctl events s)
like "$events" "node_lost +n2: not heard for $timeout_s s" "it is told which node"
like "$events" 'spare_node +a spare node takes the place of n2: the next launch is on n1,n3; 0 left' "and which took its place"
like "$events" "launch_end +launch 1: node_fail: n2 was not heard for $timeout_s s" "how the launch ended"
is "$(run_state s) $(attempts s)" "running 1" "it is the same attempt"
like "$(head -n 1 "$T/steps.s") $(grep '^1.2' "$T/steps.s" | head -n 1)" ' [1-9][0-9]*$' "and goes on from its checkpoint"
is "$(squeue -h -o %N)" "n[1,3]" "the lost node is Slurm's again"
ok "slurm's files of the smaller job are not left behind" [ -z "$(find "$T" -name 'slurm_job_*')" ]
lbctl kill s >/dev/null
run_reaches s killed 30
lbctl nodes forgive n2 >/dev/null

# --- without a spare, in another job --------------------------------------------------------------
ok "a run on two nodes" lbctl submit --name r "$T/job.toml"
second_of r 1.1
lost=$second
on_node "$lost" STOP
frozen_ms=$(now_ms)
wait_for 'grep -q "^2.1 1 " "$T/steps.r"' 30
back_ms=$(($(now_ms) - frozen_ms))
diag "$((back_ms / 1000)).$((back_ms % 1000 / 100)) s from the node's silence to the first new step"
ok "it goes on elsewhere in seconds" in_time $back_ms 10000
events=$(lbctl events r)
like "$events" "node_lost +$lost: not heard for $timeout_s s" "it is told which node"
like "$events" "attempt_end +attempt 1: node_fail: $lost was not heard for $timeout_s s" "and how the attempt ended"
like "$events" "node_suspect +$lost is avoided for .*: node_fail" "the node is avoided"
is "$(echo "$events" | grep -c ' is avoided ')" 1 "and no other"
unlike "$(sinfo -h -N -n "$lost" -o %T)" "down|[*]" "while Slurm believes in it"

silent=$(steps_of r 1.1 "$lost")
on_node "$lost" CONT
ok "it wakes up: its rank ends in a moment" woken r 1.1 "$lost" "$silent"

# --- srun cannot reach a node ---------------------------------------------------------------------
lbctl nodes forgive "$lost" >/dev/null
second_of r 2.1
cluster_signal "slurmd.$second" KILL
# shellcheck disable=SC2046 # several
kill -KILL $(grep -lszxF "SLURMD_NODENAME=$second" $(pgrep -xf "sh $T/train.sh" | sed 's,.*,/proc/&/environ,') | cut -d / -f 3)
wait_for '[ "$(attempts r)" = 3 ]' 60
events=$(lbctl events r)
like "$events" "node_lost +$second: srun cannot reach it" "a node that srun cannot reach is told"
like "$events" "attempt_end +attempt 2: node_fail: .*Task launch for .* failed on node $second" "the attempt ends with it"
like "$events" "node_suspect +$second is avoided" "and the node is avoided"

# --- nobody waits for a node that is frozen -------------------------------------------------------
second_of r 3.1
lost=$second
on_node "$lost" STOP
lbctl kill --now r >/dev/null
run_reaches r killed 30
like "$(cat "$LB_HOME/runs/r/attempts/3/exit.json")" '"left_ranks": ?true' "a later attempt knows that a rank may run on"
on_node "$lost" CONT
# Not lbrun's: a script starts its ranks by itself.
lbctl submit --name w --set run.launcher=none --set restart.max_without_progress=1 --set restart.in_place=0 -- \
	sh -c 'echo "srun: error: Task launch for StepId=7.0 failed on node n1: Communication connection failure" >&2; exit 3' >/dev/null
run_reaches w failed 30
unlike "$(lbctl events w)" 'node_lost|node_fail' "what a srun of the script says blames no node"
done_testing
