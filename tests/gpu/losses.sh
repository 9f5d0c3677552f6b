#!/bin/sh
# SPDX-License-Identifier: MIT
# losses.sh [STEPS] - a training with each recipe of few bits on an emulated GPU beside the CPU's:
# the codes are the same, so their losses may differ by the order of sums alone, however long it
# goes on.
#   make check-losses [STEPS=200], or B=build sh tests/gpu/losses.sh [STEPS]; the last line counts
set -u
. "$(dirname "$0")/../ranks/training.sh"
ranks_begin cuda
steps=${1:-200}
early=2e-5 # of the first three losses, where codes are the same: one of the last digit that is printed

ranks_config "$T" "$steps" 20 0 | sed 's/^seq_len = .*/seq_len = 32/; s/^global_batch_size = .*/global_batch_size = 2/' \
	>"$T/small.toml"

train() { # train FILE DEVICE RECIPE: its losses in FILE
	"$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/out-$2" --device "$2" --quantize.recipe "$3" \
		--training.mixed_precision_param float32 --checkpoint.enable false >"$T/$1.log" 2>"$T/$1.err" ||
		sed 's/^/# /' "$T/$1.err"
	sed -n 's/^step \([0-9]*\)\/[0-9]* loss \([0-9.]*\) .*/\1 \2/p' "$T/$1.log" >"$T/$1"
}
# Later a code that rounds the other way makes more of a loss of 64 tokens, the more the fewer bits
# it has; over the last quarter such codes cancel out.
compare() { # compare RECIPE FILE: the losses in gpu, and in that file
	case $1 in *fp4*) apart=1e-1 drift=2e-3 ;; *) apart=2e-3 drift=1e-4 ;; esac
	awk -v name="$1" -v steps="$steps" -v early=$early -v apart=$apart -v drift=$drift '
	NR == FNR { gpu[$1] = $2; next }
	{
		both++
		d = (gpu[$1] - $2) / $2
		d = d < 0 ? -d : d
		if ($1 <= 3 && d > first) first = d
		if (d > most) { most = d; at = $1 }
		if ($1 > steps * 3 / 4) { ours += gpu[$1]; theirs += $2 }
	}
	END {
		mean = both ? (ours - theirs) / theirs : 1
		mean = mean < 0 ? -mean : mean
		good = both == steps && first <= early && most <= apart && mean <= drift
		printf "%s - %s: %d steps, the first three %.1e apart, all %.1e (step %d), the mean of the last quarter %.1e\n",
			good ? "ok" : "not ok", name, both, first, most, at, mean
		exit !good
	}' "$T/gpu" "$T/$2"
}

recipes=0
failed=0
unseen=0 # controls: beside the losses of a training without a recipe
for recipe in $("$B/lbworker" recipes | sed -n 's/^\([a-z][^ :]*\):.*/\1/p'); do
	train gpu cuda "$recipe"
	train cpu cpu "$recipe"
	compare "$recipe" cpu || failed=$((failed + 1))
	recipes=$((recipes + 1))
	case $recipe in
	none) mv "$T/cpu" "$T/none" ;;
	bf16 | int8) ;; # as near to it as sums are
	*)
		compare "$recipe, beside none" none >"$T/control" || continue
		sed 's/^ok/not ok - control/' "$T/control"
		unseen=$((unseen + 1))
		;;
	esac
done
echo "losses: $recipes recipes, $failed failed, $unseen controls missed"
[ "$failed:$unseen" = 0:0 ]
