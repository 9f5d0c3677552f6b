#!/bin/sh
# SPDX-License-Identifier: MIT
# ranks.t - one training in several processes: the same bits as on one, an end for all when one
# fails, and one line for what does not fit. make check-ranks has every way of sharing.
. "$(dirname "$0")/trainer.sh"

sh tests/ranks/check.sh short >"$T/out" 2>"$T/err"
ok $? "the same bits on 1, 2, 3 and 4 ranks, and not without what makes it so"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

sh tests/ranks/gather.sh short >"$T/out" 2>"$T/err"
ok $? "weights that go to other ranks as FP8: the same bits, fewer bytes, and a scale of a rank's own is seen"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

sh tests/ranks/parallel.sh short >"$T/out" 2>"$T/err"
ok $? "slices of a model, and of sequences, on several ranks: gradients agree with one rank's, checkpoints with any layout"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

# How long a rank may be silent, and what comes of that may take: a busy machine lets one wait.
patience=${LB_PATIENCE:-4}
awk 'BEGIN { srand(3); for (i = 0; i < 30000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
	>"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || exit 1
cat >"$T/long.toml" <<-END
	[model]
	flavor = "debugmodel"
	[training]
	dataset_path = "$T/text.tokens"
	local_batch_size = 1
	seq_len = 16
	steps = 1000000
	[comm]
	train_timeout_seconds = $patience
	[checkpoint]
	interval = 20
	[metrics]
	log_freq = 1
	peak_tflops = 1
END

# Ranks that train, their numbers in $first and $second, once step 3 is done.
begin() { # begin FOLDER
	LB_CHECKPOINT_DIR=$T/$1 "$B/lbworker" train "$T/long.toml" --device cpu --ranks 2 \
		>"$T/log" 2>"$T/err" &
	worker=$!
	for _ in $(seq $((300 * patience))); do
		grep -q '^step 3/' "$T/log" && break
		sleep 0.1
	done
	first=$(pgrep -P $worker | sed -n 1p)
	second=$(pgrep -P $worker | sed -n 2p)
}
# Waits for its end, of which it says $status and how many seconds it took.
end() {
	before=$(date +%s)
	wait $worker
	status=$?
	worker=
	seconds=$(($(date +%s) - before))
}

begin killed
kill -KILL "$second"
end
[ "$status $(cat "$T/err")" = "1 lbworker: rank 1 was killed by signal 9" ] && [ "$seconds" -le $((3 * patience)) ]
ok $? "one is killed: all end, and it is said which"

begin frozen
kill -STOP "$first"
end
[ "$status $(sed 's/step [0-9]*: //' "$T/err")" = "1 lbworker: rank 1: rank 0 did not answer for $patience s" ] && [ "$seconds" -le $((4 * patience)) ]
ok $? "one stands still: all end, soon after the deadline"
! pgrep -f "$T/long.toml" >/dev/null
ok $? "and none is left"

# What takes longer than a rank may be silent: a save that is waited for, one that the next waits
# for, and what comes before the first step (tests/ranks/controls.c).
slowly() { # slowly FOLDER [OPTION...]
	slow_folder=$1
	shift
	LB_CHECKPOINT_DIR=$T/$slow_folder "$program" train "$T/long.toml" --device cpu --ranks 2 --training.steps 4 \
		--checkpoint.interval 2 "$@" >"$T/$slow_folder.log" 2>"$T/$slow_folder.err" &
}
program=$B/lbworker
export LB_FAILPOINT="manifest.before:delay:$((3 * patience / 2))s@1"
slowly waited --checkpoint.async_mode disabled
waited=$!
slowly behind
behind=$!
unset LB_FAILPOINT
program=$B/controls/lbworker
LB_CONTROL=late LB_LATE=$((3 * patience / 2)) slowly late
late=$!
for slow in "$waited waited" "$behind behind"; do
	wait "${slow% *}" || sed "s/^/${slow#* }: /" "$T/${slow#* }.err"
