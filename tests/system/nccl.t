#!/bin/sh
# SPDX-License-Identifier: MIT
# nccl.t - ranks on emulated GPUs, arrays between them by a stand-in of NCCL: the same bits on one
# rank and on several, and the first cause when one is killed, stands still or tells an error, or
# has another NCCL. make check-ranks has every way of sharing.
. "$(dirname "$0")/trainer.sh"
need_emulated
. ./tests/ranks/training.sh
export LB_CUDA_LIBRARY="$emulated" LB_NCCL_LIBRARY="${emulated%/*}/liblbnccl-standin.so"

sh tests/ranks/check.sh short cuda >"$T/out" 2>"$T/err"
ok $? "the same bits on 1, 2 and 3 emulated GPUs, and not without what makes it so"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

sh tests/ranks/gather.sh short cuda >"$T/out" 2>"$T/err"
ok $? "weights that go as FP8 to other GPUs are the same operands, and a scale of a rank's own is seen"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

sh tests/ranks/memory_gpu.sh short >"$T/out" 2>"$T/err"
ok $? "ZeRO takes the memory of a GPU that plan says, not more"
sed -n 's/^not ok/# not ok/p; $s/^/# /p' "$T/out"

ranks_tokens "$B/lbworker" "$T" || exit 1
ranks_config "$T" 8 8 0 >"$T/small.toml"

# 3 ranks with a fault in the stand-in; $seconds that it took and $status.
train() { # train FAULT [OPTION...]
	fault=$1
	shift
	before=$(date +%s)
	LB_NCCL_STANDIN=$fault "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/folder" --device cuda --ranks 3 \
		--checkpoint.enable false "$@" >"$T/log" 2>"$T/err"
	status=$?
	seconds=$(($(date +%s) - before))
}
said() { # said STATUS PATTERN: that status, that one line on stderr
	[ "$status" = "$1" ] && [ "$(wc -l <"$T/err")" = 1 ] && grep -q "$2" "$T/err"
}

train delay=200
[ "$status" = 0 ] && grep -q '^arrays between ranks go by NCCL 2.27.3 (.*standin' "$T/log"
ok $? "three ranks train, and the log has NCCL's version and place"

LOCAL_RANK=3 LB_EMULATION_GPUS=3 train "" --training.steps 1
[ "$status" = 0 ]
ok $? "each takes a GPU of its own, whatever LOCAL_RANK another program has left"

train "" --device.index 0
said 2 'device.index: must be -1 with several ranks'
ok $? "none is named for all"

LB_EMULATION_COUNTS=$T/counts train "" --training.steps 8
read -r replayed _ <"$T/counts" && [ "$replayed" -ge 3 ]
ok $? "passes are replayed as graphs, with what they send inside ($replayed times)"

train late=1:5000 --training.steps 2
[ "$status" = 0 ]
ok $? "one that comes late to the first step is waited for, longer than later ($seconds s)"

train die=1:30
said 1 'rank 1 was killed by signal 9'
ok $? "one is killed: that is what is said"

train stop=2:30
said 1 'rank 2 did not answer'
ok $? "one is stopped: those that wait for NCCL name it ($seconds s)"

train stall=1:30
said 1 'NCCL: nothing has moved for 4 s, though all ranks answer'
ok $? "a kernel of NCCL that never ends is aborted ($seconds s)"

LB_NCCL_STANDIN=stall=0:100 timeout 60 "$B/gpu/under_way" >"$T/log" 2>"$T/err" &&
	grep -q '^NCCL: nothing has moved for 1 s$' "$T/log"
ok $? "also behind more exchanges than are looked at one by one"

train error=1:30
said 1 'rank 1: .*NCCL: .*remote process exited'
ok $? "an error of the library is told once, by the rank that has it"
train error=1:40
said 1 'rank 1: .*NCCL: .*remote process exited'
ok $? "also where that rank waits for words of those that wait for its bytes ($seconds s)"

train version=21805
said 2 'NCCL 2.18.5 (.*): H100 wants 2.23.4 or later; LB_NCCL_LIBRARY=FILE'
ok $? "a release with a known fault is refused before the first array"
train version=0
said 2 'standin.so: ncclGetVersion fails'
ok $? "a library that does not tell its release is named"
train version=1:22803
said 2 'rank 1 (.*) has NCCL 2.28.3 (.*), rank 0 (.*) 2.27.3 (.*): all must have the same'
ok $? "so is a mixture"
LB_NCCL_ANY=1 train version=21805
[ "$status" = 0 ] && grep -q 'LB_NCCL_ANY=1 takes it' "$T/err"
ok $? "LB_NCCL_ANY=1 takes such a release, with a word"
NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1 train ""
said 2 'GPUDirect-TCPX .* is a plug-in for NCCL 2.18'
ok $? "a plug-in's own release is asked for where its variables are set"
LB_NCCL_LIBRARY=$T/none train ""
said 2 'rank 0 (.*): LB_NCCL_LIBRARY: .*none'
ok $? "a library that is not there is named"
# What MPI ends at once has said before whose memory it was.
if [ -e "${emulated%/*}/liblbmpi.so" ] && command -v mpiexec.mpich >"$T/out"; then
	LB_EMULATION_BYTES=69206016 mpiexec.mpich -n 2 "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/full" \
		--device cuda --checkpoint.enable false >"$T/log" 2>"$T/err"
	[ $? = 1 ] && grep -q '^lbworker: rank [01]: not enough memory' "$T/err" &&
		grep -q '"why": "not enough memory' "$T"/full/memory_snapshot/iteration_1/rank[01]_out_of_memory.json
	ok $? "a rank that is out of memory leaves a table, over MPI, too"
fi
[ -z "$(find /dev/shm -maxdepth 1 -name 'lb-nccl.*' -user "$(id -un)" 2>/dev/null)" ]
ok $? "nothing is left behind"

echo "1..$count"
