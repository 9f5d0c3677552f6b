#!/bin/sh
# SPDX-License-Identifier: MIT
# The commands that the README shows for a cluster, each as it stands there, in its order. Those for
# one machine and for text run in first-steps.t, those about a colleague in team-export.t.
. "$(dirname "$0")/lib.sh"

export MC_GPUS=8 MC_CPUS=64
cluster_start 4
lbd_start
mkdir "$T/mine" "$T/bin"
ln -s "$(command -v python3)" "$T/bin/python"
printf '#!/bin/sh\nexec sleep 1000\n' >"$T/bin/torchrun"
chmod +x "$T/bin/torchrun"
PATH=$T/bin:$PATH
cd "$T/mine" || exit 1
echo 'import sys, time; print("step 1/2 loss 1.0", sys.argv, flush=True); time.sleep(1000)' >train.py
printf '#!/bin/bash\n#SBATCH --time=10\nexec python train.py "$@"\n' >train.slurm

sed -n '/^## One machine without Slurm/q; /^Start the daemon/,$s/^    \(lbctl .*\)/\1/p' "$src/README.md" |
	grep -v -e --team -e ada/ >commands
is "$(grep -c '^lbctl submit' commands)" 4 "the README submits in four ways"
# "rm -r FOLDER  # all runs with their logs" removes logs, too: zsh, as people type in it, knows no
# comments.
is "$(cd "$src" && grep -nE '^(    |\$ )?(lbctl|lbworker|lbd|make|rm|mv|cp|touch|mkdir|export|sh) .*[[:space:]]#[[:space:]]' \
	README.md CONTRIBUTING.md docs/*.md docs/cookbook/*.md)" "" "no command is shown with a comment behind it"
while read -r line; do
	case $line in
	*"lbctl kill first"*) run_reaches first running 60 ;;
	esac
	ok "$line" sh -ec "$line"
done <commands
run_reaches first killed 60
like "$(lbctl status first)" 'wrong data' "with the reason that was given"
wait_for '[ "$(lbctl ls --json | grep -o "\"state\":\"running\"" | wc -l)" = 4 ]' 120
passed "all others run"
is "$(lbctl ls --json | grep -o '"name":"scan-[12]"' | sort -u | wc -l)" 2 "two of them are the sweep's"
lbctl kill --now --yes ALL >/dev/null
done_testing