done >"$T/out"
[ ! -s "$T/out" ] && grep -q '^step 4 waited [1-9].* s for the checkpoint before' "$T/behind.log"
ok $? "a checkpoint may take longer to write than a rank may be silent"
sed 's/^/# /' "$T/out"
wait $late
ok $? "and a rank longer to begin"
LB_CONTROL=late-search LB_LATE=$((3 * patience / 2)) slowly behind --training.steps 5 \
	--comm.init_timeout_seconds "$patience"
wait $! && grep -q '^resumed from .* at step 4' "$T/behind.log"
ok $? "and to find what to go on from"

# Each rank's times, and its trace of a step; over a slow link, at which nobody waits who can
# compute (tests/ranks/controls.c).
traced() { # traced CONTROL: $overlap, milliseconds of exchanges beside operations
	rm -rf "$T/dump"
	LB_CONTROL=$1 LB_LINK=3000 LB_CHECKPOINT_DIR=$T/seen-$1 "$B/controls/lbworker" train "$T/long.toml" --device cpu \
		--ranks 2 --training.steps 4 --training.seq_len 256 --training.local_batch_size 4 --job.dump_folder "$T/dump" --metrics.enable_tensorboard true \
		--profiling.enable_profiling true --profiling.profile_freq 3 --profiling.enable_memory_snapshot true >"$T/log" 2>"$T/err" &&
		"$B/lbworker" trace summary "$T/dump/profile_traces" >"$T/summary" &&
		overlap=$(sed -n 's/^  overlap *\([0-9]*\)\..*/\1/p' "$T/summary")
}
traced none &&
	grep -c '"own_ms":\[[0-9.e-]*,[0-9.e-]*\],"data_ms":\[[0-9.e-]*,[0-9.e-]*\]' "$T"/dump/tb/ranks.jsonl >"$T/times" &&
	[ "$(cat "$T/times")" -ge 2 ] &&
	grep -q '"distributedInfo":{"rank": 1,"world_size": 2}' "$T"/dump/profile_traces/iteration_3/rank1.*.json &&
	grep -q '"rank": 0,"world_size": 2' "$T"/dump/profile_traces/iteration_3/rank0.*.json
ok $? "each rank's times and trace"
for rank in 0 1; do # each is whole, and has the set-up and four steps
	[ "$(sed -n '$p' "$T/dump/memory_snapshot/iteration_1/rank${rank}_memory.json")" = "]" ] &&
		[ "$(grep -c '"name":"memory (MiB)"' "$T/dump/memory_snapshot/iteration_1/rank${rank}_memory.json")" -ge 5 ] &&
		grep -q "\"name\":\"rank $rank\"" "$T/dump/memory_snapshot/iteration_1/rank${rank}_memory.json" || echo "rank $rank"
done >"$T/log" 2>"$T/err"
[ ! -s "$T/log" ]
ok $? "and a timeline of its memory"
grep -q '"name":"exchange","cat":"cpu_op","pid":0,"tid":1,' "$T"/dump/profile_traces/iteration_3/rank1.*.json &&
	"$B/lbworker" trace summary "$T/dump" >"$T/log" 2>"$T/err" && grep -q '^  communication ' "$T/log" &&
	[ "$(awk '$1 == "rank" { on = 1; next } on && NF == 8 && $3 > 0 && $2 > 0 { n++ } END { print n }' "$T/log")" = 2 ]
ok $? "communication has a row of its own, and its share of each rank's time is told"
mkdir "$T/many" && python3 -c 'import sys
for i in range(4100): open(f"{sys.argv[1]}/{i}.pt.trace.json", "w").write("{}")' "$T/many"
"$B/lbworker" trace summary "$T/many" >"$T/log" 2>"$T/err" && grep -q '^4100 traces, ' "$T/log"
ok $? "all traces of many ranks and steps count"
mkdir "$T/cutlass"
echo '{"traceEvents":[{"ph":"X","cat":"kernel","name":"void gemm<4>(A const&)","ts":1,"dur":5}]}' >"$T/cutlass/a.pt.trace.json"
"$B/lbworker" trace summary "$T/cutlass" --svg "$T/cutlass.svg" >"$T/log" 2>"$T/err" &&
	python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' "$T/cutlass.svg" && grep -q 'gemm&lt;4&gt;(A const&amp;)' "$T/cutlass.svg"
