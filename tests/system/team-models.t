#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users hold no blanks
# A colleague's model: generate and eval take OWNER/RUN, as status and logs do.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

F=$T/team
play_owner
make_team "$LB_HOME"
as_member() { as $member env LB_HOME="$T/none" LB_TEAM="$F" timeout 60 "$@"; }
lbd_start
sed 's/^flavor = .*/flavor = "debugmodel"/; s/^seq_len = .*/seq_len = 64/; s/^steps = .*/steps = 4/' \
	"$src/etc/train/demo.toml" >"$T/demo.toml"
mkdir "$T/texts"
cat "$src/LICENSE" "$src/LICENSE" >"$T/texts/one"
lbworker prepare --out "$T/mine.tokens" "$T/texts" >/dev/null 2>&1 || bail_out "no tokens"
as $owner lbctl submit "$T/demo.toml" --name mine --set training.dataset_path="$T/mine.tokens" >/dev/null
run_reaches mine completed 60
wait_for "grep -q '\"name\":\"mine\",\"state\":\"completed\"' $F/$owner.json" 20

exits 0 "generate with a colleague's run" as_member lbworker generate $owner/mine --prompt Once --tokens 4
like "$err" "reading $LB_HOME/runs/mine/checkpoints/step-0000000" "reads its newest checkpoint"
exits 0 "eval too" as_member lbworker eval $owner/mine "$T/mine.tokens" --samples 1
exits 2 "a run that the colleague has not" as_member lbworker generate $owner/yours --prompt Once
like "$err" "$owner/yours: no such folder, and no run of a colleague: $LB_HOME/runs/yours: no such run, or its folder is closed" "says where it would be"
exits 2 "who tells of none" as_member lbworker generate nobody/mine --prompt Once
like "$err" "nobody tells the team of no runs; see: lbctl ls --team" "is said"
exits 2 "without a team" as $member env LB_HOME="$T/none" timeout 20 lbworker generate $owner/mine --prompt Once
like "$err" "which team\?.*LB_TEAM names none" "what to name is said"
exits 2 "an outsider reads nothing" as $outsider env LB_HOME="$T/none" LB_TEAM="$F" timeout 20 \
	lbworker generate $owner/mine --prompt Once
done_testing
