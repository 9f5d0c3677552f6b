# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# training.sh - the smallest training that ranks can share, its tokens for all tests of ranks, its config for those that kill some.

# Random letters as tokens in FOLDER/text.tokens, the same each time.
ranks_tokens() { # ranks_tokens LBWORKER FOLDER
	awk 'BEGIN { srand(5); for (i = 0; i < 60000; i++) printf "%c", 97 + int(rand() * rand() * 26) }' \
		>"$2/text"
	"$1" prepare --out "$2/text.tokens" "$2/text" >/dev/null
}

# Its config, which a caller may add to: the last section is [checkpoint].
ranks_config() { # ranks_config FOLDER STEPS TIMEOUT_SECONDS INTERVAL
	cat <<-END
		[model]
		flavor = "debugmodel"
		[training]
		dataset_path = "$1/text.tokens"
		local_batch_size = 1
		global_batch_size = 4
		seq_len = 16
		steps = $2
		threads = 1
		[parallelism]
		reduction_width = 4
		[comm]
		init_timeout_seconds = 3
		train_timeout_seconds = $3
		[metrics]
		log_freq = 1
		peak_tflops = 1
		[checkpoint]
		interval = $4
	END
}
