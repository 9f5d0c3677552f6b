# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# training.sh - the smallest training that ranks can share, its tokens for all tests of ranks, its config for those that
# kill some or compare with plans.

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
		init_timeout_seconds = 60
		train_timeout_seconds = $3
		[metrics]
		log_freq = 1
		peak_tflops = 1
		[checkpoint]
		interval = $4
	END
}

# What measured RANKS OPTION… says beside planned ROW, where ROW is rank 0's in the plan of $T/small.toml and $model, for
# each line RANKS OPTION… of the input; further apart than that SHARE fails. WHAT is what is measured, with its unit.
ranks_beside_plan() { # ranks_beside_plan SHARE WHAT
	compared=0
	off=0
	while read -r ranks ways; do
		compared=$((compared + 1))
		verdict=ok
		# shellcheck disable=SC2086,SC2154 # words; the caller's
		had=$(measured "$ranks" $model $ways)
		# shellcheck disable=SC2086,SC2154 # words; the caller's
		row=$("$B/lbworker" plan "$T/small.toml" --ranks "$ranks" $model $ways | sed -n '/^ranks /{n;p;}')
		plan=$(planned "$row")
		echo "$had ${plan:-0}" | awk -v share="$1" '{ d = $1 / ($2 + 1e-9); exit !(d > 1 - share && d < 1 + share) }' ||
			verdict="not ok"
		echo "$verdict - $ranks ranks, $ways: $had $2, by plan ${plan:-none}"
		[ "$verdict" = ok ] || {
			sed 's/^/# /' "$T/err"
			off=$((off + 1))
		}
	done
	echo "$2: $compared ways, $off off by more than $1 of it"
	[ "$off" = 0 ]
}
