#!/bin/sh
# SPDX-License-Identifier: MIT
# The submitter's environment reaches a batch script byte for byte, whatever the names of variables
# are and whatever shell /bin/sh is: in a job of Slurm, in one of this machine, and in cron's.
# A mount namespace shows each shell that is installed as /bin/sh, while jobs are submitted and run.
if [ -z "${LB_INSIDE:-}" ] && unshare -m true 2>/dev/null; then
	LB_INSIDE=1 exec unshare -m sh "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

cat >"$T/tell.py" <<'END'
#!/usr/bin/python3
#SBATCH --mem=100M
import os, sys
# not os.environ: the bytes as they came
data = open("/proc/self/environ", "rb").read()
with open(os.environ["TELL"] + ".new", "wb") as f: f.write(data)
os.rename(os.environ["TELL"] + ".new", os.environ["TELL"])
END
cat >"$T/submit.py" <<'END'
import os, subprocess, sys
names = {b"BASH_FUNC_module%%": b"() {  local x='a  b';\n  echo \"$x\"\n}", b"BASH_FUNC_ml()": b"() { :; }",
         b"with.dot": b"1", b"with-dash": b"2", b"1digit": b"3", b"sp ace": b"4", b"latin\xe9": b"5\xff",
         b"EMPTY": b"", b"empty.too": b"", b"LINES2": b"a\nb\n\n", b"tab\tname": b"\t", b"QUOTES": b"'\"$(x)`\\",
         b"LARGE": b"x" * 100000, b"LARGE.TOO": bytes(33 + i % 90 for i in range(100000)), b"BIG3": b"\xff" * 100000,
         b"SHLVL": b"7", b"_": b"/what/it/was", b"OLDPWD": b"/", b"PWD": b"/link/as/seen", b"OPTIND": b"5",
         b"SECONDS": b"1", b"RANDOM": b"2", b"LINENO": b"x", b"PPID": b"1", b"IFS": b",", b"ENV": b"", b"PS4": b"++ "}
env = {k: v for k, v in os.environb.items() if not k.startswith(b"BASH_FUNC")}
env.update(names)
env[b"TELL"] = os.fsencode(sys.argv[1])
if sys.argv[2:]:
    subprocess.run(sys.argv[2:], env=env, check=True, stdout=subprocess.DEVNULL)
else:
    got = dict(e.split(b"=", 1) for e in open(sys.argv[1], "rb").read().split(b"\0") if e)
    for name, value in env.items():
        if got.get(name) != value:
            print(name, "is", (got[name] if name in got else b"not there")[:60], "not", value[:60])
END

# each_shell NAME: a run under each of them
each_shell() {
	way=$1
	if [ -z "${LB_INSIDE:-}" ]; then
		diag "no mount namespaces for this user: with the /bin/sh that is there"
		under sh "$way"
		return
	fi
	for shell in dash bash busybox mksh ksh93 zsh posh yash; do
		path=$(command -v $shell) || continue
		mount --bind "$(realpath "$path")" "$(realpath /bin/sh)" || bail_out "$shell: no mount"
		under $shell "$way"
		umount "$(realpath /bin/sh)"
	done
}
under() {	# SHELL NAME
	name=$2-$1
	python3 "$T/submit.py" "$T/env.$name" lbctl submit --name "$name" "$T/tell.py" &&
		lbctl wait "$name" --timeout 60s >/dev/null
	is "$(python3 "$T/submit.py" "$T/env.$name")" "" "$name: byte for byte"
}

cd "$T" || exit 1
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
each_shell local
lbd_stop

cluster_start 1
# nobody submits a script of cron: it meets what a login gives, and that just so
mkdir -p "$LB_HOME/cron/cron.daily"
sed 's,os.environ\["TELL"\],os.environ["LB_RUN_DIR"] + "/env",g' "$T/tell.py" >"$LB_HOME/cron/cron.daily/tell.sh"
chmod 755 "$LB_HOME/cron/cron.daily/tell.sh"
lbd_start
ok "cron's script" lbctl cron run tell
run=$(cd "$LB_HOME/runs" && echo tell*)
run_reaches "$run" completed 60
is "$(tr '\0' '\n' <"$LB_HOME/runs/$run/env" | grep -E '^(SHLVL|_|OLDPWD|PWD|PATH|HOME)=' | sort)" \
	"HOME=$HOME
PATH=$PATH" "cron: what a login gives, and nothing of a shell's"
each_shell slurm
lbd_stop
printf '[slurm]\nsubmit_with = "sbatch"\n' >>"$LB_HOME/lbd.toml"
lbd_start
each_shell sbatch
done_testing
