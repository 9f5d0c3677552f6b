#!/bin/sh
# SPDX-License-Identifier: MIT
# One training on four ranks of two nodes, over MPI: one rank does not begin, one is killed, one
# stands still, a node dies, and the last weights are those of an undisturbed training on one rank.
. "$(dirname "$0")/lib.sh"
if [ ! -e "$B/liblbmpi.so" ]; then
	echo "1..0 # SKIP built without MPI (libmpich-dev)"
	exit 0
fi
MC_SLURMDTIMEOUT=6
export MC_SLURMDTIMEOUT
cluster_start 2
lbd_start
cd "$T" || exit 1

. "$src/tests/ranks/training.sh"
ranks_tokens lbworker .
{
	ranks_config "$T" 300 5 20
	cat <<-END
		keep_latest_k = 0
		[device]
		name = "cpu"
		[slurm]
		nodes = 2
		ntasks_per_node = 2
		mpi = "pmi2"
		mem = "1G"
		[restart]
		backoff_first = "100ms"
	END
} >ranks.toml
LB_CHECKPOINT_DIR=$T/one lbworker train ranks.toml >one.log 2>&1
ok "one rank trains it" [ -e "$T/one/step-00000300/model.safetensors" ]

# Ranks of a run of this test, and what watches them, that have NAME=VALUE in their environment.
pids_of() { # pids_of RUN NAME=VALUE
	for pid in $(pgrep -f "^$B/lbrun --rank|^$B/lbworker train|^lbworker train"); do
		tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null >environ
		grep -qx "LB_RUN_DIR=$LB_HOME/runs/$1" environ && grep -qx "$2" environ && echo "$pid"
	done
}
# Every rank of RUN stands still once it is past STEP of the launch that began behind a line of that
# PATTERN: what is done then comes in time on a quick machine, too.
still_at() { # still_at RUN STEP PATTERN
	wait_for "stand_still $1 && lbctl logs $1 2>/dev/null | sed '1,/$3/d' | grep -q '] step $2/' || { go_on; false; }" 60
}
stand_still() {
	standing=
	grep -lszxF "LB_RUN_DIR=$LB_HOME/runs/$1" /proc/[0-9]*/environ >environs
	while read -r environ; do
		pid=${environ#/proc/}
		pid=${pid%/environ}
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != lbworker ] || standing="$standing $pid"
	done <environs
	# shellcheck disable=SC2086 # several
	[ -n "$standing" ] && kill -STOP $standing
}
# shellcheck disable=SC2086 # several, and some may be gone
go_on() { [ -z "$standing" ] || kill -CONT $standing 2>/dev/null || :; }
# Of those the one of that number; it is not to go on with the others.
rank() {
	for pid in $standing; do
		if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "PMI_RANK=$1"; then
			standing=$(echo " $standing " | sed "s/ $pid / /")
			found=$pid
			return
		fi
	done
	false
}
ok "four are submitted" lbctl submit --name four ranks.toml
still_at four 30 "ranks over MPI" && rank 2 && kill -KILL "$found"
go_on
ok "one is killed: the next launch goes on" \
	wait_for 'lbctl logs four | grep -q "resumed from .*/step-"' 60
still_at four 120 "resumed from" && rank 1
go_on
ok "one stands still: the run ends well all the same" \
	wait_for '[ "$(run_state four)" = completed ]' 120
status=$(lbctl events four
	lbctl logs four | grep 'lbrun: \|lbworker: \|slow')
like "$status" "crash: rank 2 on n2: killed by signal 9" "it is told that rank 2 was killed"
# who waited for it in the middle of a sum is silent, too
like "$status" "launch 2: error: .*: rank 1 on n1(, [23] on n2)* did not answer for 5 s" "and that it was rank 1 that stood still"
for file in model.safetensors optimizer.safetensors train_state.json; do
	ok "$file is that of one rank, to the bit" cmp "$T/one/step-00000300/$file" \
		"$LB_HOME/runs/four/checkpoints/step-00000300/$file"
done

# --- each node has a stage of its own -------------------------------------------------------------
mkdir -p "$T/stage/n1" "$T/stage/n2"
ok "the same by way of the nodes' stages" lbctl submit --name staged --set "checkpoint.stage=$T/stage/%n" ranks.toml
still_at staged 30 "ranks over MPI" && rank 2 && kill -KILL "$found"
go_on
ok "a rank is killed, and the run ends well" wait_for '[ "$(run_state staged)" = completed ]' 120
for file in model.safetensors optimizer.safetensors; do
	ok "$file is that of one rank, to the bit" cmp "$T/one/step-00000300/$file" \
		"$LB_HOME/runs/staged/checkpoints/step-00000300/$file"
