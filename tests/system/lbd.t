#!/bin/sh
# SPDX-License-Identifier: MIT
# lbd as a process: what it tells systemd, how it goes into the background, how it ends.
. "$(dirname "$0")/lib.sh"

# A stand-in for systemd: prints every datagram on one line until STOPPING=1 has come.
cat >"$T/systemd.py" <<'PY'
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
print("bound", flush=True)
while True:
    text = s.recv(4096).decode()
    print(text.replace("\n", " "), flush=True)
    if "STOPPING=1" in text:
        break
PY
python3 "$T/systemd.py" "$T/notify" >"$T/heard" &
wait_for 'grep -q bound "$T/heard"' 20
export NOTIFY_SOCKET="$T/notify"
WATCHDOG_USEC=200000 lbd_start
wait_for 'grep -q "^READY=1 STATUS=0 live runs" "$T/heard"' 20
passed "READY=1 with a status"
lbctl submit --name one -- sleep $mark >/dev/null
wait_for 'grep -q "^WATCHDOG=1 STATUS=1 live runs" "$T/heard"' 20
passed "WATCHDOG=1, and the status follows what happens"
run_reaches one running 20
lbd_stop
is $? 0 "SIGTERM ends it with status 0"
wait_for 'grep -q "^STOPPING=1" "$T/heard"' 20
passed "STOPPING=1"
unset NOTIFY_SOCKET

ok "the job runs on without lbd" pgrep -f "^sleep $mark\$"
[ -e "$LB_HOME/lbd.sock" ]
is $? 1 "its socket is gone"
ok "a backup of the ledger was made" test -s "$LB_HOME/ledger.db.bak"

# lbrun's word on the end counts where its spool is damaged; the run is not done again.
lbd_start
lbctl submit --name unread -- await "$T/end" >/dev/null
run_reaches unread running 20
lbd_stop
spool=$LB_HOME/runs/unread/attempts/1
: >"$T/end"
await "$spool/exit.json"
rm "$spool/spool.jsonl"
mkdir "$spool/spool.jsonl"
lbd_start
run_reaches unread completed 40
is "$(lbctl status unread --json | json attempts.#)" 1 "what lbrun wrote down counts without its spool"
is "$(grep -c 'unread: spool: ' "$T/lbd.log")" 1 "of which the log tells once"
lbd_stop

# What was told while lbd was away takes many turns to read; people are heard between them.
cat >"$T/talks.py" <<'PY'
import os, socket, subprocess, sys
subprocess.run(["await", sys.argv[1]])
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.connect(os.environ["LB_SOCKET"])
for begin in range(1, 300001, 1000):
    s.sendall("".join('{"type":"step","step":%d,"loss":1.5,"tokens_per_s":12345.6}\n' % i
                      for i in range(begin, begin + 1000)).encode())
s.close()
PY
lbd_start
lbctl submit --name talks -- python3 "$T/talks.py" "$T/talk" >/dev/null
run_reaches talks running 20
lbd_stop
: >"$T/talk"
await "$LB_HOME/runs/talks/attempts/1/exit.json"
LB_FAILPOINT=ingest.written:delay:2s@2 lbd_start
state=$(lbctl status talks --json)
is "$(echo "$state" | json state)" running "lbd answers before it has read a long spool"
ok "of which it has read a part" [ "$(echo "$state" | json step)" -lt 300000 ]
run_reaches talks completed 40
is "$(lbctl status talks --json | json step)" 300000 "then it has all of it"
lbd_stop

# Into the background: the shell gets its prompt back when commands are served.
ok "lbd without --foreground returns once it is ready" nohup lbd
lbd_pid=$(sed 's/^pid \([0-9]*\) .*/\1/' "$LB_HOME/lbd.lock")
is "$(run_state one)" running "the run of before is still there"
ok "its log is a file" grep -q 'serves' "$LB_HOME/lbd.log"
exits 4 "a second one says so on the terminal, and fails" lbd
like "$err" "pid $lbd_pid" "it names the holder"
mv "$LB_HOME/lbd.log" "$LB_HOME/lbd.log.1"
kill -HUP "$lbd_pid"
wait_for 'grep -qs "opened anew" "$LB_HOME/lbd.log"' 20
is "$(run_state one) $(lives "$lbd_pid" && echo lives)" "running lives" "SIGHUP ends no lbd in the background: its log is opened anew"
ok "the run can be killed" lbctl kill --now one
run_reaches one killed 20
wait_for '! pgrep -f "^sleep $mark\$"' 20
passed "no process of it is left"
ok "SIGTERM ends it" kill "$lbd_pid"
wait_for 'lbd_is_gone' 20
lbd_pid=

lbd_start
kill -HUP "$lbd_pid"
wait_for 'lbd_is_gone' 20
exits 5 "SIGHUP ends one in the foreground" lbctl daemon status
like "$out" 'it ended .*: hung up .SIGHUP.: its terminal or session' "cleanly"
lbd_pid=

# Whoever waits for lbworker's word on a config is told that lbd ends, and may ask the next one.
mkdir "$T/beside"
ln -s "$B/lbrun" "$T/beside/lbrun"
printf '#!/bin/sh\n: >"%s/asked"\nexec sleep 5\n' "$T" >"$T/beside/lbworker"
chmod +x "$T/beside/lbworker"
printf '[runs]\nlbrun = "%s"\n' "$T/beside/lbrun" >"$LB_HOME/lbd.toml"
echo '[model]' >asked.toml
lbd_start
lbctl submit --name asked asked.toml >"$T/told" 2>&1 &
asker=$!
wait_for '[ -e "$T/asked" ]' 20
ok "lbd ends while a config is looked at" lbd_stop
wait "$asker"
like "$(cat "$T/told")" 'lbd ends; submit it again' "who asked is told so"
ok "and nothing of it stays" [ ! -e "$LB_HOME/runs/asked" ]
rm "$LB_HOME/lbd.toml"

exits 0 "--check-config says what is in force" lbd --check-config
like "$out" 'idle_interval = ' "as TOML"
exits 2 "a time that is none" lbd --until yesterday
like "$err" '^lbd: --until: "yesterday" is no number from 0 to ' "is refused, and not never"
exits 2 "so is a descriptor" lbd --ready-fd x
exits 2 "a letter that is no option, among others" lbd --foreground -fv
like "$err" '^lbd: -f: no such option' "is named, not the word before it"
exits 2 "a flag with a value" lbd --verbose=2
like "$err" '^lbd: --verbose=2: takes no value' "is told what is wrong"
exits 2 "an option without its value" lbd --home
like "$err" '^lbd: --home: its value is missing' "so is this one"
exits 0 "--version" lbd --version
exits 0 "--help" lbd --help
like "$out" '^usage: lbd' "says how it is used"
done_testing
