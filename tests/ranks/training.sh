# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# training.sh - what the scripts beside it begin with, and the smallest training that ranks can
# share: its tokens for all of them, its config for those that kill some or compare with plans.

# What is built, in $B; a folder in $T, which goes in the end, with the process $worker where there
# is one; tokens in it. WORDs are the script's own: short sets $short, cuda makes $device an
# emulated GPU, with the stand-in of NCCL between ranks.
# shellcheck disable=SC2034 # for the scripts that read it
ranks_begin() { # ranks_begin [WORD…]
	B=$(cd "${B:-build}" && pwd -P) || exit 1
	T=$(mktemp -d "${TMPDIR:-/tmp}/lb-ranks.XXXXXX") || exit 1
	worker=
	trap '[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null; rm -rf "$T"' EXIT
	trap 'exit 1' HUP INT TERM
	unset LB_SOCKET LB_RUN LB_ATTEMPT LB_CHECKPOINT_DIR LB_RESUME_FROM LB_RANK
	short=
	device=cpu
	for begin_word; do
		case $begin_word in
		short) short=1 ;;
		cuda)
			device=cuda
			export LB_CUDA_LIBRARY="$B/liblbcuda-emulated.so" LB_NCCL_LIBRARY="$B/liblbnccl-standin.so"
			;;
		esac
	done
	ranks_tokens "$B/lbworker" "$T" || exit 1
}

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

# MiB of a rank in a row of a plan.
ranks_planned_memory() { # ranks_planned_memory ROW
	echo "$1" | sed -n 's/.* \([0-9.]*\) GiB  *\(fits\|too much\).*/\1/p' | awk '{ printf "%.0f", $1 * 1024 }'
}

# What measured RANKS OPTION… says beside planned ROW, where ROW is rank 0's in the plan of
# $T/small.toml and $model, for each line RANKS OPTION… of the input; further apart than that SHARE
# fails. WHAT is what is measured, with its unit.
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