done
like "$(lbctl logs staged)" "resumed from $LB_HOME/runs/staged/checkpoints/step-" "from what the nodes had brought together"
# lbrun clears the other nodes after it has said that the run is done
ok "nothing is left on either node" wait_for '[ -z "$(find "$T/stage" -mindepth 3 -maxdepth 3)" ]' 20
is "$(lbctl events staged | grep -c 'copied it died')" 0 "and what was broken off was no failure"

ok "the nodes of a run are checked, over MPI" sh -c 'lbctl check four --name well -- --slow 0 --memory-mib 1 --disk-mib 1 --device cpu >check.log 2>&1; lbctl logs well >>check.log'
like "$(cat check.log)" "\[n1:0\] OK  cpu: product" "the first is well"
like "$(cat check.log)" "\[n2:1\] OK  cpu: product" "and the second"
like "$(cat check.log)" "all-reduce of 2 ranks over MPI" "with a table of sums"
lbctl check --nodes 'n[1-2]' --name broken -- --folder /none --device cpu >check.log 2>&1
lbctl logs broken >>check.log
like "$(cat check.log)" "\[n2:1\] BROKEN: disk: /none: No such file" "a node that is broken is named"
like "$(lbctl check --nodes 'n[1-4096]' 2>&1)" "check: --nodes: at most 4095 nodes at once" "of more nodes it is said"
like "$(lbctl status broken)" "exit status 5" "by an exit status of its own, and nothing is tried again"

# --- slices, shared sequences and stages, over MPI: the bits of the same ranks on one machine -----
sed 's/^steps = .*/steps = 4/' ranks.toml >ways.toml
for ways in "tensor_parallel_degree=2 context_parallel_degree=2" "pipeline_parallel_degree=2 tensor_parallel_degree=2" \
	"pipeline_parallel_degree=2 data_parallel_replicate_degree=2"; do
	sets=
	options=
	for way in $ways; do
		sets="$sets --set parallelism.$way"
		options="$options --parallelism.$way"
	done
	number=$((${number:-0} + 1))
	name=way-$number
	# shellcheck disable=SC2086 # words
	LB_CHECKPOINT_DIR=$T/$name lbworker train ways.toml --ranks 4 $options >"$name.log" 2>&1
	# shellcheck disable=SC2086 # words
	lbctl submit --name "$name" $sets ways.toml >/dev/null
	run_reaches "$name" completed 60
	for file in model.safetensors optimizer.safetensors train_state.json; do
		ok "$ways: $file" cmp "$T/$name/step-00000004/$file" "$LB_HOME/runs/$name/checkpoints/step-00000004/$file"
	done
done

# --- one rank is told something else --------------------------------------------------------------
sed 's/^seq_len = .*/seq_len = 32/' ranks.toml >other.toml
cat >odd.sh <<-END
	[ "\$SLURM_PROCID" != 3 ] || exec lbworker train "$T/other.toml"
	exec lbworker train "$T/ranks.toml"
END
lbctl submit --name odd --set slurm.nodes=2 --set slurm.ntasks_per_node=2 \
	--set slurm.mpi=pmi2 --set slurm.mem=1G --set restart.max_without_progress=1 -- sh odd.sh >odd.log
run_reaches odd failed 60
like "$(lbctl events odd)" "rank 3 [(].*[)] has another config than rank 0" "another config on one rank is told, with the rank"
is "$(find "$LB_HOME/runs/odd/checkpoints" -name "step-*" 2>/dev/null | wc -l)" 0 "and nothing is published"

# --- the kernel runs out of memory for one rank: its control group, where we may make one, is too
# small ---
group=
for folder in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	[ -z "$group" ] && [ -e "$folder/cgroup.procs" ] && mkdir "$folder/lb-ranks-$$" 2>/dev/null &&
		group=$folder/lb-ranks-$$
done
if [ -n "$group" ] && for limit in memory.limit_in_bytes memory.max; do
	[ ! -e "$group/$limit" ] || echo 8M >"$group/$limit"
done; then
	cat >oom.sh <<-END
		[ "\$SLURM_PROCID" != 3 ] || { echo \$PPID >$group/cgroup.procs && echo \$\$ >$group/cgroup.procs; }
		exec lbworker train "$T/ranks.toml"
	END
	lbctl submit --name oom --set slurm.nodes=2 --set slurm.ntasks_per_node=2 \
		--set slurm.mpi=pmi2 --set slurm.mem=1G --set restart.max_without_progress=1 -- sh oom.sh >oom.log
	run_reaches oom failed 60
	like "$(lbctl events oom)" "launch 1: oom: rank 3 on n2: killed by signal 9 [(]SIGKILL[)]: the kernel ran out of memory for it" \
		"what the kernel kills is told to be out of memory, with rank and node"
	is "$(find "$LB_HOME/runs/oom/checkpoints" -name "step-*" 2>/dev/null | wc -l)" 0 "and nothing is published"
