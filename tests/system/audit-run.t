#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl audit: a run that computes what another one has saved once more.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { srand(3); for (i = 0; i < 20000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >/dev/null || bail_out "no tokens"
cat >"$T/small.toml" <<-END
	[model]
	flavor = "debugmodel"
	dim = 64
	n_layers = 2
	[training]
	dataset_path = "$T/text.tokens"
	seq_len = 16
	steps = 9
	threads = 1
	[checkpoint]
	interval = 3
	keep_latest_k = 0
	[metrics]
	peak_tflops = 1
END
lbd_start
exits 0 "a training" lbctl submit --name good -- "$B/lbworker" train "$T/small.toml" --device cpu
exits 0 "one on hardware that flips a bit in step 5" \
	lbctl submit --name flipped -- env LB_CONTROL=flip-weight LB_FLIP_AT=5 "$B/controls/lbworker" train "$T/small.toml" --device cpu
ok "trains" run_reaches good completed 30
ok "and so does the other one" run_reaches flipped completed 30
files=$(find "$T/home/runs/good/checkpoints" | sort | cksum)

exits 0 "its audit" lbctl audit good --interval 6 --follow
like "$out" "completed" "completes"
like "$(lbctl logs good-audit)" "audit: step 3 to 6: the same bits" "with the same bits"
is "$(find "$T/home/runs/good/checkpoints" | sort | cksum)" "$files" "and leaves the run's own checkpoints alone"
exits 1 "an audit of what was computed wrong" lbctl audit flipped --interval 6 --follow
like "$out" "failed" "fails"
like "$(lbctl logs flipped-audit)" "step 6 was not computed so where it was saved" "and says what it found"
like "$(lbctl logs flipped-audit)" "launch 1 ended: error: exit status 4" "with exit code 4"
is "$(find "$T/home/runs/flipped-audit/attempts" -mindepth 1 -maxdepth 1 | wc -l) $(lbctl logs flipped-audit | grep -c "launch 2")" \
	"1 0" "and without a relaunch"
exits 0 "the interval behind it" lbctl audit flipped --name behind --follow
host=$(lbctl status good --json | json attempts | grep -o '"nodes": *\[[^]]*\]' | head -n 1 | grep -o '"[^"]*"\]' | tr -d '"]')
exits 0 "the same elsewhere" lbctl audit good --name elsewhere --other-nodes --dry-run --json
like "$out" "exclude.*$host" "leaves out the node that it was on"
exits 0 "a training configuration" lbctl submit "$T/small.toml" --name config --set slurm.time=9h --set run.group=g
ok "trains" run_reaches config completed 60
exits 0 "it is audited as well" lbctl audit config --interval 6 --follow
like "$(lbctl logs config-audit)" "audit: step 3 to 6: the same bits" "with the same bits"
exits 0 "with its resources" lbctl audit config --name more --set run.group=h --dry-run --json
like "$out" '"time[a-z_]*": *"?(9h|540|32400)' "and settings"
exits 0 "another trainer" lbctl submit --name other -- true
exits 2 "cannot be audited" lbctl audit other
like "$err" 'other: does not run "lbworker train"; only that computes the same bits again' "and that is said"
done_testing
