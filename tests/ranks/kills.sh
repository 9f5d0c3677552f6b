#!/bin/sh
# SPDX-License-Identifier: MIT
# kills.sh - random ranks of one training are killed at random moments, N times; each time it goes
# on with another number of ranks. In the end its weights are those of an undisturbed training.
#   B=build sh tests/ranks/kills.sh [N] [SEED]; the last line counts
set -u
. "$(dirname "$0")/training.sh"
ranks_begin
kills=${1:-20}
seed=${2:-1}
# programs of our own: a new build in the middle would end the training's claim to be the same one
mkdir "$T/bin" && cp "$B/lbworker" "$T/bin" || exit 1
{ ranks_config "$T" $((100 * kills)) 30 40 && echo "keep_latest_k = 2"; } >"$T/small.toml"
train() { # train FOLDER RANKS
	LB_CHECKPOINT_DIR=$T/$1 exec "$T/bin/lbworker" train "$T/small.toml" --device cpu --ranks "$2"
}
(train whole 1) >"$T/whole.log" 2>&1 || { tail -n 3 "$T/whole.log"; exit 1; }

killed=0
wrong=0
launches=0
: >"$T/log"
while [ ! -e "$T/killed/step-$(printf %08d $((100 * kills)))" ] && [ $launches -lt $((3 * kills + 9)) ]; do
	launches=$((launches + 1))
	# which rank, after how many hundredths of a second, of how many ranks
	read -r ranks victim after <<-DRAW
		$(awk -v s=$((seed * 10007 + launches)) 'BEGIN { srand(s); rand(); r = 2 + int(rand() * 3);
			print r, 1 + int(rand() * r), int(rand() * 50) / 100 }')
	DRAW
	[ $killed -lt "$kills" ] || ranks=1
	: >"$T/log"
	(train killed "$ranks") >"$T/log" 2>"$T/err" &
	worker=$!
	if [ $killed -lt "$kills" ]; then
		for _ in $(seq 200); do
			grep -q '^step ' "$T/log" && break
			sleep 0.05
		done
		sleep "$after"
		pid=$(pgrep -P $worker | sed -n "${victim}p")
		[ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null && killed=$((killed + 1))
	fi
	wait $worker
	status=$?
	worker=
	# a rank that was killed is said to be, in one line; else it ended well
	if [ $status != 0 ] && [ "$(grep -c 'lbworker: rank [0-9] was killed by signal 9' "$T/err") $(grep -c '^lbworker: ' "$T/err")" != "1 1" ]; then
		wrong=$((wrong + 1))
		sed 's/^/# /' "$T/err"
	fi
done
different=0
for file in model.safetensors optimizer.safetensors train_state.json; do
	cmp "$T/whole/step-$(printf %08d $((100 * kills)))/$file" \
		"$T/killed/step-$(printf %08d $((100 * kills)))/$file" || different=$((different + 1))
done
echo "ranks: $killed ranks killed in $launches launches, $wrong ends told wrongly, $different of 3 files differ"
[ "$wrong$different" = 00 ] && [ $killed -ge "$kills" ]
