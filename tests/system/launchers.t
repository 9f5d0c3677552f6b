#!/bin/sh
# SPDX-License-Identifier: MIT
# How ranks are started: srun, torchrun, containers and a profiler in front of them, and what the
# network needs. torchrun, nsys and the srun of a site with pyxis are stand-ins here that write down
# how they were called; srun's goes on to the real one.
. "$(dirname "$0")/lib.sh"

mkdir "$T/bin" "$T/work"
cat >"$T/bin/srun" <<END
#!/bin/sh
printf '%s\n' "\$@" >"$T/srun.\$LB_RUN.\$\$"
for word; do	# pyxis is not here
	shift
	case \$word in --container-*) ;; *) set -- "\$@" "\$word" ;; esac
done
exec $(command -v srun) "\$@"
END
# It listens on node 0 until all others have come, as the real one does, then starts its workers.
cat >"$T/bin/torchrun" <<END
#!/usr/bin/env python3
import argparse, json, os, signal, socket, subprocess, sys, time
p = argparse.ArgumentParser(allow_abbrev=False)
for name in "nnodes", "nproc_per_node", "master_port", "node_rank":
    p.add_argument("--" + name, type=int, default=int(os.environ.get("PET_" + name.upper(), "0")))
p.add_argument("--master_addr")
p.add_argument("--max_restarts")
p.add_argument("--no_python", action="store_true")
p.add_argument("command", nargs=argparse.REMAINDER)
o = p.parse_args()
json.dump({"argv": sys.argv[1:]}, open("$T/torchrun.%s.%d" % (os.environ["LB_RUN"], o.node_rank), "w"))
print("torchrun: node", o.node_rank, flush=True)
if o.node_rank == 0:
    with socket.create_server((o.master_addr, o.master_port)) as s:
        for _ in range(o.nnodes - 1):
            s.accept()
