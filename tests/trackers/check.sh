#!/bin/sh
# SPDX-License-Identifier: MIT
# make check-trackers: lbctl sync into a real MLflow server, a real Trackio, W&B's offline runs and
# TensorBoard, each read by its own means. lbctl sync is killed in the middle, again and again; then
# each step must be there once.
. "$(dirname "$0")/../system/lib.sh"
[ -x "${PYTHON:-}" ] || { echo "Bail out! PYTHON must have mlflow, trackio, wandb and tensorboard"; exit 1; }
KILLS=${KILLS:-6}
export HOME="$T" WANDB_MODE=offline MLFLOW_DISABLE_TELEMETRY=true TRACKIO_DISABLE_TELEMETRY=1 HF_HUB_OFFLINE=1

mkdir "$T/mlflow"
port=$(free_port)
url=http://127.0.0.1:$port
(cd "$T/mlflow" && exec "$PYTHON" -m mlflow server --host 127.0.0.1 --port "$port" --workers 1 \
	--backend-store-uri "sqlite:///$T/mlflow/db" --artifacts-destination "$T/mlflow/artifacts") >"$T/mlflow.log" 2>&1 &

sync_trainer "$T/trainer"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
to() {
	case $1 in
	mlflow) echo "mlflow=$url" ;;
	*) echo "$1=$T/$1" ;;
	esac
}
where() { case $1 in mlflow) echo "$url" ;; *) echo "$T/$1" ;; esac; }
sync() { lbctl sync first --python "$PYTHON" --to "$(to "$1")"; }
reader() { [ "$1" != wandb ] || printf '%s' "${READER:-}"; }
look() { PYTHONPATH=$(reader "$1") "$PYTHON" "$src/tests/trackers/read.py" "$1" "$(where "$1")" lowbits first 2>"$T/read.err"; }
there() { look "$1" | grep -v '^#' | sort -n || true; [ ! -s "$T/read.err" ] || tail -3 "$T/read.err" | sed 's/^/# /' >&2; }
# Killed after a while that differs each time, its Python with it.
killed() {
	for i in $(seq "$KILLS"); do
		setsid "$B/lbctl" sync first --python "$PYTHON" --to "$(to "$1")" >/dev/null 2>&1 &
		victim=$!
		sleep "$(awk "BEGIN { print 0.15 + $i * ${2:-0.35} }")"
		kill -KILL -$victim 2>/dev/null
		wait $victim 2>/dev/null
	done
}
kinds=${KINDS:-mlflow trackio wandb tensorboard}

wait_for 'python3 -c "import urllib.request; urllib.request.urlopen(\"'"$url"'/health\")" 2>/dev/null' 120
# from a repository
mkdir "$T/code" && cd "$T/code" && git init -q -b main . && echo 'rate = 1' >train.py && git add train.py &&
	git -c user.name=a -c user.email=a@b commit -q -m begin
commit=$(git rev-parse HEAD)
lbctl submit --name first --set 'checkpoint.pattern="step-{step}"' -- "$T/trainer" "$T" --token=abcdefghijk >/dev/null
wait_for '[ -e "$T/second" ]' 60
wait_for 'lbctl events first | grep -q "checkpoint .*step 10"' 60
for kind in $kinds; do
	ok "$kind: while it lives" sync "$kind"
	is "$(there "$kind")" "$(curve 1 10 1)" "$kind: has what a checkpoint has settled"
	[ "$kind" = tensorboard ] && continue
	known=$(look "$kind" | grep '^# ')
	like "$known" "^# git.commit=$commit\$" "$kind: the commit"
	like "$known" '^# checkpoint.pattern=step-.step.$' "$kind: the settings"
	unlike "$known" 'abcdefghijk' "$kind: and no secret"
done
touch "$T/go"
run_reaches first completed 60
for kind in $kinds; do
	killed "$kind"
	sync "$kind" >"$T/out" 2>&1 || diag "$(cat "$T/out")"
	is "$(there "$kind")" "$(curve 1 10 1; curve 11 30 2)" "$kind: one curve, after $KILLS kills of lbctl sync: each step once"
	sync "$kind" >"$T/out" 2>&1
	is "$(cat "$T/out")" "" "$kind: nothing is sent twice"
done

# What a restart sets anew, where MLflow's parameters may not change.
again() { lbctl sync again --python "$PYTHON" --to "$(to mlflow)" >"$T/out" 2>&1 || diag "$(cat "$T/out")"
	"$PYTHON" "$src/tests/trackers/read.py" mlflow "$url" lowbits again 2>&1; }
if echo "$kinds" | grep -q mlflow; then
	lbctl submit --name again --set watch.kill_grace=7s -- \
		sh -c 'echo "step $LB_ATTEMPT/2 loss 1.00"' >/dev/null
	run_reaches again completed 60
	like "$(again)" '^# watch.kill_grace=7s$' "mlflow: a setting is a parameter"
	lbctl restart again --set watch.kill_grace=8s --set watch.stop_grace=9s >/dev/null
	wait_for 'lbctl status again --json | json attempts.1.state | grep -q ended' 60
	run_reaches again completed 60
	known=$(again)
	like "$known" '^# watch.kill_grace=7s$' "mlflow: it stays what it was first"
	like "$known" '^# tag watch.kill_grace=8s$' "mlflow: what a restart has set is a tag of its name"
	like "$known" '^# watch.stop_grace=9s$' "mlflow: what is new is a parameter"
	is "$(again)" "$known" "mlflow: and so it stays"
fi
lbctl restart first --from 10 >/dev/null
wait_for '[ -e "$T/third" ]' 60
run_reaches first completed 60
for kind in $kinds; do
	killed "$kind"
	sync "$kind" >"$T/out" 2>&1 || diag "$(cat "$T/out")"
	is "$(there "$kind")" "$(curve 1 10 1; curve 11 30 3)" "$kind: what a person took back is gone, what came instead is there"
done
done_testing
