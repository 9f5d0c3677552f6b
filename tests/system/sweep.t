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
for n in 1 2; do
	lbctl submit --name wide-$n --set run.group=wide \
		--set "run.sweep=[$(seq -s, 14 | sed "s/[0-9]*/\"k&=$n\"/g")]" -- true >/dev/null
done
python3 -c 'import pty; pty.spawn(["lbctl", "compare", "wide"])' </dev/null >"$T/wide"
shown=$(head -n 1 "$T/wide" | grep -o 'k[0-9]' | wc -l)
like "$(cat "$T/wide")" "$((14 - shown)) more settings differ" "those that no table has room for are counted"
exits 3 "a group without runs is told" lbctl compare nobody
# --- of one's own script --------------------------------------------------------------------------
cat >"$T/train.py" <<'END'
import os, sys
print("ran", sys.argv[1:], os.environ.get("LB_SWEEP_lr"), os.environ.get("LB_SWEEP_seed"), flush=True)
for i in 1, 2:
    print(f"step {i}/2 loss {float(sys.argv[2]) * 1000 / i}", flush=True)
END
runs=$(cd "$T" && lbctl submit --sweep lr=1e-3,3e-4 -- python3 train.py --lr "{lr}")
is "$(echo "$runs" | wc -l)" 2 "a script has a run for each value"
first=$(echo "$runs" | head -n 1) second=$(echo "$runs" | tail -n 1)
is "${first%-1}" "${second%-2}" "their names are drawn, and numbered"
for run in $first $second; do run_reaches "$run" completed 20; done
like "$(lbctl logs "$first")" "ran \\['--lr', '1e-3'\\] 1e-3 None" "the value is filled in, and in its environment"
like "$(lbctl logs "$second")" "ran \\['--lr', '3e-4'\\] 3e-4" "each its own"
lbctl compare "${first%-1}" >"$T/table"
like "$(head -n 1 "$T/table")" '^NAME +lr +STATE' "lbctl compare shows what differs"
like "$(sed -n 3p "$T/table")" '^.*-2 +3e-4 +completed +2/2 +0.15' "for each"

cd "$T" || exit 1
printf '# data sets\na,b.bin\n\n/d/c.bin\n' >list
is "$(lbctl submit --name 'try-{seed}-{data}' --sweep data=@list --sweep seed=1..2 -- \
	python3 train.py '{seed}:{data}' 1 '{other}')" 'try-1-a-b.bin
try-2-a-b.bin
try-1--d-c.bin
try-2--d-c.bin' "values from a file; a name for each"
run_reaches try-2--d-c.bin completed 20
like "$(lbctl logs try-2--d-c.bin)" "ran \\['2:/d/c.bin', '1', '{other}'\\] None 2" "within words, too; other braces stay"
is "$(lbctl ls --group try --json | json '#')" 4 "one group"
longest=$(lbctl compare try | awk '{ if (length($0) > n) n = length($0) } END { print n }')
ok "in 80 columns" [ "$longest" -le 80 ]
lbctl submit --name far --sweep data=/a/folder/of/a/long/name/one.bin,/a/folder/of/a/long/name/two.bin -- true '{data}' >/dev/null
like "$(lbctl compare far)" '\.\.\./one.bin' "paths begin where they differ"
exits 2 "a sweep that changes nothing is refused" lbctl submit --sweep lr=1,2 -- true --lr 1
like "$err" '^lbctl: --sweep lr: changes nothing: write \{lr\} .* or read LB_SWEEP_lr' "with what to write"
is "$(echo "$err" | wc -l)" 1 "in one line"
exits 2 "so is the same twice" lbctl submit --sweep lr=1,1 -- true '{lr}'
exits 2 "and one name for two" lbctl submit --name 'x-{lr}' --sweep lr=1,2 --sweep s=1,2 -- true '{lr}' '{s}'
like "$err" 'two runs would be called x-1' "which is said"
exits 0 "a script that reads the environment is one" lbctl submit --dry-run --sweep lr=1,2 -- python3 train.py
printf '#!/bin/sh\n#SBATCH --ntasks=1\necho "got $1"\n' >job.sh
lbctl submit --name batch --sweep w=x,y job.sh -- "{w}" >/dev/null
run_reaches batch-2 completed 20
like "$(lbctl logs batch-2)" '^got y$' "arguments of a batch script are filled in"
printf '[run]\ncommand = ["sh", "-c", "echo got $0", "{w}"]\n' >spec.toml
lbctl submit --name spec --sweep 'w=x,"y z"' spec.toml >/dev/null
run_reaches spec-2 completed 20
like "$(lbctl logs spec-2)" 'got y z$' "and the command of a run spec"

ok "the group is ended together" lbctl kill --now --yes base@group
for n in 1 2 3 4; do
	run_reaches base-$n killed 20
done
lbd_stop
LB_FAILPOINT=run.folder:error@3
export LB_FAILPOINT
lbd_start
exits 9 "one whose first run cannot be written" lbctl submit --name ill --sweep lr=1,2 -- true '{lr}'
like "$err" 'ill-1 .*: nothing was submitted' "has submitted none"
done_testing
