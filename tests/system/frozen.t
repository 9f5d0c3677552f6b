#!/bin/sh
# SPDX-License-Identifier: MIT
# A controller and a munge daemon that no longer answer must not stop lbd from answering; what was
# asked meanwhile happens once they are back, once.
. "$(dirname "$0")/lib.sh"

# 50 times `lbctl status`, as whole processes: median and slowest, in ms.
time_status() {
	python3 - "$1" <<'PY'
import subprocess, sys, time
times = []
for _ in range(50):
    start = time.monotonic()
    subprocess.run(["lbctl", "status", sys.argv[1], "--json"], check=True, stdout=subprocess.DEVNULL)
    times.append((time.monotonic() - start) * 1000)
times.sort()
print(int(times[25]), int(times[-1]))
PY
}

# A call that waits for Slurm takes five seconds at least, whatever else this machine is doing.
answers() {	# RUN NAME
	read -r median slowest <<-EOF
		$(time_status "$1")
	EOF
	diag "median $median ms, slowest $slowest ms"
	ok "$2" test "$median" -le $((limit * patience)) -a "$slowest" -le 4500
}
limit=50
case $B in *san*) limit=500 ;; esac	# sanitizers slow everything down

cluster_start 1
python3 -c '
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        open(sys.argv[1], "a").write(self.path + "\n")
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[2], "w").write(f"{server.server_port}\n")
server.serve_forever()' "$T/gets" "$T/port" &
wait_for '[ -s "$T/port" ]' 20
cat >"$LB_HOME/lbd.toml" <<END
[poll]
interval = "200ms"
idle_interval = "200ms"
deadline = "5s"
[notify]
deadman_file = "$T/alive"
deadman_url = "http://127.0.0.1:$(cat "$T/port")/s3cret"
deadman_interval = "100ms"
END
lbd_start
lbctl submit --name before -- sh -c 'await "$LB_RUN_DIR/go"' >/dev/null
run_reaches before running 20
wait_for '[ -s "$T/alive" ]' 20
like "$(cat "$T/alive")" '^20..-..-.. ' "a sign of life is given while lbd sees Slurm"
gets() { wc -l <"$T/gets"; }
wait_for '[ "$(gets)" -ge 2 ]' 20
like "$(tail -n 1 "$T/gets")" '^/s3cret$' "by the address, too"

cluster_signal slurmctld STOP
cluster_signal munged STOP
ok "a run is accepted while Slurm is frozen" lbctl submit --name during \
	-- sh -c 'echo >>"$LB_RUN_DIR/starts"'
answers before "lbctl status answers in $limit ms"
wait_for 'lbctl version --json | json lbd.slurm_down_since | grep -q "[0-9]"' 30
passed "lbd says since when Slurm is away"
rm "$T/alive"
signs=$(gets)
answers during "and still answers after the helper was given up"
: >"$LB_HOME/runs/before/go"
wait_for '[ -e "$LB_HOME/runs/before/attempts/1/exit.json" ]' 20
# one was perhaps on its way
ok "no sign of life meanwhile" test ! -e "$T/alive" -a "$(gets)" -le $((signs + 1))
is "$(grep -c s3cret "$T/lbd.log")" 0 "the address is not logged"

cluster_signal munged CONT
cluster_signal slurmctld CONT
run_reaches before completed 60
passed "the run that ended meanwhile is completed"
wait_for '[ -e "$T/alive" ] && [ "$(gets)" -gt "$signs" ]' 20
passed "the signs are back"
run_reaches during completed 60
passed "the run that was submitted meanwhile is completed"
is "$(wc -l <"$LB_HOME/runs/during/starts")" 1 "its trainer was started once"
wait_for '[ "$(squeue -h | wc -l)" = 0 ]' 60
passed "no ghost is left in the queue"

# Away altogether.
cluster_signal slurmctld KILL
ok "a run is accepted while slurmctld is dead" lbctl submit --name dead -- true
answers dead "lbctl status answers in $limit ms"
"$src/etc/minicluster" start-ctld "$cluster" >/dev/null
run_reaches dead completed 60
passed "the run starts once it is back"
done_testing