ok $? "a drawing is sound where kernels have names of C++"
[ "$overlap" -ge 5 ] && traced one-by-one && [ "$overlap" = 0 ]
ok $? "exchanges go on beside operations; not where each is waited for"

begin asked
kill -TERM $worker
end
[ "$status $(tail -n 1 "$T/log")" = "0 stopped" ] && ls "$T"/asked/step-* >/dev/null
ok $? "SIGTERM: all stop after the same step, behind a checkpoint"

# As on a node that has another file under the same name (tests/ranks/controls.c).
sed 's/^steps = .*/steps = 2/' "$T/long.toml" >"$T/few.toml"
refused() { # refused NAME WORDS [OPTION…]
	refused_name=$1
	refused_words=$2
	shift 2
	LB_CHECKPOINT_DIR=$T/refused "$B/lbworker" train "$T/few.toml" --device cpu --ranks 2 "$@" \
		>"$T/out" 2>"$T/err"
	[ "$? $(wc -l <"$T/err") $(grep -c "$refused_words" "$T/err")" = "2 1 1" ] &&
		! ls "$T"/refused/step-* >"$T/out" 2>&1
	ok $? "$refused_name"
}
LB_CONTROL=other-data
export LB_CONTROL
B_REAL=$B
B=$B/controls
refused "other data on one rank" "rank 1 .* has other data than rank 0"
LB_CONTROL=other-config
refused "another config on one rank" "rank 1 .* has another config than rank 0"
LB_CONTROL=other-version
refused "another version on one rank" "rank 1 .* has another version of lbworker than rank 0"
# Each rank reads weights by itself; of the other folder those of another training.
mkdir -p "$T/here/other"
programs=$(cd "$B_REAL" && pwd -P)
here() { # here PROGRAM FOLDER OPTION...
	here_program=$1
	here_folder=$2
	shift 2
	(cd "$T/here" && LB_CHECKPOINT_DIR=$here_folder "$programs/$here_program" train "$T/few.toml" --device cpu "$@") \
		>"$T/out" 2>"$T/err"
}
here lbworker model && here lbworker other/model --optimizer.lr 0.01
LB_CONTROL=other-folder
here controls/lbworker new --ranks 2 --checkpoint.initial_load_path model
[ "$? $(grep -c "^lbworker: " "$T/err")" = "2 1" ] && [ ! -d "$T/here/new/step-00000002" ] &&
	grep -q 'checkpoint.initial_load_path: model/step-00000002: rank 1 (.*) has other weights than rank 0' "$T/err" &&
	here lbworker new --ranks 2 --checkpoint.initial_load_path model
ok $? "other weights to begin with on one rank"
here controls/lbworker model --ranks 2 --training.steps 3
[ "$? $(wc -l <"$T/err")" = "2 1" ] && grep -q 'model/step-00000002: rank 1 (.*) has other weights than rank 0' "$T/err" &&
	here lbworker model --ranks 2 --training.steps 3
ok $? "and to go on from"
LB_CONTROL=nan
LB_CHECKPOINT_DIR=$T/nan "$B/lbworker" train "$T/few.toml" --device cpu --ranks 2 >"$T/out" 2>"$T/err"
[ "$? $(grep -c '^lbworker: ' "$T/err") $(grep -c 'lbworker: step 1: diverged' "$T/err")" = "3 1 1" ] &&
	! ls "$T"/nan/step-* >"$T/out" 2>&1