else:
    for _ in range(2000):
        try:
            socket.create_connection((o.master_addr, o.master_port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    else:
        sys.exit("nobody listens")
workers = []
for local in range(o.nproc_per_node):
    workers.append(subprocess.Popen(o.command, env=dict(
        os.environ, RANK=str(o.node_rank * o.nproc_per_node + local), LOCAL_RANK=str(local),
        WORLD_SIZE=str(o.nnodes * o.nproc_per_node), TORCHELASTIC_RUN_ID="none",
        MASTER_ADDR=o.master_addr, MASTER_PORT=str(o.master_port)), start_new_session=True))
status = [w.wait() for w in workers]
sys.exit(1 if any(status) else 0)
END
# Its recording ends, and so does it, while the program goes on.
cat >"$T/bin/nsys" <<'END'
#!/usr/bin/env python3
import os, re, subprocess, sys, time
words = sys.argv[1:]
i = next(n for n, w in enumerate(words) if n > 0 and not w.startswith("--"))
options = dict(w[2:].split("=", 1) for w in words[1:i])
report = re.sub(r"%q\{(\w+)\}", lambda m: os.environ[m[1]], options["output"])
program = subprocess.Popen(words[i:])
if "duration" in options:
    time.sleep(int(options.get("delay", 0)) + int(options["duration"]))
else:
    program.wait()
open(report + ".nsys-rep", "w").write(" ".join(words[:i]))
print("nsys: report written", flush=True)
# sys.exit() would ask once more after the program, and take its status away with it
os._exit(0 if "duration" in options else program.returncode)
END
chmod +x "$T"/bin/*
PATH=$T/bin:$PATH
cluster_start 2
lbd_start
cd "$T/work" || exit 1
log() { cat "$LB_HOME/runs/$1/attempts/1/out.log"; }
two="--set slurm.nodes=2"

# --- srun -----------------------------------------------------------------------------------------
# shellcheck disable=SC2016,SC2086
lbctl submit --name ranks $two --set slurm.ntasks_per_node=2 --set slurm.cpus_per_task=1 \
	--set slurm.mpi=pmi2 --set 'slurm.srun=["--unbuffered"]' --set "cache.folder=$T/none" -- \
	sh -c 'echo "$SLURM_PROCID/$LB_RANK meets at $MASTER_ADDR:$MASTER_PORT, PMI rank $PMI_RANK"' >/dev/null
run_reaches ranks completed 60
lines=$(log ranks | grep meets | sort)
is "$(echo "$lines" | grep -c .)" 4 "srun starts a rank for each task"
for rank in 0 1 2 3; do
	like "$lines" "^\[n$((rank / 2 + 1)):$rank\] $rank/$rank meets at [^ ]+:[0-9]+, PMI rank $rank\$" \
		"rank $rank: node and number in front, a place to meet, MPI set up by --mpi"
done
is "$(echo "$lines" | sed 's/.* at //; s/,.*//' | sort -u | wc -l)" 1 "the same place for all"
like "$(cat "$T"/srun.ranks.*)" '^--unbuffered$' "more options reach srun"
is "$(log ranks | grep 'without a cache' | cut -d ' ' -f 1 | sort | tr '\n' ' ')" "[n1:0] [n2:2] " "the first rank of each node says that it has no cache"
is "$(lbctl events ranks | grep -c 'cache_off .*n[12]: cache.folder: .*not kept')" 1 "and an event, once"

# Since Slurm 22.05 srun does not take the processors of a task from the batch job by itself.
lbctl submit --name cpus --set run.launcher=srun --set slurm.cpus_per_task=2 -- \
	true >/dev/null
run_reaches cpus completed 60
like "$(cat "$T"/srun.cpus.*)" '^--cpus-per-task=2$' "it is told how many were asked for"

# --- torchrun -------------------------------------------------------------------------------------
# shellcheck disable=SC2016,SC2086
lbctl submit --name torch $two --set run.launcher=torchrun --set torchrun.nproc_per_node=2 \
	--set 'torchrun.command=["torchrun","--max_restarts=0"]' -- \
	sh -c 'echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK, at $MASTER_ADDR:$MASTER_PORT"' \
	'a b' >/dev/null
run_reaches torch completed 60
lines=$(log torch)
for rank in 0 1 2 3; do
	like "$lines" "^\[n$((rank / 2 + 1)):$rank\] rank $rank of 4, local $((rank % 2)), at [^ ]+:[0-9]+\$" \
		"torchrun's rank $rank has its prefix, and is where it belongs"
done
like "$lines" '^\[n2:2\] torchrun: node 1$' "so has what torchrun itself prints"
is "$(cat "$T"/srun.torch.* | grep -c 'no_python')" 1 "it is started by one srun"
host=$(python3 -c 'import json,sys; w=json.load(open(sys.argv[1]))["argv"]; print(" ".join(w[:6]))' \
	"$T/torchrun.torch.1")
like "$host" '^--max_restarts=0 --nproc_per_node=2 --nnodes=2 --master_addr=[^ ]+ --master_port=[0-9]+ --no_python$' \
	"with its own options and where to meet"
like "$(cat "$T/torchrun.torch.1")" '"--rank", "--", "sh", "-c", "[^}]*", "a b"\]' \
	"the command byte for byte"

MASTER_ADDR=127.0.0.1 lbctl submit --name one --set run.launcher=torchrun \
	--set torchrun.nproc_per_node=2 \
	-- sh -c 'echo "rank $RANK at $MASTER_ADDR"' >/dev/null
run_reaches one completed 60
like "$(log one)" '^\[n1:1\] rank 1 at 127.0.0.1$' \
	"on one node it needs no srun; MASTER_ADDR of one's own counts"
is "$(ls "$T"/srun.one.* 2>/dev/null)" "" "… and gets none"

# shellcheck disable=SC2016,SC2086
lbctl submit --name stopped $two --set run.launcher=torchrun --set torchrun.nproc_per_node=2 \
	--set watch.kill_grace=1s \
	-- sh -c 'trap "" TERM; : >"$0.$RANK"; setsid sleep "$1" & sleep "$1"' \
	"$T/up" "$mark" >/dev/null
wait_for '[ -e "$T/up.0" ] && [ -e "$T/up.1" ] && [ -e "$T/up.2" ] && [ -e "$T/up.3" ]' 60
lbctl kill stopped >/dev/null
run_reaches stopped killed 60
ok "a kill leaves no rank, and nothing of a rank, on either node" \
	wait_for '[ -z "$(pgrep -f "^sleep $mark\$")" ]' 20

# shellcheck disable=SC2016,SC2086
lbctl submit --name broken $two --set run.launcher=torchrun --set restart.max_without_progress=1 \
	--set restart.in_place=0 -- sh -c '[ "$RANK" = 1 ] && kill -9 $$; sleep 1' >/dev/null
run_reaches broken failed 60
like "$(log broken)" '^\[n2:1\] lbrun: this rank was killed by signal 9' \
	"a rank's death is told by its own shepherd"

like "$(lbctl status broken)" 'crash' "it is a crash, whatever status torchrun ends with"
like "$(lbctl status broken)" 'rank 1 on n2: killed by signal 9' "of that rank, on that node"
# shellcheck disable=SC2016,SC2086
lbctl submit --name code $two --set run.launcher=torchrun --set restart.never_on_exit_codes='[7]' \
	-- sh -c '[ "$RANK" = 1 ] && { echo "ValueError: bad shard" >&2; exit 7; }; sleep 1' >/dev/null
run_reaches code failed 60
like "$(lbctl status code)" 'rank 1 on n2: exit status 7; ValueError: bad shard' \
	"a rank's exit status counts, not torchrun's"

exits 2 "torchrun is not for several tasks" lbctl submit --set run.launcher=torchrun \
	--set slurm.ntasks_per_node=2 -- true
like "$err" 'slurm.ntasks_per_node: torchrun is started once on each node' \
	"and says what to set instead"

# --- containers -----------------------------------------------------------------------------------
lbctl submit --name boxed --set slurm.container_image=nvcr.io#nvidia/pytorch:25.09-py3 \
	--set 'slurm.container_mounts=["/data:/data:ro"]' --set slurm.container_name=train -- true \
	>/dev/null
run_reaches boxed completed 60
words=$(cat "$T"/srun.boxed.*)
like "$words" '^--container-image=nvcr.io#nvidia/pytorch:25.09-py3$' \
	"a container is asked for, by srun"
like "$words" '^--container-name=train$' "with its name"
like "$words" "^--container-workdir=$T/work\$" "and the run's own folder to work in"
mounts=$(echo "$words" | sed -n 's/^--container-mounts=//p' | tr , '\n')
like "$mounts" '^/data:/data:ro$' "what was to be mounted is"
for folder in "$LB_HOME/runs/boxed" "$T/work" "$B"; do
	like "$mounts" "^$folder:$folder\$" "and what the run needs: $(basename "$folder")"
done
exits 2 "mounts need an image" lbctl submit --set 'slurm.container_mounts=["/a:/a"]' -- true
exits 2 "a container needs srun" lbctl submit --set slurm.container_image=x \
	--set run.launcher=none -- true
like "$err" 'slurm.container_image: needs a launcher that uses srun' "and says so"

# --- a profiler -----------------------------------------------------------------------------------
# shellcheck disable=SC2016,SC2086
lbctl submit --name profiled $two --set nsys.enabled=true --set nsys.delay=1s \
	--set nsys.duration=1s \
	--set 'nsys.options=["--trace=cuda,nvtx"]' -- \
	sh -c 'while [ ! -e "$0" ]; do sleep 0.1; done; echo "rank $SLURM_PROCID goes on"' \
	"$T/go" >/dev/null
wait_for '[ "$(log profiled | grep -c "nsys: report written")" = 2 ]' 60
is "$(run_state profiled)" running "a run goes on when its profiler has ended"
touch "$T/go"
run_reaches profiled completed 60
is "$(log profiled | grep -c 'goes on$')" 2 "to its own end"
for rank in 0 1; do
	like "$(cat "$LB_HOME/runs/profiled/attempts/1/nsys-1-$rank.nsys-rep")" \
		'^profile --kill=none --delay=1 --duration=1 --output=.* --trace=cuda,nvtx$' \
		"rank $rank has a report of its own"
done
lbctl submit --name profiled-too --set nsys.enabled=true --set nsys.duration=1s \
	--set restart.never_on_exit_codes='[7]' -- \
	sh -c 'while [ ! -e "$0" ]; do sleep 0.1; done; exit 7' "$T/go-too" >/dev/null
wait_for 'log profiled-too | grep -q "nsys: report written"' 60
touch "$T/go-too"
run_reaches profiled-too failed 60
like "$(lbctl status profiled-too)" 'code 7|exit.* 7' \
	"its exit status is the trainer's, not the profiler's"

# --- networks -------------------------------------------------------------------------------------
shown() { lbctl submit --dry-run "$@" -- true; }
for name in efa tcpx slingshot infiniband socket; do
	ok "profile $name" lbctl submit --dry-run --set slurm.network=$name -- true
done
like "$(shown --set slurm.network=efa)" 'FI_PROVIDER = efa' \
	"--dry-run shows the network's environment"
like "$(shown --set run.launcher=torchrun --set slurm.nodes=2 --set slurm.mpi=pmix)" \
	'^ +--mpi=pmix$' "and the options of srun"
like "$(shown --set slurm.network=slingshot)" 'NCCL_SOCKET_IFNAME = hsn0' "of each"
exits 2 "an unknown one is refused" lbctl submit --set slurm.network=token-ring -- true
like "$err" 'slurm.network: there is no profile "token-ring"; there are: efa, infiniband, slingshot, socket, tcpx' \
	"and those that there are are named"
exits 2 "a path is none" lbctl submit --set slurm.network=../lbd -- true
mkdir "$LB_HOME/network"
printf '[env]\nNCCL_NET = "Mine"\nNCCL_CROSS_NIC = 1\n' >"$LB_HOME/network/socket.toml"
like "$(shown --set slurm.network=socket)" 'NCCL_NET = Mine' "one's own comes first"
printf '[env]\nNCCL_NET = []\n' >"$LB_HOME/network/bad.toml"
exits 2 "a bad one is refused" lbctl submit --set slurm.network=bad -- true
like "$err" 'bad.toml:2: env.NCCL_NET: must be a string' "with file and line"
NCCL_CROSS_NIC=0 lbctl submit --name wired --set slurm.network=socket -- env >/dev/null
run_reaches wired completed 60
like "$(log wired)" '\] NCCL_NET=Mine$' "the trainer gets it"
like "$(log wired)" '\] NCCL_CROSS_NIC=0$' "but the submitter's own environment counts more"
printf '[slurm]\nnetwork = "socket"\n' >>"$LB_HOME/lbd.toml"
lbd_stop
lbd_start
like "$(shown)" 'NCCL_NET = Mine' "lbd.toml may name the cluster's"
done_testing
