# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# gpu.sh - what the tests of the CUDA backend on the host (tests/emulation) begin with; they are
# left out where it could not be built.
. "$(dirname "$0")/trainer.sh"

need_emulated

# Operations beside the CPU's: what was said of them is in $T/ops.
ops() { LB_CUDA_LIBRARY=$emulated "$B/gpu/ops" "$@" >"$T/ops" 2>"$T/err"; }
agree() { # agree NAME ARGUMENTS...
	name=$1
	shift
	ops "$@"
	status=$?
	ok "$status" "$name"
	[ "$status" = 0 ] || grep -v '^ok' "$T/ops" | sed 's/^/# /'
}

# A training of 8 steps of two micro-batches, with a checkpoint in the middle: $T/small.toml.
small_training() { # small_training [LINE OF lr_scheduler]
	awk 'BEGIN { srand(5); for (i = 0; i < 9000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' >"$T/text"
	"$B/lbworker" prepare --out "$T/text.tokens" "$T/text" >"$T/out" 2>"$T/err"
	cat >"$T/small.toml" <<-END
		[model]
		flavor = "debugmodel"
		[lr_scheduler]
		warmup_steps = 2
		${1:-}
		[training]
		dataset_path = "$T/text.tokens"
		local_batch_size = 1
		global_batch_size = 2
		seq_len = 16
		mixed_precision_param = "float32"
		steps = 8
		[checkpoint]
		interval = 4
		keep_latest_k = 0
		[metrics]
		log_freq = 1
		peak_tflops = 1
	END
}
train() { # train FOLDER OPTIONS...: its output in $T/FOLDER.log
	folder=$1
	shift
	LB_CUDA_LIBRARY=$emulated "$B/lbworker" train "$T/small.toml" --job.dump_folder "$T/$folder" "$@" \
		>"$T/$folder.log" 2>"$T/err"
}
