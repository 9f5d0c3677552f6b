#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC3045,SC2012 # verbs are words; dash has ulimit -c; ls shows odd names
# A thousand hostile names and reasons reach no shell, no other file and no terminal; a secret of
# run.env_file is nowhere but there and in the environment of its own job.
wants_cores=yes
. "$(dirname "$0")/lib.sh"

canary=canary$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
printf 'SECRET=%s\n' $canary >"$T/env" && chmod 600 "$T/env"
mkdir "$T/team" && chmod 3770 "$T/team"
printf '[team]\ngroup = "%s"\nfolder = "%s"\n[poll]\ninterval = "200ms"\n' \
	"$(id -gn)" "$T/team" >"$LB_HOME/lbd.toml"
cluster_start 1
ulimit -c unlimited
lbd_start

# --- names and reasons ----------------------------------------------------------------------------
cat >"$T/hostile.py" <<'PY'
import json, os, random, socket, sys
home, work = sys.argv[1], sys.argv[2]
rng = random.Random(1)
bits = ["$(touch pwned)", "`touch pwned`", ";touch pwned;", "|touch pwned", "&touch pwned&", "\n", "\r", "\0", "\x1b[31m",
        "\x1b]0;t\x07", "\x9b2J", "%n%s%n", "../", "/", "..", "'", '"', "\\", "-rf", "--", "*", "?", "~", "\u202e", "\u200b",
        "\ud800", "é", "ALL", "@group", "@user", ".kill", "{}", "{{", " ", "\t", "\x7f", "\x01", "A" * 300]
hostile = ["".join(rng.choice(bits) for _ in range(rng.randint(1, 5))) for _ in range(1000)]
s = socket.socket(socket.AF_UNIX)
s.connect(home + "/lbd.sock")
f = s.makefile("r", encoding="utf-8", errors="surrogateescape")
def ask_all(*questions):
    s.sendall(b"".join(json.dumps({"v": 1, "verb": verb, "args": args}).encode() + b"\n"
                       for verb, args in questions))
    lines = [f.readline() for _ in questions]
    assert not any(ord(c) < 32 for line in lines for c in line.rstrip("\n")), "raw control characters"
    return [json.loads(line) for line in lines]
bad = 0
for text in hostile:
    job = {"command": ["true"], "workdir": work}
    is_one = "*" not in text and text != "ALL" and "?" not in text
    answers = ask_all(("submit", {"name": text, **job}),
                      ("submit", {"set": ["run.group=" + json.dumps(text)], **job}),
                      ("status", {"run": text}),
                      ("kill", {"runs": [text if is_one else "x/"], "reason": text}),
                      ("save", {"run": "victim", "reason": text}))
    if any(answer["ok"] for answer in answers[:3]):
        print("accepted:", ascii(text))
        bad += 1
    name = os.fsencode(text.replace("/", "_").replace("\0", "_").encode("utf-8", "surrogatepass"))[:250]
    if name not in (b".", b"..") and b"ALL" not in name and b"*" not in name and b"?" not in name:
        open(home.encode() + b"/switches/" + name, "wb").write(text.encode("utf-8", "surrogatepass"))
print(ask_all(("kill", {"run": "other", "reason": "\x1b[31m\n" + hostile[0] * 100}))[0]["ok"])
sys.exit(bad > 0)
PY
cat >"$T/onpty.py" <<'PY'
import os, pty, re, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 65536)
    out += data
    return data
pty.spawn(sys.argv[1:], read, lambda fd: b"")
text = out.decode("utf-8", "replace")
text = re.sub("\x1b\\[[0-9;]*m", "", text).replace("\r\n", "\n")
bad = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202e\u200b"]
print(len(text), "characters,", len(bad), "bad:", ascii("".join(bad[:20])), ascii(text[:300]))
sys.exit(len(bad) > 0 or len(text) < 1000)
PY
mkdir "$T/work"
for run in victim other; do
	(cd "$T/work" && lbctl submit --name $run -- sh -c 'ulimit -c >limit; exec sleep 6543' \
		>/dev/null)
done
for run in victim other; do run_reaches $run running 30; done
ok "1000 hostile names and groups are refused" python3 "$T/hostile.py" "$LB_HOME" "$T/work"
run_reaches other killed 30
# where a shell of lbd's, of Slurm's or of ours would be
is "$(find "$T" -name pwned; ls -d "$PWD/pwned" /pwned /tmp/pwned "$HOME/pwned" 2>/dev/null)" "" \
	"none of them reached a shell"
is "$(ls "$LB_HOME/runs" | tr '\n' ' ')" "other victim " "nor became a folder"
is "$(lbctl ls --team --json | json '#')" 2 "nor is told to the team"
is "$(run_state victim)" running "nor an order"
ok "a terminal gets none of it raw: events" python3 "$T/onpty.py" lbctl events
ok "… nor does the log" sh -c "! grep -aPq '[\x00-\x08\x0b-\x1f\x7f]' '$T/lbd.log'"
find "$LB_HOME/switches" -type f ! -name README -delete

# --- the canary -----------------------------------------------------------------------------------
lbctl submit --name secret --set "run.env_file=$T/env" --set run.workdir="$T/work" \
	-- sh -c 'echo "${#SECRET} bytes"; exec sleep 6543' >/dev/null
run_reaches secret running 30
wait_for 'grep -q "bytes" "$LB_HOME/runs/secret/attempts/1/out.log"' 20
like "$(lbctl logs secret)" "${#canary} bytes" "the trainer has the secret"
lbctl save secret >/dev/null
wait_for 'grep -q "\"name\":\"secret\"" "$T"/team/*.json' 20
{
	for verb in ls "ls --json" "ls --team --json" "status secret" \
		"status secret --json" "events secret --json" "goodput secret --json" \
		"nodes --json" "version --json" "logs secret --json"; do lbctl $verb; done
	lbctl submit --dry-run --json --set "run.env_file=$T/env" -- true
	job=$(lbctl status secret --json | json attempts.0.job_id)
	scontrol show job "$job"
	scontrol write batch_script "$job" -
	cat /proc/[0-9]*/cmdline | tr '\0' ' '
} >"$T/said" 2>/dev/null
is "$(grep -c $canary "$T/said")" 0 "the secret is in no reply, argv, script or comment"
is "$(grep -rlF $canary "$T" --exclude-dir=slurm)" "$T/env" "and in no file but its own"
# shellcheck disable=SC2046 # paths
is "$(grep -lF $canary /proc/$lbd_pid/environ $(pgrep -P $lbd_pid | sed 's|.*|/proc/&/environ|') 2>/dev/null)" "" \
	"nor in the environment of lbd and its helpers"
limit=unlimited
! ldd "$B/lbrun" | grep -q libasan || limit=0	# the address sanitizer forbids them by itself
is "$(cat "$T/work/limit")" "$limit" "a trainer keeps its limit of core files"
# shellcheck disable=SC2046 # process ids
ok "its lbrun is told to dump core" kill -ABRT $(shepherds "$(lbctl status secret --json | json attempts.0.job_id)")
wait_for '[ "$(run_state secret)" != running ] || [ -e "$LB_HOME/runs/secret/attempts/1/exit.json" ]' 30
is "$(grep -rlF $canary "$T" --exclude-dir=slurm)" "$T/env" \
	"an lbrun that dumps core leaves none behind"
lbctl kill --now --yes ALL >/dev/null
done_testing
