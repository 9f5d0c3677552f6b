#!/bin/sh
# SPDX-License-Identifier: MIT
# submit_with = "sbatch": jobs go through the site's sbatch and its filters, and are held, told
# apart, released and submitted once as those that libslurm makes.
. "$(dirname "$0")/lib.sh"

# A real filter of the site: jobs need a reason, and get a site's feature.
cat >"$T/cli_filter.lua" <<'END'
function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, pack)
	if options["job-name"] and string.find(options["job-name"], "forbidden") then
		slurm.log_error("jobs of this name are not welcome here")
		return slurm.ERROR
	end
	options["constraint"] = "site"
	return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end
END
printf 'CliFilterPlugins=lua\n' >"$T/extra.conf"
MC_CONF_EXTRA=$T/extra.conf
export MC_CONF_EXTRA
cluster_start 2
cp "$T/cli_filter.lua" "$(dirname "$SLURM_CONF")/"
scontrol update nodename=n1,n2 features=site
mkdir "$T/bin" "$T/work"
cat >"$T/bin/sbatch" <<END
#!/bin/sh
real=$(command -v sbatch)
case "\$*" in *--test-only*) exec \$real "\$@" ;; esac	# a question; what goes wrong does so later
printf '%s\n' "\$@" >"$T/argv.\$\$"
case \$(cat "$T/mode" 2>/dev/null) in
silent)	# the job is made, and nobody is told
	rm "$T/mode"
	\$real "\$@" >/dev/null
	exit 0 ;;
murdered)
	rm "$T/mode"
	\$real "\$@" >/dev/null
	kill -9 \$\$ ;;
busy)
	rm "$T/mode"
	echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)" >&2
	exit 1 ;;
esac
exec \$real "\$@"
END
chmod +x "$T/bin/sbatch"
PATH=$T/bin:$PATH
printf '[slurm]\nsubmit_with = "sbatch"\n[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
cd "$T/work" || exit 1
job() { lbctl status "$1" --json | json attempts.0.job_id; }
jobs_named() { squeue -h -t all -o %j | grep -c "^lb-$1-"; }
feature() { scontrol show job "$(job "$1")" | sed -n 's/.*Features=\([^ ]*\).*/\1/p' | head -n 1; }

# --- a command, a script --------------------------------------------------------------------------
lbctl submit --name plain -- sh -c 'echo "args: $*"' sh 'a b' >/dev/null
run_reaches plain completed 60
is "$(feature plain)" site "a job went through the site's filter"
like "$(lbctl logs plain)" 'args: a b' "and runs as it was submitted"
like "$(cat "$T"/argv.*)" '^--hold$' "it was submitted held"
like "$(cat "$T"/argv.*)" '^--comment=lbd1:' "with its token"

cat >env.slurm <<'END'
#!/bin/bash
#SBATCH --job-name=env -N1 --ntasks=2 --mem=100M --time=5 --wait
#SBATCH --output=%x-%j.out
#SBATCH --propagate=NOFILE
printf '%s\n' "$*" >"$1"
pwd >>"$1"
env | sort >>"$1"
ulimit -a >>"$1"
umask >>"$1"
END
# shellcheck disable=SC3045 # dash knows -S
ulimit -S -n 900
umask 027
export MINE='a value; with $(signs)'
sed 's/ --wait//' env.slurm >plain.slurm
real=$(sbatch --parsable plain.slurm "$T/theirs" 'x y')
wait_for '[ -s "$T/theirs" ] && [ -z "$(squeue -h)" ]' 60	# the same node is free again
lbctl submit --name env env.slurm -- "$T/ours" 'x y' >/dev/null
run_reaches env completed 60
mine=$(job env)
same() {
	sed -E -e '/^(LB_|_=|OLDPWD=|SHLVL=)/d' -e "s,\\b($real|$mine)\\b,ID,g" \
		-e 's,/(theirs|ours),/FILE,' -e '/^SLURM_(TASK_PID|JOB_START|JOB_END|TOPOLOGY)/d' \
		"$1"
}
is "$(same "$T/ours")" "$(same "$T/theirs")" \
	"a script meets what it meets under sbatch; --wait waits for nothing"
ok "its output is where it says" [ -e "env-$mine.out" ]
umask 022

# --- what does not go as it should ----------------------------------------------------------------
exits 6 "a filter's no is final, and heard at once" lbctl submit --name forbidden -- true
like "$err" 'jobs of this name are not welcome here' "in its own words"
for mode in silent murdered; do
	echo $mode >"$T/mode"
	lbctl submit --name $mode -- sh -c 'echo started >>"$LB_RUN_DIR/starts"' >/dev/null
	run_reaches $mode completed 90
	is "$(cat "$LB_HOME/runs/$mode/starts")" started \
		"$mode sbatch: the job is found by its token"
	is "$(jobs_named $mode)" 1 "and none is submitted again"
done
echo busy >"$T/mode"
lbctl submit --name busy -- true >/dev/null
run_reaches busy completed 90
passed "a controller that does not answer is asked again"

# Two phases: killed between them, lbd finds its held job and releases it.
lbd_stop
LB_FAILPOINT=release.call:kill
export LB_FAILPOINT
lbd_start
unset LB_FAILPOINT
lbctl submit --name twice -- sh -c 'echo started >>"$LB_RUN_DIR/starts"' >/dev/null
wait_for '! kill -0 $lbd_pid' 30
is "$(squeue -h -t all -n "$(squeue -h -t all -o %j | grep '^lb-twice-')" -o '%T %r')" \
	"PENDING JobHeldUser" \
	"a job that lbd has not released does not start"
lbd_start
run_reaches twice completed 60
is "$(cat "$LB_HOME/runs/twice/starts")" started "it is released then, and runs once"

# --- relaunches, arrays, kills --------------------------------------------------------------------
cat >array.slurm <<'END'
#!/bin/bash
#SBATCH --array=1-3%2 --mem=100M -n1 --output=%x_%A_%a.out --begin=now+1
echo "task $SLURM_ARRAY_TASK_ID" >>"$LB_RUN_DIR/done"
END
lbctl submit --name array array.slurm >/dev/null
run_reaches array completed 90
is "$(sort "$LB_HOME/runs/array/done" | tr '\n' ,)" "task 1,task 2,task 3," \
	"each task of an array runs"
lbctl submit --name again --set restart.in_place=0 --set restart.backoff_first=0 -- \
	sh -c '[ -e "$LB_RUN_DIR/tried" ] || { touch "$LB_RUN_DIR/tried"; exit 3; }' >/dev/null
run_reaches again completed 90
is "$(lbctl status again --json | json attempts.#)" 2 "a run that fails has another job"
lbctl submit --name killed -- sleep 1000 >/dev/null
run_reaches killed running 60
lbctl kill --now killed >/dev/null
run_reaches killed killed 60
passed "a run is killed"
done_testing
