#!/bin/sh
# SPDX-License-Identifier: MIT
# A sweep is a group of named runs: submitted all or none, compared, and ended together.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\n[local]\ncpus = 8\n' >"$LB_HOME/lbd.toml"
cat >"$T/base.toml" <<'END'
[run]
command = ["sh", "-c", "echo step=1 loss=$LOSS; echo step=2 loss=3; exec sleep 1000"]
[watch]
progress_regex = "step=(?<step>\\d+) loss=(?<loss>\\S+)"
END
lbd_start
exits 2 "a bad combination refuses them all" lbctl submit "$T/base.toml" \
	--sweep watch.kill_grace=1,2 --sweep slurm.mem=1G,much
like "$err" 'base-2 .*slurm.mem=much.*nothing was submitted' "and is named"
is "$(lbctl ls --json)" "[]" "no run is there"
is "$(lbctl submit "$T/base.toml" --sweep watch.kill_grace=1..2 --sweep restart.in_place=1,7)" 'base-1
base-2
base-3
base-4' "a run for each combination"
is "$(lbctl ls --group base --json | json '#')" 4 "in one group"
exits 4 "a name that is taken refuses them all" lbctl submit \
	"$T/base.toml" --sweep watch.kill_grace=1..9
for n in 1 2 3 4; do
	wait_for '[ "$(lbctl status base-$n --json | json step)" = 2 ]' 30
done
printf '%s\n' "$(lbctl compare base)" >"$T/table"
like "$(head -n 1 "$T/table")" '^NAME +(watch.kill_grace +restart.in_place|restart.in_place +watch.kill_grace) +STATE +STEP +LOSS' \
	"they are compared by what differs"
like "$(sed -n 4p "$T/table")" '^base-3 .*running +2 +3' "and by how they do"
lbctl compare base --json >"$T/compared"
is "$(json runs.3.settings <"$T/compared" | tr -d ' ')" \
	'{"watch.kill_grace":2,"restart.in_place":7}' \
	"programs get the same"
exits 3 "a group without runs is told" lbctl compare nobody
ok "the group is ended together" lbctl kill --now --yes base@group
for n in 1 2 3 4; do
	run_reaches base-$n killed 20
done
done_testing
