#!/bin/sh
# SPDX-License-Identifier: MIT
# News of runs reach a program and a web address: once, in order, in spite of failures, and without
# ever showing the address or holding lbd up.
. "$(dirname "$0")/lib.sh"

# Answers the first POST with 500; writes down what it gets.
cat >"$T/server.py" <<'PY'
import http.server, json, sys
seen = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global seen
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen += 1
        self.send_response(500 if seen == 1 else 200)
        self.end_headers()
        with open(sys.argv[1], "a") as f:
            f.write(f"{self.path} {seen} {body.decode()}\n")
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[2], "w").write(str(server.server_port))
server.serve_forever()
PY
python3 "$T/server.py" "$T/posts" "$T/port.tmp" &
wait_for '[ -s "$T/port.tmp" ]' 10
port=$(cat "$T/port.tmp")

cat >"$T/hook" <<'SH'
#!/bin/sh
cat >>"$1"
echo first a word >/dev/stderr
yes noise | head -n 100000 >>/dev/stderr
echo >>"$1"
SH
chmod +x "$T/hook"

cat >"$LB_HOME/lbd.toml" <<EOF_CONF
[poll]
interval = "200ms"
[notify]
hook = ["$T/hook", "$T/news"]
webhook = "http://127.0.0.1:$port/s3cret-path"
on = ["failed", "completed"]
EOF_CONF
lbd_start

field() { sed -n "$1p" "$T/news" | json "$2"; }
posts() { cut -d' ' -f3- "$T/posts" | sed 's/.*"what":/"what":/' | wc -l; }

lbctl submit --name a --set 'restart.never_on_exit_codes=[3]' -- sh -c 'exit 3' >/dev/null
run_reaches a failed 20
wait_for '[ -s "$T/news" ] && [ "$(posts)" -ge 2 ]' 20
is "$(field 1 run) $(field 1 kind) $(field 1 attempt) $(field 1 cause)" "a failed 1 error" "the hook is told run, kind, attempt and cause"
like "$(field 1 next)" 'lbctl restart' "and what to do next"
like "$(field 1 text)" '^a: failed: .*never_on_exit_codes' "in a line for people"
is "$(wc -l <"$T/news")" 1 "once"
like "$(cat "$T/lbd.log")" 'warn lbd: notify: the hook says: first a word$' "what it complains of is in the log"
ok "no more than the beginning of it" [ "$(wc -c <"$T/lbd.log")" -lt 50000 ]
like "$(sed -n 1p "$T/posts")" '^/s3cret-path 1 .*"run":"a"' "the address is told the same"
like "$(sed -n 2p "$T/posts")" '^/s3cret-path 2 .*"run":"a"' "it failed, and was tried again"

# News of the time when lbd was away are told when it is back.
lbctl submit --name b -- true >/dev/null
run_reaches b completed 20
lbd_kill9
lbd_start
wait_for 'grep -q "\"run\":\"b\"" "$T/posts" && grep -q "\"run\":\"b\"" "$T/news"' 20
like "$(tail -n 1 "$T/news")" '"run":"b"' "an lbd that was killed tells the rest when it is back"

# Numbers of events that went with a run are not given again: the next news would seem old.
lbctl submit --name long --set restart.max_without_progress=3 --set restart.backoff_first=0 -- false >/dev/null
run_reaches long failed 20
wait_for 'grep -q "\"run\":\"long\"" "$T/news"' 20
lbctl rm --yes long >/dev/null
lbctl submit --name next -- true >/dev/null
ok "nothing is untold because a run was removed" wait_for 'grep -q "\"run\":\"next\"" "$T/news"' 20

# A hook that fails, and one that hangs: lbd serves all the same.
lbd_stop
printf '[poll]\ninterval = "200ms"\n[notify]\nhook = ["/nonexistent"]\non = ["completed"]\n' >"$LB_HOME/lbd.toml"
lbd_start
lbctl submit --name c -- true >/dev/null
run_reaches c completed 20
wait_for 'lbctl events c | grep -q notify_failed' 40
like "$(lbctl events c)" 'notify_failed .*hook could not be told' "a hook that cannot be told is an event"
lbd_stop
printf '[poll]\ninterval = "200ms"\n[notify]\nhook = ["sh", "-c", "sleep %s; true"]\non = ["completed"]\n' $mark >"$LB_HOME/lbd.toml"
lbd_start
lbctl submit --name d -- true >/dev/null
run_reaches d completed 20
wait_for 'pgrep -f "^sleep $mark\$" >/dev/null' 10
start=$(now_ms)
lbctl status d >/dev/null
ok "a hook that hangs holds nobody up" in_time $(($(now_ms) - start)) 1000
ok "and lbd ends all the same" lbd_stop
ok "with the program of the hook's script that hangs" wait_for '! pgrep -f "^sleep $mark\$"' 5

