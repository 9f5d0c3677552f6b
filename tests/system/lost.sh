# shellcheck shell=sh disable=SC2034,SC2154 # the tests use what is set here
# SPDX-License-Identifier: MIT
# lost.sh - nodes that fall silent, for the lost-*.t tests, behind lib.sh. Slurm believes in them
# for five minutes more.
#
#   lost_start NODES NODES_OF_A_RUN     # the cluster, lbd, $timeout_s, $T/job.toml
#   trains RUN LAUNCH [STEPS]           # until its last rank made more than these; LAUNCH is
#                                       ATTEMPT.LAUNCH
#   on_node NODE STOP|CONT|KILL         # all that runs there, its slurmd first
#
# Each rank writes a line a step to $T/steps.RUN: its launch, rank, node and step. The first rank
# saves at each fifth. While $T/slow.RUN exists, a save of the first attempt goes on.
lost_start() {
	MC_SLURMDTIMEOUT=300
	MASTER_ADDR=127.0.0.1
	export MC_SLURMDTIMEOUT MASTER_ADDR
	printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
	cluster_start "$1"
	lbd_start
	timeout_s=$((2 * patience)) # a lease is shorter: a slow machine must not stop whom it means to watch
	last_rank=$(($2 - 1))
	cat >"$T/train.sh" <<END
step=\${LB_RESUME_FROM##*-}
step=\${step:-0}
save() {
	exec 3>>"\$1/weights"
	while [ "\$LB_ATTEMPT" = 1 ] && [ -e "$T/slow.\$LB_RUN" ]; do
		echo "\$LB_ATTEMPT" >&3
		sleep 0.02
	done
	echo "\$LB_ATTEMPT" >&3
	touch "\$1/complete"
}
while [ "\$step" -lt 1000000 ]; do
	step=\$((step + 1))
	echo "\$LB_ATTEMPT.\$LB_LAUNCH \$SLURM_PROCID \$SLURMD_NODENAME \$step" >>"$T/steps.\$LB_RUN"
	if [ "\$SLURM_PROCID\$((step % 5))" = 00 ]; then
		mkdir -p "\$LB_CHECKPOINT_DIR/step-\$step"
		save "\$LB_CHECKPOINT_DIR/step-\$step"
	fi
	sleep 0.1
done
END
	cat >"$T/job.toml" <<END
[run]
command = ["sh", "$T/train.sh"]
[slurm]
nodes = $2
ntasks_per_node = 1
mem = "100M"
[watch]
node_timeout = "${timeout_s}s"
[checkpoint]
pattern = "step-{step}"
complete_when = "complete"
END
}

trains() { wait_for "[ \"\$(grep -c '^$2 $last_rank ' '$T/steps.$1')\" -gt ${3:-10} ]" 60; }
steps_of() { grep -c "^$2 .* $3 " "$T/steps.$1" 2>/dev/null; } # steps_of RUN LAUNCH NODE
# Nodes of other tests have the same names.
ours() { grep -lsazF "${T:?}/" /proc/[0-9]*/environ; }
# shellcheck disable=SC2046 # several
of_node() { grep -lsaxzF "SLURMD_NODENAME=$1" $(ours) </dev/null | cut -d / -f 3; }
# shellcheck disable=SC2046
of_launch() { # of_launch RUN LAUNCH: its processes
	grep -lszxF "LB_LAUNCH=${2#*.}" $(grep -lszxF "LB_ATTEMPT=${2%.*}" $(grep -lszxF "LB_RUN=$1" $(ours) </dev/null) </dev/null) </dev/null
}
on_node() { # on_node NODE SIGNAL: all that runs there, its slurmd first
	cluster_signal "slurmd.$1" "$2"
	# shellcheck disable=SC2046 # several
	kill -s "$2" $(of_node "$1") 2>/dev/null
}
