#!/bin/sh
# SPDX-License-Identifier: MIT
# Several helpers side by side, each for one libslurm: lbd takes the one that fits this site's
# Slurm, and another when Slurm is exchanged under it. No run loses its job by that.
. "$(dirname "$0")/lib.sh"

cluster_start 1
mkdir -p "$T/inst/bin" "$T/inst/lib/lowbits"
cp "$B/lbd" "$B/lbctl" "$B/lbrun" "$B/lbd-slurm-commands" "$T/inst/bin"
cp "$B/lbd-slurm" "$T/inst/lib/lowbits/lbd-slurm-here"
PATH=$T/inst/bin:$PATH
helpers=$T/inst/lib/lowbits
site=$(scontrol --version | sed 's/.* //')
here=$helpers/lbd-slurm-1

# One whose library is another release's: it runs, and the controller does not speak its version.
other() {	# FILE RELEASE
	cat >"$1" <<END
#!/bin/sh
[ "\$1" != --version ] || { echo "lbd-slurm 0.1.0 (Slurm $2)"; exit; }
while read -r line; do	# an environment may hold anything
	id=\$(printf '%s' "\$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	echo "{\"id\":\$id,\"result\":\"down\",\"text\":\"Incompatible versions\",\"unfit\":true}"
done
END
	chmod +x "$1"
}
# One whose library is not there.
gone() {	# FILE
	printf '#!/bin/sh\necho "error while loading shared libraries: libslurm.so.99" >&2\nexit 127\n' >"$1.new"
	chmod +x "$1.new"
	mv "$1.new" "$1"
}
own_lbd() {
	B=$T/inst/bin lbd_start
}
in_use() { lbctl version --json | json lbd.slurm_helper; }
helper_pid() { pgrep -P "$lbd_pid" -f lbd-slurm; }

# --- which one -----------------------------------------------------------------------------------
mv "$helpers/lbd-slurm-here" "$here"
other "$helpers/lbd-slurm-2" 20.02.1
other "$helpers/lbd-slurm-3" 99.05.1
gone "$helpers/lbd-slurm-4"
own_lbd
is "$(basename "$(in_use)")" lbd-slurm-1 "of four helpers the one for this Slurm ($site) is taken"
lbctl submit --name steady -- sh -c "echo \$\$ >>$T/starts; exec sleep $mark" >/dev/null
run_reaches steady running 30
job=$(lbctl status steady --json | json attempts.0.job_id)

# --- its library goes away ------------------------------------------------------------------------
gone "$here"
kill -KILL "$(helper_pid)"
wait_for 'case $(in_use) in */lbd-slurm-commands) true ;; *) false ;; esac' 40
like "$(cat "$T/lbd.log")" 'lbd-slurm-1 does not serve any more: Slurm is spoken to through .*lbd-slurm-2' \
	"without its library others are tried, and that is said"
like "$(cat "$T/lbd.log")" 'lbd-slurm-3 does not serve any more: Slurm is spoken to through .*lbd-slurm-commands' \
	"… the commands serve where none fits"
like "$(lbctl doctor 2>&1)" 'libslurm .*none in use: Slurm .* through its commands, .*take longer' "doctor knows that the commands serve"
like "$(lbctl daemon status)" "libslurm.so.99.*: Slurm's commands serve, which take longer" "so does daemon status, and says why"
lbctl version --verbose >"$T/installed"
like "$(cat "$T/installed")" "lbd-slurm-commands +0.1.0 .Slurm's commands.  .speaks to Slurm.$" \
	"version --verbose says what is installed, and what is in use"
like "$(cat "$T/installed")" 'lbd-slurm-4 +does not run: libslurm.so.99' "… and which helper lacks its library"
like "$(cat "$T/installed")" 'lbd-slurm-2 +0.1.0 .Slurm 20.02.1.' "… and what each is for"
lbctl submit --name after -- true >/dev/null
run_reaches after completed 60
is "$(run_state steady) $(lbctl status steady --json | json attempts.#) $(lbctl status steady --json |
	json attempts.0.job_id)" "running 1 $job" "a run that trains keeps its job"
is "$(wc -l <"$T/starts")" 1 "… and its trainer"
lbd_stop

# --- a controller that is newer -------------------------------------------------------------------
rm "$helpers"/*
other "$T/inst/bin/lbd-slurm" "$site"
cp "$B/lbd-slurm" "$helpers/lbd-slurm-1"
: >"$T/lbd.log"
own_lbd
lbctl submit --name newer -- true >/dev/null
run_reaches newer completed 60
is "$(basename "$(in_use)")" lbd-slurm-1 "one that the controller does not understand is left for the next"
unlike "$(lbctl daemon status)" 'take longer|there is no helper' "… and nothing is slower than it could be"
is "$(run_state steady)" running "… the run runs"
lbctl kill --now steady >/dev/null
run_reaches steady killed 30
lbd_stop

# --- none -----------------------------------------------------------------------------------------
rm "$helpers"/* "$T/inst/bin/lbd-slurm-commands"
gone "$T/inst/bin/lbd-slurm"
: >"$T/lbd.log"
own_lbd
like "$(cat "$T/lbd.log")" 'libslurm.so.99' "where none serves, the library that is missing is named"
lbd_stop

# --- a Slurm whose configuration lies elsewhere
# -------------------------------------------------------- As where it was built for /opt/slurm/etc:
# only its commands know, and the controller tells.
rm "$T/inst/bin/lbd-slurm"
cp "$B/lbd-slurm" "$helpers/lbd-slurm-1"
cp "$B/lbd-slurm-commands" "$T/inst/bin/"
conf=$SLURM_CONF
path=$PATH
mkdir "$T/elsewhere"
for command in sbatch squeue scancel scontrol sacct; do
	printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$conf" "$(command -v $command)" >"$T/elsewhere/$command"
done
chmod +x "$T/elsewhere"/*
PATH=$T/elsewhere:$PATH
if [ -e /etc/slurm/slurm.conf ] || [ -e /run/slurm/conf/slurm.conf ]; then
	passed "a configuration elsewhere # SKIP this machine has one of its own"
else
	unset SLURM_CONF
	own_lbd
	is "$(basename "$(in_use)")" lbd-slurm-1 "a slurm.conf that only Slurm's commands know of is found"
	like "$(lbctl doctor 2>&1)" '^ok +libslurm ' "by doctor, too"
	lbctl submit --name elsewhere -- true >/dev/null
	run_reaches elsewhere completed 60
	is "$(run_state elsewhere)" completed "and serves"
	lbd_stop
	# one that the controller hands out
	cat >"$T/elsewhere/scontrol" <<-END
		#!/bin/sh
		SLURM_CONF=$conf $(PATH=$path command -v scontrol) "\$@" | sed 's,^\(SLURM_CONF *= \).*,\1/proc/1/fd/none,'
	END
	own_lbd
	is "$(basename "$(in_use)")" lbd-slurm-commands "without a file of it the commands serve"
	like "$(lbctl daemon status)" "this machine has no slurm.conf for lbd-slurm: Slurm's commands serve" "which is told"
	lbctl submit --name handed -- true >/dev/null
	run_reaches handed completed 60
	is "$(run_state handed)" completed "… and runs run"
	lbd_stop
	printf '#!/bin/sh\necho "scontrol: fatal: Could not establish a configuration source" >&2\nexit 1\n' \
		>"$T/elsewhere/scontrol"
	: >"$T/lbd.log"
	own_lbd
	like "$(cat "$T/lbd.log")" 'there is no Slurm configuration: runs go to the local' "commands without a cluster are no Slurm"
	lbd_stop
	SLURM_CONF=$conf
	export SLURM_CONF
fi
PATH=$path

# --- a release that nobody knows ------------------------------------------------------------------
mkdir "$T/bin"
cat >"$T/bin/scontrol" <<END
#!/bin/sh
[ "\$1" != --version ] || { echo slurm 31.02.1; exit; }
exec $(command -v scontrol) "\$@"
END
chmod +x "$T/bin/scontrol"
PATH=$T/bin:$PATH
: >"$T/lbd.log"
own_lbd
is "$(grep -c 'no helper for Slurm 31.02 here: that for' "$T/lbd.log")" 1 "an unknown Slurm is warned of once"
lbctl submit --name unknown -- true >/dev/null
run_reaches unknown completed 60
like "$(lbctl daemon status)" "there is no helper for Slurm 31.02 here" "daemon status says so"
is "$(run_state unknown)" completed "… and served by the nearest"
done_testing