ok $? "what is no number on one rank ends all in the same step, with one line"
for steps in 1 2; do # the last one, and one behind which there are others
	LB_CONTROL=local-norm LB_CHECKPOINT_DIR=$T/apart "$B/lbworker" train "$T/few.toml" --device cpu --ranks 2 \
		--training.steps $steps --checkpoint.interval 1 >"$T/out" 2>"$T/err"
	[ "$? $(wc -l <"$T/err") $(grep -c 'rank 1 came to another end of step 1 than rank 0' "$T/err")" = "1 1 1" ] &&
		[ -z "$(ls "$T/apart")" ] || echo "$steps"
done >"$T/log"
[ ! -s "$T/log" ]
ok $? "ranks that came to other ends of a step leave no checkpoint of it"
LB_CONTROL="exit"
LB_CHECKPOINT_DIR=$T/exit "$B/lbworker" train "$T/few.toml" --device cpu --ranks 2 >"$T/out" 2>"$T/err"
[ "$? $(cat "$T/err")" = "1 lbworker: rank 1 ended with status 1" ]
ok $? "one ends without a word: all end, and it is said which"
B=$B_REAL
unset LB_CONTROL
OMPI_COMM_WORLD_SIZE=2 LB_CHECKPOINT_DIR=$T/refused "$B/lbworker" train "$T/few.toml" --device cpu >"$T/out" 2>"$T/err"
[ "$? $(grep -c "Open MPI started 2 of us, and ranks speak MPICH" "$T/err")" = "2 1" ] &&
	! ls "$T"/refused/step-* >"$T/out" 2>&1
ok $? "ranks of another MPI do not train alone, each into the same folder"
for launcher in PMI_SIZE=2 OMPI_COMM_WORLD_SIZE=2 "LB_RANK=0 SLURM_STEP_NUM_TASKS=2"; do
	# shellcheck disable=SC2086 # words
	env $launcher PMI_RANK=0 LB_CHECKPOINT_DIR="$T/refused" "$B/lbworker" train "$T/few.toml" --device cpu --ranks 3 >"$T/out" 2>"$T/err"
	[ "$? $(cat "$T/err")" = "2 lbworker: parallelism.local_ranks: must be 1 where a launcher has started 2 of us, \
each of which would start 3 ranks" ] && ! ls "$T"/refused/step-* || echo "$launcher"
done >"$T/log" 2>"$T/out"
[ ! -s "$T/log" ]
ok $? "nor do those that each of a launcher's would start"
refused "degrees that do not fit" "degree 3 is 3, and there are 2" \
	--parallelism.data_parallel_shard_degree 3
if [ -e "$B/liblbmpi.so" ] && command -v mpiexec.mpich >"$T/out"; then
	LB_CHECKPOINT_DIR=$T/refused mpiexec.mpich -n 2 "$B/lbworker" train "$T/few.toml" --device cpu \
		--parallelism.data_parallel_shard_degree 3 >"$T/out" 2>"$T/err"
	[ "$? $(wc -l <"$T/err") $(grep -c "lbworker: .*degree 3 is 3, and there are 2" "$T/err")" = "2 1 1" ]
	ok $? "nor over MPI, where all end by themselves"
	set -- "$B/lbworker" train "$T/few.toml" --device cpu --comm.init_timeout_seconds $((4 * patience))
	LB_CHECKPOINT_DIR=$T/refused timeout $((20 * patience)) mpiexec.mpich -n 1 "$@" : -n 1 "$@" \
		--parallelism.data_parallel_shard_degree 3 >"$T/out" 2>"$T/err"
	[ "$? $(grep -c "lbworker: .*rank 1 .* has another config than rank 0" "$T/err")" = "2 1" ]
	ok $? "a rank that is to share the model in another way than others is named"
	LB_CHECKPOINT_DIR=$T/staged timeout $((20 * patience)) mpiexec.mpich -n 1 "$@" : -n 1 "$@" \
		--checkpoint.stage "$T/of-this-node" >"$T/out" 2>"$T/err"
	ok $? "where each node saves first is its own affair"