# --- a test, and the ways that etc/notify knows, each against a server of its kind ----------------
lbd_stop
rm "$LB_HOME/lbd.toml"
lbd_start
exits 2 "a test needs somebody to tell" lbctl notify test
like "$err" 'neither notify.hook nor notify.webhook' "and says so"
cat >"$T/world.py" <<'PY'
import http.server, socketserver, sys, threading
def note(*words):
    with open(sys.argv[1], "a") as f:
        print(*words, file=f)
class Web(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        note(self.command, self.path, self.headers.get("Authorization"), self.headers.get("Title"), body)
        self.send_response(200)
        self.end_headers()
    do_PUT = do_POST
    def log_message(self, *args):
        pass
class Mail(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\r\n")
        data = False
        for line in self.rfile:
            line = line.decode().rstrip()
            if data:
                data = line != "."
                note("MAIL", line)
                if data:
                    continue
            if line[:4].upper() == "DATA":
                data = True
                self.wfile.write(b"354 go\r\n")
            elif line[:4].upper() == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 ok\r\n")
web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
mail = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)
threading.Thread(target=mail.serve_forever, daemon=True).start()
open(sys.argv[2], "w").write(f"{web.server_port} {mail.server_address[1]}\n")
web.serve_forever()
PY
python3 "$T/world.py" "$T/seen" "$T/ports" &
wait_for '[ -s "$T/ports" ]' 10
read -r web mail <"$T/ports"
echo t0ken >"$T/matrix-token"
told_by() {	# WORDS-OF-HOOK
	lbd_stop
	printf '[poll]\ninterval = "200ms"\n[notify]\nhook = ["%s", %s]\n' "$src/etc/notify" "$1" >"$LB_HOME/lbd.toml"
	lbd_start
	lbctl notify test >"$T/told"
}
told_by "\"slack\", \"http://127.0.0.1:$web/services/x\""
is "$(cat "$T/told")" "the hook was told" "Slack"
like "$(cat "$T/seen")" '^POST /services/x .*"text": "notify_test: news of runs come this way' "is told"
printf '{"kind":"failed","text":"first: <!channel> & <class>"}' | "$src/etc/notify" slack "http://127.0.0.1:$web/services/x"
like "$(tail -n 1 "$T/seen")" '"first: &lt;!channel&gt; &amp; &lt;class&gt;"' "what Slack would act upon is text"
told_by "\"ntfy\", \"http://127.0.0.1:$web/topic\""
is "$(cat "$T/told")" "the hook was told" "ntfy"
like "$(tail -n 1 "$T/seen")" '^POST /topic None lbd: notify_test notify_test: news' "is told, with a title"
told_by "\"matrix\", \"http://127.0.0.1:$web\", \"!r:x\", \"$T/matrix-token\""
is "$(cat "$T/told")" "the hook was told" "Matrix"
like "$(tail -n 1 "$T/seen")" '^PUT /_matrix/client/v3/rooms/%21r%3Ax/send/m.room.message/[0-9a-f]+ Bearer t0ken .*"m.text"' "is told"
told_by "\"email\", \"ada@example.org\", \"127.0.0.1:$mail\""
is "$(cat "$T/told")" "the hook was told" "a mailbox"
like "$(grep MAIL "$T/seen")" 'Subject: notify_test: news of runs' "is told"
lbd_stop
printf '[notify]\nhook = ["true"]\non = ["faild"]\n' >"$LB_HOME/lbd.toml"
exits 2 "an unknown kind is refused" lbd --home "$LB_HOME" --check-config
cd "$src" || exit 1
grep -hoE '(engine_event|journal_note|cron_event)\([^"]*"[a-z_]+"|\.kind = "[a-z_]+"' \
	-r --include='*.c' daemon worker/lbrun | grep -oE '"[a-z_]+"' | grep -vE '"(lbd|lbrun)"' | sort -u | paste -sd, >"$T/kinds"
like "$(cat "$T/kinds")" '"launch_end".*"scratch"' "kinds that the source has"
printf '[notify]\nhook = ["true"]\non = [%s]\n' "$(cat "$T/kinds")" >"$LB_HOME/lbd.toml"
ok "are all known" lbd --home "$LB_HOME" --check-config
printf '[notify]\nhook = ["true"]\non = ["faild"]\n' >"$LB_HOME/lbd.toml"
exits 2 "the message" lbd --home "$LB_HOME" --check-config
like "$err" 'lbd.toml:[0-9]+: notify.on: there is no kind "faild" of events; did you mean "failed"' "with the nearest"

is "$(grep -rl s3cret-path "$T/lbd.log" "$LB_HOME/ledger.db" "$LB_HOME/runs" | wc -l)" 0 "the address is nowhere"
printf '[notify]\nwebhook = "ftp://x/s3cret-path"\n' >"$LB_HOME/lbd.toml"
exits 2 "an address that is none" lbd --home "$LB_HOME" --check-config
is "$(echo "$err" | grep -c s3cret)" 0 "is refused without being shown"
printf '[notify]\nwebhook = "http://x/s3cret-path"\n' >"$LB_HOME/lbd.toml"
exits 0 "a good one is taken" lbd --home "$LB_HOME" --check-config
is "$(echo "$out" | grep -c s3cret)" 0 "and not shown"
done_testing
