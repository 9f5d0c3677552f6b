#!/bin/sh
# SPDX-License-Identifier: MIT
# real.sh - a rank's own end behind the real torchrun and mpirun, told in lbd's words; run by make
# check-launchers, with a Python that has PyTorch. tests/system/launchers.t has stand-ins for each
# of them.
#
# Environment: TORCHRUN   the program (torchrun beside PYTHON)
#              MPIRUN     Open MPI's (mpirun), with options; where it does not work, that is said
#              HYDRA      MPICH's or Intel's (mpiexec.hydra), with options, likewise
. "$(dirname "$0")/../system/lib.sh"

torchrun=${TORCHRUN:-torchrun} mpirun=${MPIRUN:-mpirun} hydra=${HYDRA:-mpiexec.hydra} python=python3
command -v "$torchrun" >/dev/null || bail_out "$torchrun is missing: TORCHRUN says where it is"
patience=20		# seconds are spent importing PyTorch
TMPDIR=$T		# torchrun leaves folders there when it is killed
export TMPDIR
cd "$T" || exit 1		# core files stay here
cluster_start 2
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start

cat >"$T/rank.py" <<'END'
import os, signal, sys, time
rank = int(next(os.environ[k] for k in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if k in os.environ))
how, who = sys.argv[1], int(sys.argv[2])
if rank == who and how == "exit":
    print("ValueError: bad shard", file=sys.stderr)
    sys.exit(7)
if rank == who and how == "raise":
    raise KeyError("optimizer")
if rank == who and how == "segv":
    os.kill(os.getpid(), signal.SIGSEGV)
time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 600)
END

# ends RUN TEXT OPTION… -- COMMAND…: it fails, and status tells of the rank that was the cause.
ends() {
	name=$1 text=$2
	shift 2
	lbctl submit --name "$name" --set restart.max_without_progress=1 --set restart.in_place=0 "$@" >/dev/null ||
		failed "submit $name"
	run_reaches "$name" failed 30
	like "$(lbctl status "$name")" "$text" "$name: the rank's own end is told" ||
		diag "$(lbctl logs "$name" | tail -n 40)"
}

# MASTER_ADDR: the nodes of this cluster are not in any DNS
export MASTER_ADDR=127.0.0.1
torch() {	# RUN TEXT WORD…: two nodes with two ranks each
	name=$1 text=$2
	shift 2
	ends "$name" "$text" --set slurm.nodes=2 --set run.launcher=torchrun --set torchrun.nproc_per_node=2 \
		--set "torchrun.command=[\"$torchrun\"]" -- "$python" "$T/rank.py" "$@"
}
torch torch-exit 'rank 3 on n2: exit status 7; ValueError: bad shard' exit 3
torch torch-raise "rank 1 on n1: exit status 1; KeyError: 'optimizer'" raise 1
torch torch-segv 'rank 2 on n2: killed by signal 11' segv 2
ends torch-command 'rank 1.*exit status 7; ValueError: bad shard' \
	-- "$torchrun" --nproc_per_node 2 "$T/rank.py" exit 1
ends torch-command-segv 'rank 1.*killed by signal 11' \
	-- "$torchrun" --nproc_per_node 2 "$T/rank.py" segv 1

works() {	# WORD…: a launcher
	"$@" true >"$T/probe" 2>&1 || ! diag "left out: $1 does not work here: $(head -n 2 "$T/probe")"
}
# shellcheck disable=SC2086 # words
if works $mpirun -np 2 --oversubscribe; then
	ends mpi-exit 'rank 1: exit status 7; ValueError: bad shard' \
		-- $mpirun -np 2 --oversubscribe "$python" "$T/rank.py" exit 1
	ends mpi-tags "rank 1: exit status 1; KeyError: 'optimizer'" \
		-- $mpirun -np 2 --oversubscribe --tag-output "$python" "$T/rank.py" raise 1
	ends mpi-segv 'rank 1 on [^ ]+: killed by signal 11' \
		-- $mpirun -np 2 --oversubscribe "$python" "$T/rank.py" segv 1
	unlike "$(lbctl status mpi-segv)" 'ignored|----|signal 11.*; ' "of which mpirun's own words are no part"
fi
# shellcheck disable=SC2086
if works $hydra -np 2; then	# which does not end the others of a program that is none of MPI's
	ends hydra-exit 'exit status 7; ValueError: bad shard' -- $hydra -np 2 "$python" "$T/rank.py" exit 1 1
	ends hydra-label 'exit status 1; rank 1: KeyError: .optimizer' \
		-- $hydra -prepend-rank -np 2 "$python" "$T/rank.py" raise 1 1
	ends hydra-segv 'killed by signal 11' -- $hydra -np 2 "$python" "$T/rank.py" segv 1 1
	unlike "$(lbctl status hydra-segv)" 'APPLICATION|====' "of which its own words are no part"
fi
# srun in a command of one's own, which names the ranks itself
ends label "rank 1 on n.: exit status 7; ValueError: bad shard" --set slurm.nodes=2 --set run.launcher=none \
	-- srun --label --kill-on-bad-exit=1 sh -c '[ "$SLURM_PROCID" = 0 ] || { echo "ValueError: bad shard" >&2; exit 7; }; sleep 600'
done_testing