fi
refused "a recipe for one rank" "quantize.recipe: scales of past steps" --quantize.recipe delayed
refused "a width that is no power of two" "reduction_width: must be a power of two" \
	--parallelism.reduction_width 3
# Of all ways that fit the one that sends the least is advised.
cat >"$T/large.toml" <<-END
	[model]
	flavor = "8B"
	[training]
	local_batch_size = 1
	seq_len = 8192
END
"$B/lbworker" plan "$T/large.toml" --ranks 8 >"$T/out" 2>"$T/err" &&
	awk '/^ranks/ { on = 1 } /^advice/ { advice = $0 }
		on && / fits / { sub(/.*sends /, "", $0); if (!least || $1 < least) least = $1 }
		END { exit !(advice ~ /the least traffic that fits 79.1 GiB/ && least > 0) }' "$T/out" &&
	way=$(sed -n 's/^advice .*replicate_degree = \([0-9]*\), .*shard_degree = \([0-9]*\), zero_stage = \([0-9-]*\).*tensor_parallel_degree = \([0-9]*\).*/ \1 x \2 *x \4  ZeRO-\3 /p' "$T/out") &&
	least=$(sed -n '/^others/,$s/.* fits .*sends \([0-9.]*\) GiB.*/\1/p' "$T/out" | sort -n | head -n 1) &&
	grep -q "$way.* fits .*sends $least GiB" "$T/out"
ok $? "8B on 8 x 80 GB: $way sends the least of what fits, $least GiB a step"
"$B/lbworker" plan "$T/large.toml" --ranks 6 --parallelism.tensor_parallel_degree 4 >"$T/out" 2>"$T/err"
[ "$? $(grep -c "tensor_parallel_degree: 4 wants a multiple of 4 ranks, and there are 6: 1, 2, 3, 6 would do" "$T/err")" = "2 1" ]
ok $? "plan refuses what would be refused, with what would do"
# --- are the nodes well? ---
small="--memory-mib 1 --disk-mib 1 --folder $T --device cpu"
# shellcheck disable=SC2086 # words
check() { # check PROGRAM [OPTION...]: $status, and what it said in $T/log
	"$@" $small >"$T/log" 2>"$T/err"
	status=$?
}
check "$B/lbworker" check --ranks 3 --slow 0
[ "$status" = 0 ] && [ "$(grep -c '^\[.*:[012]\] OK  cpu: product [0-9.]* GFLOP/s, memory .* disk .* link .* clock' "$T/log")" = 3 ] &&
	[ "$(grep -c '^ *[0-9]* *[0-9.]* *[0-9.]* *[0-9.]*$' "$T/log")" = 7 ]
ok $? "three ranks check each other: OK, with a table of sums by size of message"
# but for what is cut behind three decimals: a busy machine has little before them
awk 'NF == 4 && $1 == 16777216 { off = $4 - $3 * 4 / 3; if ($3 <= 0 || off < -0.0013 || off > 0.0013) exit 1; seen = 1 } END { exit !seen }' "$T/log"
ok $? "the bus has 2 (N-1)/N of the bandwidth"
for fault in wrong-product:product wrong-memory:memory slow-product:"slow product"; do
	share=0
	case $fault in slow*) share=0.5 ;; esac
	LB_CONTROL=${fault%:*} check "$B/controls/lbworker" check --ranks 3 --slow $share
	[ "$status" = 5 ] && grep -q "^\[.*:1\] BROKEN: ${fault#*:}: " "$T/log" &&
		{ [ $share != 0 ] || grep -q '^2 of 3 ranks OK' "$T/log"; }
	ok $? "$fault: rank 1 is broken"
done
LB_CONTROL=wrong-sum check "$B/controls/lbworker" check --ranks 4 --slow 0
[ "$status" = 5 ] && grep -q "^\[.*:1\] BROKEN: all-reduce: " "$T/log" && grep -q '^3 of 4 ranks OK' "$T/log" &&
	grep -q '^1 of 4 ranks found to spoil sums, in [23] rounds' "$T/log"
