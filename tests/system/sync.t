#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl sync: one curve over all attempts, each step once, whatever is interrupted; into
# TensorBoard's files, which need nothing installed. `make check-trackers` does the same with the
# real MLflow, Trackio and W&B.
. "$(dirname "$0")/lib.sh"

sync_trainer "$T/trainer"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
sync() { lbctl sync first --to "tensorboard=$T/tb"; }
# Steps and losses of the file, checksums checked.
there() { python3 "$src/tests/trackers/read.py" events "$T/tb" lowbits first; }

exits 2 "where to must be said" lbctl sync first
exits 2 "by a name that there is" lbctl sync first --to comet
like "$err" 'must be mlflow=URL, trackio' "else the names are told"
lbctl submit --name first --set 'checkpoint.pattern="step-{step}"' -- "$T/trainer" "$T" >/dev/null
wait_for '[ -e "$T/second" ]' 40
wait_for 'lbctl events first | grep -q "checkpoint .*step 10"' 20
sync >/dev/null
is "$(there)" "$(curve 1 10 1)" "while it lives: what a checkpoint has settled"
touch "$T/go"
run_reaches first completed 40
# a torn write, as after a power cut
printf 'torn' >>"$(echo "$T"/tb/first/events*)"
like "$(sync)" '^first  tensorboard  20 steps sent, 30 in all' "at its end all"
is "$(there)" "$(curve 1 10 1; curve 11 30 2)" "one curve: what was made again counts as it was made last"
is "$(sync)" "" "nothing is sent twice"
like "$(lbctl sync --to "tensorboard=$T/again")" '^first  tensorboard  30 steps' "another place has all; without names all runs go"

# --- a person goes back to an older checkpoint ----------------------------------------------------
lbctl restart first --from 10 >/dev/null
wait_for '[ -e "$T/third" ]' 40
run_reaches first completed 40
sync >/dev/null
is "$(there)" "$(curve 1 10 1; curve 11 30 3)" "steps that were sent and are made anew are made anew there, too"
lbctl submit --name none -- true >/dev/null
run_reaches none completed 20
like "$(lbctl sync 'fir*' --to "tensorboard=$T/pattern")" '^first  tensorboard  30 steps' "a pattern names runs"
is "$(lbctl sync none --to "tensorboard=$T/tb")" "" "a run without steps has nothing to send"
exits 1 "a tracker that is not there" lbctl sync first --to mlflow=http://127.0.0.1:1
like "$err" 'first: mlflow: http://127.0.0.1:1/api.*refused' "is said to be away"
exits 1 "a Python that is not there" lbctl sync first --to wandb --python no-python
like "$err" "no-python: there is no such program" "is said, too"

# It needs no /tmp, and its Python ends with it: what a second call sends is sent by no first one.
if unshare -m true 2>/dev/null; then
	cat >"$T/no-tmp.sh" <<'END'
mount --bind /tmp /tmp && mount --bind "$1" "$1" && mount -o remount,bind,ro /tmp || exit 99
exec lbctl sync first --to "tensorboard=$1/no-tmp"
END
	exits 0 "where /tmp takes no file" unshare -m sh "$T/no-tmp.sh" "$T"
	like "$out" '30 steps sent' "it sends"
fi
printf '#!/bin/sh\necho $$ >"%s/python.new" && mv "%s/python.new" "%s/python"\nexec sleep 6543\n' "$T" "$T" "$T" >"$T/slow"
chmod +x "$T/slow"
lbctl sync first --to "tensorboard=$T/slow-tb" --python "$T/slow" &
slow=$!
wait_for '[ -s "$T/python" ]' 20
kill $slow
wait_for '! kill -0 "$(cat "$T/python")" 2>/dev/null' 20 && passed "ended by a signal it leaves no Python behind"

# --- again and again ------------------------------------------------------------------------------
lbctl sync first --to "tensorboard=$T/every" --every 200ms >/dev/null 2>"$T/every.err" &
every=$!
wait_for '[ -e "$T/every/first" ]' 20
lbd_stop
wait_for '[ "$(grep -c "^lbctl: " "$T/every.err")" -ge 2 ]' 20 &&
	passed "--every goes on while lbd is away, and says so"
kill $every

# --- by itself ------------------------------------------------------------------------------------
printf '[poll]\ninterval = "200ms"\n[sync]\nto = ["tensorboard=%s"]\nevery = "200ms"\n' "$T/own" >"$LB_HOME/lbd.toml"
lbd_start
wait_for '[ "$(python3 "$src/tests/trackers/read.py" events "$T/own" lowbits first | wc -l)" = 30 ]' 30 &&
	passed "[sync] does it every so often"
lbd_stop
python3 - "$T/posts" "$T/port" <<'END' &
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[1], "a").write("asked\n")
        self.send_error(503)
    do_POST = do_GET
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[2], "w").write(str(server.server_port))
server.serve_forever()
END
wait_for '[ -s "$T/port" ]' 10
printf '[sync]\nto = ["mlflow=http://127.0.0.1:%s"]\nevery = "200ms"\n' "$(cat "$T/port")" >"$LB_HOME/lbd.toml"
lbd_start
wait_for '[ "$(wc -l <"$T/posts")" -ge 6 ]' 40
is "$(grep -c 'lbctl: first: mlflow' "$T/lbd.log")" 1 "of an outage it tells once"
done_testing
