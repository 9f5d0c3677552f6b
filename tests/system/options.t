#!/bin/sh
# SPDX-License-Identifier: MIT
# Pairs and triples of sbatch's options, drawn by chance: lbctl makes the very job that sbatch
# makes. OPTIONS_COUNT and OPTIONS_SEED: how many, and which; `make check-options N=2000` for many.
. "$(dirname "$0")/lib.sh"

printf 'Licenses=matlab:4,idl:2\n' >"$T/extra.conf"
MC_CONF_EXTRA=$T/extra.conf
export MC_CONF_EXTRA
cluster_start 2
scontrol update nodename=n1,n2 features=fast,big
sbatch --hold --wrap true >/dev/null || bail_out "sbatch failed"	# for others to depend on
scontrol update partitionname=debug state=down	# jobs are taken, none starts
lbd_start
cd "$T" || exit 1
printf '#!/bin/sh\ntrue\n' >job.slurm

if PYTHONPATH=$src/tests/system PYTHONDONTWRITEBYTECODE=1 python3 "$src/tests/system/options.py" \
	"${OPTIONS_COUNT:-40}" "${OPTIONS_SEED:-1}" >"$T/compared" 2>&1; then
	passed "$(tail -n 1 "$T/compared")"
else
	failed "$(tail -n 1 "$T/compared")"
	diag "$(head -n 60 "$T/compared")"
fi
done_testing