ok $? "wrong-sum: rank 1 is found by groups of ranks"
check "$B/lbworker" check --ranks 2 --slow 0 --reports "$T/reports" --svg "$T/sums.svg"
[ "$status" != 5 ]
ok $? "a folder for reports that is not there is no fault of the node"
mkdir "$T/reports"
check "$B/lbworker" check --ranks 2 --slow 0 --reports "$T/reports" --svg "$T/sums.svg"
[ "$status" = 0 ] && grep -q '"rank":1' "$T/reports/rank-1.json" && [ "$(grep -c '<polyline' "$T/sums.svg")" = 2 ]
ok $? "reports as files, and a drawing of the sums"
check "$B/lbworker" check --ranks 1.5
[ "$status" = 2 ] && grep -q 'check: --ranks 1.5: a whole number from 1 to' "$T/err"
ok $? "half a rank is none"
check "$B/lbworker" check --least-product 1e9
[ "$status" = 5 ] && grep -q 'BROKEN: slow product: .* and it is to make 1e+09' "$T/log"
ok $? "one rank beside a bound of its own"
# a machine with a port of InfiniBand that counts errors while it is checked
sys=$T/sys
mkdir -p "$sys/class/net/eth0/device" "$sys/class/net/eth0/statistics" "$sys/class/infiniband/mlx5_0/ports/1/counters"
echo up >"$sys/class/net/eth0/operstate"
echo 25000 >"$sys/class/net/eth0/speed"
echo "4: ACTIVE" >"$sys/class/infiniband/mlx5_0/ports/1/state"
echo "400 Gb/sec (4X NDR)" >"$sys/class/infiniband/mlx5_0/ports/1/rate"
echo 3 >"$sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
check "$B/lbworker" check --sys "$sys" --reports "$T/reports"
[ "$status" = 0 ] && grep -q 'OK .*, 2 NICs$' "$T/log" && grep -q '"name":"mlx5_0/1","up":true,"mbps":400000,"errors":0' "$T/reports/rank-0.json"
ok $? "network interfaces and InfiniBand ports are read; errors of before are no fault"
# GPUs, by a stand-in of the driver's library
nvml() { # nvml GPU0's figures
	mkdir -p "$T/nvml"
	echo "$1" >"$T/nvml/gpu0"
	NCCL_STANDIN=$T/nvml LD_LIBRARY_PATH=$B/tests/nvml check "$B/lbworker" check --xid-hours 0
}
nvml "50 1000 80000 300000 1500 60 0 4 0 0"
[ "$status" = 0 ]
ok $? "a GPU with corrected errors is well"
nvml "50 1000 80000 300000 1500 60 0 4 2 0"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0: 2 uncorrected memory errors (ECC)' "$T/log"
ok $? "with uncorrected ones it is not"
nvml "50 1000 80000 300000 345 95 32 0 0 0"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0: its clocks are held down by heat, at 345 MHz and 95 degrees' "$T/log"
ok $? "nor where heat holds its clocks down"
echo "0 79" >"$T/nvml/xid"
nvml "50 1000 80000 300000 1500 60 0 0 0 0"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0: XID 79: ' "$T/log"
ok $? "nor where its driver tells of an XID that means hardware"
for gpu in 1 2; do
	echo "50 1000 80000 300000 1500 60 0 0 0 0" >"$T/nvml/gpu$gpu"
