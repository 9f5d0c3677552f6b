#!/bin/sh
# SPDX-License-Identifier: MIT
# fidelity.sh - what each recipe of few bits, and each way to keep weights and moments, costs in
# validation loss, beside the noise of seeds: small Llama and GPT-2 shapes, the same data, every
# row, three seeds. The runs are those of an lbd of its own on this machine, by `lbctl submit
# --sweep`; fidelity.py says what is trained and how it is judged.
#
# LB_BENCH_FOLDER  keeps everything there: interrupted, the study goes on from there when it is
#                  called again
# LB_BENCH_TEXT    what is trained on, a file or a folder (docs); LB_BENCH_SEEDS (3), LB_BENCH_STEPS
#                  (200), LB_BENCH_ROWS: only these beside bf16, "mine.toml nvfp4" (all; a file is a
#                  recipe of one's own), LB_BENCH_MODELS ("llama gpt2"), LB_BENCH_PIECES: end after
#                  so many models times seeds (all)
# Files are named from where it is called.
LB_BENCH_ROWS=$(for row in ${LB_BENCH_ROWS:-}; do case $row in *.toml) realpath -m "$row" ;; *) echo "$row" ;; esac; done)
export LB_BENCH_ROWS
. "$(dirname "$0")/scratch.sh"
folder=${LB_BENCH_FOLDER:-$T}
mkdir -p "$folder/lb"
folder=$(cd "$folder" && pwd -P)
steps=${LB_BENCH_STEPS:-200}
LB_HOME=$folder/lb
SLURM_CONF=$folder/none # this machine, whatever cluster it belongs to
PATH=$B:$PATH
export LB_HOME SLURM_CONF PATH

if [ ! -e "$folder/validation.tokens" ]; then
	find "${LB_BENCH_TEXT:-docs}" -type f | LC_ALL=C sort | xargs cat >"$T/text"
	# one line in ten is for validation
	awk 'NR % 10 == 0' "$T/text" >"$T/validation"
	awk 'NR % 10 != 0' "$T/text" >"$T/train"
	lbworker prepare --out "$folder/train.tokens" "$T/train" >"$T/log"
	lbworker prepare --out "$folder/validation.tokens" "$T/validation" >"$T/log"
fi

lbctl daemon start >"$T/log" 2>&1 || { cat "$T/log" >&2; exit 1; }
# What is not kept is ended; what is kept goes on when lbd is started again.
trap 'lbctl kill --now --yes ALL >/dev/null 2>&1; lbctl daemon stop >/dev/null 2>&1; rm -rf "$T"' EXIT
[ "$folder" = "$T" ] || trap 'lbctl daemon stop >/dev/null 2>&1; rm -rf "$T"' EXIT

unfinished() { lbctl ls --json | grep -c '"state":"\(queued\|running\|submitting\|held\)"'; }

pieces=0
for seed in $(seq 0 $((${LB_BENCH_SEEDS:-3} - 1))); do
	for model in ${LB_BENCH_MODELS:-llama gpt2}; do
		[ "$pieces" = "${LB_BENCH_PIECES:-all}" ] && break 2
		pieces=$((pieces + 1))
		rows=$(python3 bench/fidelity.py rows "$folder" "$model" "$seed" "$steps")
		[ -z "$rows" ] || lbctl submit --name "$model-$seed-$steps-{row}" --sweep "row=$rows" \
			--set slurm.cpus_per_task=1 --set run.launcher=none -- \
			lbworker train "$folder/rows/$model-$steps-{row}.toml" --training.seed "$seed" \
			--job.dump_folder "$folder/out/$model-$seed-$steps-{row}" >"$T/log"
		while [ "$(unfinished)" != 0 ]; do sleep 2; done
	done
done
python3 bench/fidelity.py table "$folder" "$steps"
