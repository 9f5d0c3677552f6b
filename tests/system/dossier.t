#!/bin/sh
# SPDX-License-Identifier: MIT
# What lbctl stacks opens: stacks, the ranks' flight recorders (who is missing from a collective),
# and NCCL's own view. Four stand-ins for ranks of PyTorch hear their pipes and dump as it does, one
# stands for NCCL's RAS.
. "$(dirname "$0")/lib.sh"

cat >"$T/ranks.py" <<'END'
import os, pickle, socket, sys, threading, time

def entry(seq, name, state, line, group=("0", "default_pg")):
    return {"collective_seq_id": seq, "pg_id": 0, "process_group": group, "profiling_name": "nccl:" + name,
            "state": state, "is_p2p": False, "frames": [
                {"filename": "/usr/lib/python3/torch/distributed/c10d.py", "line": 1, "name": name},
                {"filename": "/home/ada/train.py", "line": line, "name": "step"}]}

def rank(number):
    pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + "%d.pipe" % number
    os.mkfifo(pipe)
    entries = [entry(41, "all_gather", "completed", 7)]
    if number != 2:
        entries.append(entry(42, "all_reduce", "started", 12))
    while True:
        with open(pipe) as f:
            f.read(1)
        with open(os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + str(number), "wb") as f:
            pickle.dump({"version": "2.4", "entries": entries, "pg_config": {
                "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}}, f)

def ras(server):
    while True:
        peer, _ = server.accept()
        lines = peer.makefile("rw")
        for line in lines:
            word = line.strip()
            print("ras heard", word, flush=True)
            if word == "VERBOSE STATUS":
                lines.write('{"communicators_count": 1}\n')
                lines.close()
                peer.close()
                break
            lines.write("SERVER PROTOCOL 2\n" if word.startswith("CLIENT") else "OK\n")
            lines.flush()

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
server.listen()
threading.Thread(target=ras, args=(server,), daemon=True).start()
for number in range(4):
    if os.fork() == 0:
        rank(number)
print("step 1/9", flush=True)
open(sys.argv[1], "w").close()
while True:
    time.sleep(1)
END
NCCL_RAS_ADDR=127.0.0.1:$(free_port)
export NCCL_RAS_ADDR
lbd_start
lbctl submit --name h1 -- python3 "$T/ranks.py" "$T/ready" >/dev/null
wait_for '[ -e "$T/ready" ] && [ "$(ls "$LB_HOME/runs/h1/attempts/1/flight" | wc -l)" = 4 ]' 30
run_reaches h1 running 20
exits 0 "lbctl stacks" lbctl stacks h1
like "$out" 'rank 2 is missing from all_reduce #42 of 0, where 3 of 4 ranks wait, at train.py:12 \(step\); its last there: all_gather #41, at train.py:7' \
	"names the rank that is missing, the collective, and where the others are"
like "$out" "NCCL's own view .*stacks-1-[0-9T]*.nccl.json" "and the answer of NCCL's RAS"
like "$(cat "$LB_HOME"/runs/h1/attempts/1/stacks-1-*.nccl.json)" '^.?"communicators_count": 1' "which is kept"
like "$out" 'processes? of the trainer' "the stacks follow"
lbctl kill --now h1 >/dev/null
run_reaches h1 killed 20
like "$(lbctl stacks h1)" 'rank 2 is missing' "they can be opened when it is over"

# --- what else the recorders may tell -------------------------------------------------------------
dumps() { # PYTHON EXPRESSION of the entries of rank `r`: the verdict on three ranks
	rm -rf "$T/flight"
	mkdir "$T/flight"
	python3 - "$T/flight" <<END
import pickle, sys
def e(seq, name="all_reduce", state="started"):
    return {"collective_seq_id": seq, "process_group": ("0", "x"), "profiling_name": "nccl:" + name, "state": state}
for r in range(3):
    entries = $1
    if entries is not None:
        pickle.dump({"entries": entries, "pg_config": {"0": {"name": "0", "ranks": "[0, 1, 2]"}}},
                    open("%s/rank_%d" % (sys.argv[1], r), "wb"))
END
	python3 "$src/ctl/act/hang.py" "$T/flight"
}
like "$(dumps '[e(5)]')" '^all 3 ranks are in all_reduce #5 of 0: the network, or a GPU' "all wait in the same"
like "$(dumps '[e(5, state="completed")]')" '^no rank waits in a collective: 3 dumps' "or none"
like "$(dumps 'None if r == 1 else [e(5)]')" '^rank 1: no dump; all_reduce #5 of 0 may wait' "a rank that does not even answer"
like "$(dumps '[e(5, "all_gather" if r else "all_reduce")]')" '^the ranks disagree on #5 of 0: rank 0 in all_reduce|ranks 1, 2 in all_gather' "ranks in different ones"
mkdir -p "$T/flight"
printf 'cposix\nsystem\n(S"touch %s/pwned"\ntR.' "$T" >"$T/flight/rank_7"
like "$(python3 "$src/ctl/act/hang.py" "$T/flight")" 'rank 7: its dump cannot be read: it wants posix.system' "a dump that wants more than plain values is not read"
ok "nor obeyed" test ! -e "$T/pwned"
done_testing
