#!/bin/sh
# SPDX-License-Identifier: MIT
# fidelity.sh - what each recipe of few bits costs in validation loss, beside the noise of seeds: small Llama and
# GPT-2 shapes, the same data, every recipe, three seeds. fidelity.py says how it is judged.
#
# LB_BENCH_FOLDER  keeps the results there, and goes on from them; else they go with the run
# LB_BENCH_TEXT    what is trained on, a file or a folder (README and docs); LB_BENCH_SEEDS (3), LB_BENCH_STEPS
#                  (120), LB_BENCH_MODELS ("llama gpt2")
. "$(dirname "$0")/scratch.sh"
folder=${LB_BENCH_FOLDER:-$T}
mkdir -p "$folder"

if [ ! -e "$folder/validation.tokens" ]; then
	find "${LB_BENCH_TEXT:-docs}" -type f | LC_ALL=C sort | xargs cat >"$T/text"
	# one line in ten is for validation
	awk 'NR % 10 == 0' "$T/text" >"$T/validation"
	awk 'NR % 10 != 0' "$T/text" >"$T/train"
	"$B/lbworker" prepare --out "$folder/train.tokens" "$T/train" >"$T/log"
	"$B/lbworker" prepare --out "$folder/validation.tokens" "$T/validation" >"$T/log"
fi
python3 bench/fidelity.py "$B/lbworker" "$folder"
