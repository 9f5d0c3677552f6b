#!/bin/sh
# SPDX-License-Identifier: MIT
# Batch scripts as they are: lbctl makes the very job that sbatch makes. tests/golden/batch holds
# the scripts, batch.py submits and compares. SUBMIT_WITH=sbatch: lbd itself goes through sbatch
# (batch-sbatch.t).
. "$(dirname "$0")/lib.sh"

cat >"$T/extra.conf" <<'END'
Licenses=matlab:4,idl:2
PartitionName=long Nodes=ALL State=DOWN MaxTime=INFINITE
END
MC_CONF_EXTRA=$T/extra.conf
export MC_CONF_EXTRA
cluster_start 2
scontrol update nodename=n1,n2 features=fast,big
scontrol create reservation reservationname=night starttime=now+1day duration=60 users=root \
	nodes=n1 \
	>/dev/null
for job in 1 2 3 4 5 6 7 8 9 10; do	# for others to depend on
	sbatch --hold --wrap true >/dev/null || bail_out "sbatch failed at job $job"
done
scontrol update partitionname=debug state=down	# jobs are taken, none starts
export SUBMIT_WITH="${SUBMIT_WITH:-libslurm}"
printf '[slurm]\nsubmit_with = "%s"\n' "$SUBMIT_WITH" >"$LB_HOME/lbd.toml"
lbd_start
mkdir "$T/sub"
cd "$T" || exit 1

# --- the same jobs ----------------------------------------------------------------------------
python3 "$src/tests/system/batch.py" "$src/tests/golden/batch" >"$T/compared" 2>&1 ||
	bail_out "$(tail -n 3 "$T/compared")"
while read -r line; do
	case $line in
	"ok "*) passed "${line#ok }" ;;
	"not ok "*) failed "${line#not ok }" ;;
	*) diag "$line" ;;
	esac
done <"$T/compared"
done_testing
