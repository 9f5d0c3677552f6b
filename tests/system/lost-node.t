#!/bin/sh
# SPDX-License-Identifier: MIT
# A node of several falls silent, with all its processes, while Slurm believes in it for another five minutes: it is
# known in seconds, the run goes on without it, and what the node does when it wakes up counts nowhere.
. "$(dirname "$0")/lib.sh"

MC_SLURMDTIMEOUT=300
MASTER_ADDR=127.0.0.1
export MC_SLURMDTIMEOUT MASTER_ADDR
printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
cluster_start 3
lbd_start

# Each rank writes a line a step, the first saves now and then.
cat >"$T/train.sh" <<END
step=\${LB_RESUME_FROM##*-}
step=\${step:-0}
while [ "\$step" -lt 1000000 ]; do
	step=\$((step + 1))
	echo "\$LB_ATTEMPT.\$LB_LAUNCH \$SLURM_PROCID \$SLURMD_NODENAME \$step" >>"$T/steps.\$LB_RUN"
	if [ "\$SLURM_PROCID\$((step % 5))" = 00 ]; then
		mkdir -p "\$LB_CHECKPOINT_DIR/step-\$step"
		touch "\$LB_CHECKPOINT_DIR/step-\$step/complete"
	fi
	sleep 0.1
done
END
cat >"$T/job.toml" <<END
[run]
command = ["sh", "$T/train.sh"]
[slurm]
nodes = 2
ntasks_per_node = 1
mem = "100M"
[watch]
node_timeout = "2s"
[checkpoint]
pattern = "step-{step}"
complete_when = "complete"
END
steps_of() { grep -c "^$2 .* $3 " "$T/steps.$1" 2>/dev/null; }
attempts() { lbctl status "$1" --json | json attempts.#; }
# All that runs on a node, its slurmd first.
on_node() { # on_node NODE SIGNAL
	cluster_signal "slurmd.$1" "$2"
	# shellcheck disable=SC2046 # several
	kill -s "$2" $(grep -lsaxzF "SLURMD_NODENAME=$1" /proc/[0-9]*/environ | cut -d / -f 3) 2>/dev/null
}

ok "a run on two nodes" lbctl submit --name r "$T/job.toml"
wait_for '[ "$(steps_of r 1.1 n2)" -gt 10 ]' 40
on_node n2 STOP
frozen_ms=$(now_ms)
wait_for '[ "$(steps_of r 2.1 n3)" -gt 0 ]' 30
back_ms=$(($(now_ms) - frozen_ms))
diag "$((back_ms / 1000)).$((back_ms % 1000 / 100)) s from the node's silence to the first new step"
ok "it goes on elsewhere in seconds" in_time $back_ms 10000
events=$(lbctl events r)
like "$events" 'node_lost +n2: not heard for 2 s' "it is told which node"
like "$events" 'attempt_end +attempt 1: node_fail: n2 was not heard for 2 s' "and how the attempt ended"
like "$events" 'node_suspect +n2 is avoided for .*: node_fail' "the node is avoided"
unlike "$events" 'n1 is avoided' "and no other"
unlike "$(sinfo -h -N -n n2 -o %T)" "down|[*]" "while Slurm believes in it"

silent=$(steps_of r 1.1 n2)
on_node n2 CONT
ok "it wakes up: its rank ends" wait_for '! grep -lsaxzF LB_ATTEMPT=1 /proc/[0-9]*/environ' 20
ok "and made no step that matters" [ "$(steps_of r 1.1 n2)" -le $((silent + 1)) ]
lbctl kill r >/dev/null
run_reaches r killed 30
done_testing
