#!/bin/sh
# SPDX-License-Identifier: MIT
# submit_with = "sbatch": jobs go through the site's sbatch and its filters, and are held, told
# apart, released and submitted once as those that libslurm makes; and what the controller's own
# plug-in makes of either.
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
# And one of the controller, which refuses, renames, and writes into comments.
mkdir "$T/slurm"
cat >"$T/slurm/job_submit.lua" <<'END'
function slurm_job_submit(job, partitions, uid)
	local name = job.name or ""
	if string.find(name, "unreasonable") then
		slurm.log_user("jobs need a reason: see https://site.invalid/reasons")
		return slurm.ERROR
	elseif string.find(name, "renamed") then
		job.name = "site-job"
		job.comment = job.comment .. ";project=7"
	elseif string.find(name, "overwritten") then
		job.comment = "project=7"
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
return slurm.SUCCESS
END
printf 'CliFilterPlugins=lua\nJobSubmitPlugins=lua\n' >"$T/extra.conf"
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
wrapped)	# a site's own, which has more to say
	rm "$T/mode"
	printf -- '----\nWelcome to the cluster\n2 of 2 nodes are free\n----\n' ;;
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
	"a script meets what it meets under sbatch; no sbatch waits for its end"
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

echo wrapped >"$T/mode"
lbctl submit --name wrapped -- true >/dev/null
run_reaches wrapped completed 90
unlike "$(cat "$T/lbd.log")" "wrapped: submit: " "a wrapper around sbatch may print what it likes"

# The controller's plug-in, by sbatch, and by libslurm.
plugged() {	# WAY
	exits 6 "$1: a plug-in's no is final, and heard at once" lbctl submit --name "unreasonable-$1" -- true
	like "$err" 'jobs need a reason: see https://site.invalid/reasons' "$1: in its own words"
	lbctl submit --name "renamed-$1" -- true >/dev/null
	run_reaches "renamed-$1" completed 60
	is "$(squeue -h -t all -j "$(job "renamed-$1")" -o %j)" site-job "$1: a site may rename jobs, and add to comments"
	unlike "$(cat "$T/lbd.log")" "renamed-$1: submit: " "$1: they are known all the same"
	lbctl submit --name "overwritten-$1" -- true >"$T/said" 2>&1
	run_reaches "overwritten-$1" failed 60
	like "$(lbctl events "overwritten-$1")" 'this site replaces .*comments' "$1: what is replaced is told"
	wait_for '[ -z "$(squeue -h -t PD,R -o %i)" ]' 20	# the job of a run that is over may end yet
	passed "$1: and nothing is left in line"
}
plugged sbatch

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
lbd_stop
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
plugged own
done_testing
