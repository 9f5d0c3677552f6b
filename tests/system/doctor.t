#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl doctor: nothing to find on a sound machine; then one thing after the other is broken, and
# found.
. "$(dirname "$0")/lib.sh"

need strace strace
shim=$B/tests/nolocks.so
[ -e "$shim" ] || bail_out "$shim is missing: run make $shim"
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
chmod 700 "$LB_HOME"
# verdict CHECK, fix CHECK
verdict() { lbctl doctor --json | python3 -c 'import json, sys
print(*[c[sys.argv[2]] for c in json.load(sys.stdin) if c["check"] == sys.argv[1]])' "$1" "${2:-verdict}"; }

# A disk that takes six seconds to sync a file, asked meanwhile.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
	strace -f -qq -o "$T/strace.out" -e trace=fsync -e inject=fsync:delay_exit=6s \
	lbctl doctor --json >"$T/slow.json" &
slow_pid=$!

exits 1 "without lbd there is a finding" lbctl doctor
like "$out" '^CHECK +lbd +no lbd answers' "it is told"
like "$out" 'to do: .*lbctl daemon start' "with what to do"
like "$out" '^- +slurmctld +no Slurm here' "what is not here is left out"
lbd_start
is "$(verdict lbd) $(verdict locks) $(verdict modes) $(verdict clock)" "fine fine fine fine" \
	"with lbd this machine is well"
is "$(LD_PRELOAD=$shim verdict locks)" finding "locks that say yes to everybody"
chmod 777 "$LB_HOME/switches"
is "$(verdict modes)" finding "a folder of switches that others may write to"
like "$(verdict modes fix)" "chmod 700 $LB_HOME/switches$" "and how to close it"
chmod 700 "$LB_HOME/switches"
lbd_stop
wait $slow_pid
like "$(cat "$T/slow.json")" '"check":"clock","verdict":"fine"' "a slow disk has no other clock"

# Slurm answers, whatever a ping says of its first controller, or of a user who asks too often.
mkdir "$T/slurm"
cat >"$T/slurm/scontrol" <<'END'
#!/bin/sh
[ "$1" = ping ] || exec echo "SLURM_VERSION = 24.11.5"
printf "Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is $B_IS\n"
[ "$B_IS" = UP ]
END
chmod +x "$T/slurm/scontrol"
echo ClusterName=c >"$T/slurm/slurm.conf"
asked() { B_IS=$1 SLURM_CONF=$T/slurm/slurm.conf PATH=$T/slurm:$PATH verdict slurmctld "$2"; }
like "$(asked UP verdict) $(asked UP text)" '^fine Slurmctld\(backup\) at b is UP, in [0-9]+ ms$' "the one that serves is named"
like "$(asked DOWN verdict) $(asked DOWN text)" '^fine answers, in [0-9]+ ms$' "who has answered is not down"

# a driver and a toolkit that do not go together
mkdir "$T/bin"
printf '#!/bin/sh\necho 470.57.02\n' >"$T/bin/nvidia-smi"
printf '#!/bin/sh\necho "Cuda compilation tools, release 12.4, V12.4.131"\n' >"$T/bin/nvcc"
chmod +x "$T/bin/nvidia-smi" "$T/bin/nvcc"
is "$(PATH=$T/bin:$PATH verdict GPUs)" finding "a driver too old for its CUDA"
printf '#!/bin/sh\necho 560.35.03\n' >"$T/bin/nvidia-smi"
like "$(PATH=$T/bin:$PATH verdict GPUs text)" 'driver 560.35.03: .*xgboost' \
	"one that is known to hang, and who says so"
wheels=$T/venv/lib/python3.11/site-packages
mkdir -p "$wheels/nvidia_nccl_cu12-2.18.1.dist-info"
printf '#!/bin/sh\necho 570.1.1\n' >"$T/bin/nvidia-smi"
like "$(VIRTUAL_ENV=$T/venv PATH=$T/bin:$PATH verdict GPUs text)" 'NCCL 2.18.1: may corrupt data .*release notes' \
	"a bad NCCL that only a Python environment has"
mv "$wheels/nvidia_nccl_cu12-2.18.1.dist-info" "$wheels/nvidia_nccl_cu13-2.29.3.dist-info"
like "$(VIRTUAL_ENV=$T/venv PATH=$T/bin:$PATH verdict GPUs text)" 'NCCL .*2.29.3: nothing bad is known' "and a good one"
like "$(NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1 VIRTUAL_ENV=$T/venv PATH=$T/bin:$PATH verdict GPUs text)" \
	'NCCL .*2.29.3: GPUDirect-TCPX .* is a plug-in for NCCL 2.18' "that is not the one of a plug-in in use"
mv "$wheels/nvidia_nccl_cu13-2.29.3.dist-info" "$wheels/nvidia_nccl_cu12-2.21.5.dist-info"
on_gpu() { # on_gpu CAPABILITY
	printf '#!/bin/sh\ncase "$*" in *compute_cap*) echo %s ;; *) echo 570.1.1 ;; esac\n' "$1" >"$T/bin/nvidia-smi"
	VIRTUAL_ENV=$T/venv PATH=$T/bin:$PATH verdict GPUs text
}
like "$(on_gpu 9.0)" 'NCCL 2.21.5: H100 wants 2.23.4 or later' "a release that one generation of GPUs should not have"
like "$(on_gpu 8.0)" 'NCCL .*2.21.5: nothing bad is known' "and an earlier one may"

printf '[team]\ngroup = "no-such-group"\n' >"$LB_HOME/lbd.toml"
like "$(verdict lbd text)" 'there is no group "no-such-group"' "a team that does not exist"
printf '[team]\ngroup = "%s"\nfolder = "%s/team"\n' "$(id -gn)" "$T" >"$LB_HOME/lbd.toml"
chmod 700 "$T"
like "$(verdict team text)" "closed to group $(id -gn): $T has mode 0700" \
	"a team that cannot get there"
like "$(verdict team fix)" "chmod o\+x $T," "and what would let it in"
chmod 711 "$T"
like "$(verdict team text)" \
	"$T/team is missing: make it with: .*chgrp $(id -gn)" "a team that has no folder"
mkdir -m 3770 "$T/team"
is "$(verdict team)" fine "a team that has all it needs"
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$LB_HOME/runs"
	mkdir -m 750 "$LB_HOME/runs/old"
	chgrp nogroup "$LB_HOME/runs/old"
	like "$(verdict team text)" "cannot look into 1 run, made before it was the team" "a run from before there was a team"
	sh -c "$(verdict team fix)"
	is "$(verdict team)" fine "which is open after what the doctor says"
fi

# A file system of its own that has no room for one more file, if this user may make one.
cat >"$T/full.sh" <<'END'
mount -t tmpfs -o nr_inodes=8 tmpfs "$T/full" && mkdir -m 700 "$T/full/home" || exit 99
while touch "$T/full/$((n += 1))"; do :; done
LB_HOME=$T/full/home lbctl doctor
exit 0
END
mkdir "$T/full"
if out=$(unshare -rm sh "$T/full.sh" 2>/dev/null); then
	like "$out" '^CHECK +space .*0 inodes are free' "a disk that is full is said as that"
	like "$out" '^- +locks ' "it is not the locks"
	like "$out" 'to do: make room there' "and room is what to make"
fi

printf '[poll]\nidle_interval = "10m"\n' >"$LB_HOME/lbd.toml"
cluster_start 1
conf=$SLURM_CONF
SLURM_CONF=$T/none
lbd_start
like "$(verdict slurmctld text)" "no Slurm here: SLURM_CONF, $T/none, cannot be read" "a SLURM_CONF that leads nowhere"
SLURM_CONF=$conf
like "$(verdict libslurm text)" 'this lbd found no Slurm when it started' "an lbd that was started without what the shell knows"
lbd_stop
lbd_start
is "$(verdict slurmctld) $(verdict libslurm) $(verdict 'clock skew')" "fine fine fine" \
	"a Slurm that is well"
is "$(verdict MinJobAge)" finding "ended jobs that Slurm forgets before lbd looks"
like "$(verdict MinJobAge fix)" 'poll.idle_interval' "which key"
printf '[poll]\nintervall = "1s"\n' >"$LB_HOME/lbd.toml"
like "$(verdict lbd text)" 'poll.intervall' "a lbd.toml that is wrong, and where"
cluster_signal slurmctld KILL
is "$(verdict slurmctld)" finding "a controller that is gone"
done_testing