else
	passed "out of memory # SKIP no control group for memory can be made here"
fi
[ -z "$group" ] || wait_for "rmdir $group" 30

cat >late.sh <<-END
	[ "\$SLURM_PROCID" != 3 ] || exec sleep 300
	exec lbworker train "$T/ranks.toml" --comm.init_timeout_seconds 12
END
ok "one never begins" lbctl submit --name late --set slurm.nodes=2 --set slurm.ntasks_per_node=2 \
	--set slurm.mpi=pmi2 --set slurm.mem=1G --set restart.max_without_progress=1 -- sh late.sh
run_reaches late failed 60
like "$(lbctl events late)" "launch 1: error: .*: rank 3 on n2 did not begin within 12 s" "it is told which"

# --- a node dies: it goes on with the other, and with both once there are two again ---------------
sed 's/^steps = .*/steps = 900/' ranks.toml >elastic.toml
LB_CHECKPOINT_DIR=$T/whole lbworker train elastic.toml >whole.log 2>&1
ok "a run that does with one node" lbctl submit --name elastic --set restart.min_nodes=1 \
	--set restart.fewer_after=1s elastic.toml
wait_for 'lbctl logs elastic 2>/dev/null | grep -q "] step 30/"' 60
"$src/etc/minicluster" kill-node "$cluster" n2
# shellcheck disable=SC2046 # several
kill -KILL $(pids_of elastic SLURMD_NODENAME=n2)
wait_for 'lbctl events elastic | grep -q fewer_nodes' 90
like "$(lbctl status elastic)" "why +1 of 2 nodes [(]restart.min_nodes = 1[)]" "status says so as long as it lasts"
like "$(lbctl events elastic | grep "attempt_end .*node_fail")" "(n2 was not heard|failed on node n2|: n2$)" "which node failed is told"
unlike "$(lbctl events elastic)" "n1 is avoided for [^:]*: node_fail" "and the other is not avoided for it"
ok "it trains on one node" wait_for 'lbctl logs elastic | sed "1,/2 ranks over MPI/d" | grep -q "] step "' 60
# It stands still while another job gets in line for both nodes, and trains only a sixth of the time
# as long as it is looked at: a quick machine would be done before.
still=$(pids_of elastic SLURMD_NODENAME=n1)
# shellcheck disable=SC2086 # several
kill -STOP $still
waits=$(sbatch --parsable --nodes=2 --exclusive --output=/dev/null --wrap=true)
lbctl nodes forgive n2 >/dev/null
"$src/etc/minicluster" start-node "$cluster" n2
wait_for 'sinfo -h -N -n n2 -o %T | grep -Eqx "idle|planned"' 60
: >trickling
# shellcheck disable=SC2086 # several
while [ -e trickling ]; do
	kill -CONT $still
	sleep 0.05
	kill -STOP $still
	sleep 0.25
done 2>/dev/null &
trickle=$!
ok "the other is back, but somebody waits for it" wait_for 'lbctl why elastic | grep -q "does not grow back yet: jobs wait in line: 1"' 60
unlike "$(lbctl events elastic)" "growing_back" "so it trains on"
scancel "$waits"
ok "nobody waits any more: it ends behind a checkpoint" wait_for 'lbctl events elastic | grep -q growing_back' 60
rm -f trickling
wait $trickle
# shellcheck disable=SC2086 # several, and some may be gone
kill -CONT $still 2>/dev/null
run_reaches elastic completed 120
events=$(lbctl events elastic)
like "$events" "growing_back +the missing nodes are free [(]1 of 2[)]: attempt [0-9]+ ends behind its checkpoint of step [0-9]+" \
	"the ledger has why"
like "$events" "attempt_end +attempt [0-9]+: preempted: stop ordered by lbd: the missing nodes are free" "and how"
like "$events" "attempt_end +attempt [0-9]+: node_fail" "the ledger has that a node failed"
like "$events" "attempt_end +attempt [0-9]+: launch_fail: too few nodes became free; the next attempt takes fewer" \
	"that there were not enough"
like "$events" "fewer_nodes +1 of 2 nodes [(]restart.min_nodes = 1[)]" "and that one had to do"
is "$(lbctl status elastic --json | json attempts | tr -d ' \n' | grep -o '"nodes":\[[^]]*\]' | tail -n 1)" \
	'"nodes":["n1","n2"]' "in the end there were two"
for file in model.safetensors optimizer.safetensors train_state.json; do
	ok "$file is that of one rank, to the bit" cmp "$T/whole/step-00000900/$file" \
		"$LB_HOME/runs/elastic/checkpoints/step-00000900/$file"
done
unlike "$events" "checkpoint_suspect" "no checkpoint was blamed for a node that was gone"
diag "$events"
done_testing