done
echo "2 79" >"$T/nvml/xid"
CUDA_VISIBLE_DEVICES=1,2 nvml "50 1000 80000 300000 1500 60 0 0 0 0"
rm "$T/nvml/gpu1" "$T/nvml/gpu2"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 2: XID 79: ' "$T/log"
ok $? "and that GPU is named as nvidia-smi does, where not all are for us"
# what was before: the driver's own memory of it, and the kernel's log, if it may be read
nvml "50 1000 80000 300000 1500 60 0 0 0 0 1 0"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0: a row of its memory could not be replaced' "$T/log"
ok $? "nor a GPU that ran out of spare rows before"
nvml "50 1000 80000 300000 1500 60 0 0 0 0 0 1"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0: after a fault its driver asks for a reset of it' "$T/log"
ok $? "nor one that was not reset after a fault"
read -r up _ </proc/uptime
past() { # past HOURS_AGO XID [HOURS]: a kernel's log with one of then, asked about the last hour or HOURS
	awk -v up="$up" -v ago="$1" -v xid="$2" 'BEGIN { printf "6,1,0,-;Linux version 6.1\n4,2,%.0f,-;NVRM: Xid (PCI:0000:3b:00): %d, pid=9, x\n",
		(up - ago * 3600) * 1e6, xid }' >"$T/kmsg"
	check "$B/lbworker" check --kernel-log "$T/kmsg" --xid-hours "${3:-1}"
}
past 0.02 79 0.01
[ "$status" = 0 ] && grep -q 'OK .*, no XID of the hardware in the 0\.0 h' "$T/log"
ok $? "an XID from before the hours asked about is past"
past 0.02 79
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0000:3b:00: XID 79, 0.0 h ago: ' "$T/log"
ok $? "within them it is not"
{
	echo "Nov  3 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=9, x"
	echo "Nov  3 11:00:00 n1 kernel: Linux version 6.1"
} >"$T/messages"
check "$B/lbworker" check --kernel-log "$T/messages"
[ "$status" = 0 ] && grep -q 'OK .*, no XID of the hardware in the' "$T/log"
ok $? "nor does one count from before the machine was started again"
echo "Nov  3 12:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=9, x" >>"$T/messages"
check "$B/lbworker" check --kernel-log "$T/messages"
[ "$status" = 0 ] && grep -q 'OK .*, XID 79 of GPU 0000:3b:00 (' "$T/log"
ok $? "one without a time is told, and no fault"
past 0.001 79
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0000:3b:00: XID 79, 0.0 h ago: GPU has fallen off the bus' "$T/log"
ok $? "nor with an XID that means hardware before the check began"
gone() { # gone FIGURES OF THE DRIVER: the same with the GPU of that address
	echo "$1" >"$T/nvml/gpu0"
	NCCL_STANDIN=$T/nvml LD_LIBRARY_PATH=$B/tests/nvml check "$B/lbworker" check --kernel-log "$T/kmsg" --xid-hours 1
}
gone "50 1000 80000 300000 1500 60 0 0 0 0 0 0"
[ "$status" = 0 ] && grep -q 'OK .*, XID 79 of GPU 0000:3b:00, 0.0 h ago (.*), of which nothing is left' "$T/log"
ok $? "unless its driver says that nothing is left to be done"
gone "50 1000 80000 300000 1500 60 0 0 0 0"
[ "$status" = 5 ] && grep -q 'BROKEN: GPU 0000:3b:00: XID 79' "$T/log"
ok $? "an older one, that does not tell, is no excuse"
past 0.001 31
[ "$status" = 0 ] && grep -q 'OK .*, no XID of the hardware in the [0-9.]* h' "$T/log"
ok $? "with one of the application it is"
check "$B/lbworker" check --kernel-log "$T/nowhere" --reports "$T/reports"
[ "$status" = 0 ] && grep -q "OK .*, XIDs of before cannot be read: $T/nowhere: No such file" "$T/log" &&
	grep -q '"past_xids":"XIDs of before cannot be read' "$T/reports/rank-0.json"
ok $? "what cannot be read is said, and no fault"
check "$B/lbworker" check --folder "$T/none"
[ "$status" = 0 ] # the last folder counts
ok $? "one rank alone checks its node"
"$B/lbworker" check --folder "$T/none" --device cpu >"$T/log" 2>"$T/err"
[ $? = 5 ] && grep -q 'BROKEN: disk: .*/none: No such file' "$T/log"
ok $? "a folder that is not there"

echo "1..$count"
