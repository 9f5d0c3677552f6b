#!/bin/sh
# SPDX-License-Identifier: MIT
# What the GPUs do, each minute, into the spool; idle ones are told of, and an XID is explained. The
# driver's library is a stand-in, nvml_standin.c, and says what the test wants.
. "$(dirname "$0")/lib.sh"

R=$T/run
F=$R/attempts/1
export NCCL_STANDIN="$T/gpus"
mkdir "$T/gpus"

# attempt 'SHELL COMMAND' 'MEMBERS OF "watch"' [IN_PLACE]
attempt() {
	rm -rf "$R"
	mkdir -p "$F" "$R/checkpoints"
	printf '{"version":1,"token":"%032d","run":"r1","number":1,"command":["sh","-c","%s"],"workdir":"%s",
		"run_dir":"%s","checkpoint_dir":"%s/checkpoints","lbd_socket":null,"launcher":"none",
		"kill_grace_ms":1000,"in_place":%s,"never_on_exit_codes":[],"watch":{%s}}' \
		1 "$1" "$T" "$R" "$R" "${3:-0}" "$2" >"$F/attempt.json"
}
run() { SLURMD_NODENAME=n1 timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1; }
usage() { grep '"type":"usage"' "$F/spool.jsonl" | tail -1; }
wait_usage="until grep -q type.:.usage $F/spool.jsonl; do sleep 0.05; done"
busy() { # GPU USE [THROTTLE] [CRC ERRORS]
	echo "$2 70000 81559 650000 1755 61 ${3:-0} 3 0 ${4:-0}" >"$T/gpus/next"
	mv "$T/gpus/next" "$T/gpus/gpu$1"
}

# --- a machine without a driver -------------------------------------------------------------------
# (the first minute has no use of the processor where nothing ran at its start)
attempt "until grep -q .cpu.: $F/spool.jsonl; do sleep 0.05; done" '"usage_every_ms":480'
run
like "$(usage)" '"node":"n1","rank":0,"seconds":[0-9]+,"cpu":[0-9.]+,"resident_mb":[0-9]+,"blocked":[0-9.]+' \
	"CPU, memory and waits for file systems, without any GPU"
unlike "$(usage)" '"gpus"' "and nothing of GPUs"
attempt 'exit 0' '"usage_every_ms":0'
run
ok "who wants none of it gets none" test ! -e "$F/usage"

# --- two GPUs -------------------------------------------------------------------------------------
LD_LIBRARY_PATH=$B/tests/nvml
export LD_LIBRARY_PATH
busy 0 93 36 2
busy 1 40
attempt "$wait_usage" '"usage_every_ms":480'
run
line=$(usage)
like "$line" '"gpu":0,"use":93,"memory_mb":70000,"memory_total_mb":81559,"watts":650,"sm_mhz":1755,"celsius":61' \
	"use, memory, power, clock and temperature of a GPU"
like "$line" '"throttled":\["power","thermal"\],"ecc_corrected":3,"ecc_uncorrected":0,"nvlink_errors":4' \
	"what holds its clock down, and errors of memory and links"
like "$line" '"gpu":1,"use":40' "and of the other"
CUDA_VISIBLE_DEVICES=1
export CUDA_VISIBLE_DEVICES
attempt "$wait_usage" '"usage_every_ms":480'
run
like "$(usage)" '"gpus":\[\{"gpu":1,[^{]*\}\]' "of the GPUs that the job has"
unset CUDA_VISIBLE_DEVICES

# --- idle -----------------------------------------------------------------------------------------
busy 1 0
attempt "until grep -q gpu_idle $F/spool.jsonl; do sleep 0.05; done; until [ \$(grep -c type.:.usage $F/spool.jsonl) -gt 7 ]; do sleep 0.05; done" \
	'"usage_every_ms":600,"idle_gpu_ms":1000'
run
is "$(grep -c '"kind":"gpu_idle"' "$F/spool.jsonl")" 1 "a GPU that does nothing is told of, once"
like "$(grep gpu_idle "$F/spool.jsonl")" '1 of 2 GPUs idle for 0 min or longer: of rank 1' "and which one"

# --- XIDs -----------------------------------------------------------------------------------------
busy 1 50
xid() { # XID: the trainer fails when lbrun's meter has heard of it
	attempt "echo 1 $1 >$T/gpus/next; mv $T/gpus/next $T/gpus/xid; until grep -qs xid_count.:1 $F/usage/*; do sleep 0.05; done; exit 1" \
		'"usage_every_ms":60000'
	run
}
xid 31
like "$(cat "$F/exit.json")" '"error".*XID 31 of GPU 1, application: memory page fault' "an XID of the application explains the end"
is "$(grep -c node_error "$F/spool.jsonl")" 0 "and is not held against the node"
xid 79
like "$(cat "$F/exit.json")" 'XID 79 of GPU 1, hardware: GPU has fallen off the bus \(the GPU is broken' "an XID of the hardware, too"
like "$(grep node_error "$F/spool.jsonl")" '"text":"n1: XID 79 of GPU 1' "and the node is named as broken"
like "$(grep '"launch_end"' "$F/spool.jsonl")" '"node":"n1"' "in the end's record, too"

# --- as people see it -----------------------------------------------------------------------------
busy 1 0
lbd_start
lbctl submit --name seen --set slurm.gpus_per_node=2 --set watch.usage_every=1s -- sh -c 'step=0
while sleep 0.2; do step=$((step + 1)); echo "step $step/1000 loss 1.0"; done' >/dev/null
wait_for 'lbctl top | grep -q "seen .*1 of 2 GPUs idle"' 40
passed "lbctl top says which runs hold idle GPUs"
lbctl report seen -o "$T/seen.html"
like "$(cat "$T/seen.html")" 'use of its GPUs, mean of all' "lbctl report draws what they did"
like "$(cat "$T/seen.html")" '<td class="n">1</td><td class="n">0%</td><td class="n">68.4 of 79.6</td>' "and has a row for each"
lbctl kill --now seen >/dev/null
run_reaches seen killed 20
printf '#!/bin/sh\n#SBATCH --gres=gpu:2\nwhile sleep 0.1; do :; done\n' >"$T/script"
lbctl submit --name script "$T/script" >/dev/null
run_reaches script running 20
is "$(lbctl goodput script --json | json gpus)" 2 "GPUs of a batch script count, however it asks for them"
like "$(lbctl metrics)" '^lowbits_run_gpus.run="script".* 2$' "for Prometheus, too"
lbctl kill --now script >/dev/null
run_reaches script killed 20
lbd_stop

wait_for '[ -z "$(own_processes)" ]' 10
ok "no meter is left" test -z "$(own_processes)"
done_testing
