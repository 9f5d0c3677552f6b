#!/bin/sh
# SPDX-License-Identifier: MIT
# Options that a plug-in of the site gives to sbatch (SPANK): shifter's --image and their like. What
# the site's job_submit.lua does to jobs, and says of them.
. "$(dirname "$0")/lib.sh"

plugin=$B/tests/spank_plugin.so
[ -e "$plugin" ] || bail_out "$plugin is missing: make check-system builds it"
mkdir "$T/slurm"
cat >"$T/slurm/job_submit.lua" <<'END'
function slurm_job_submit(job, partitions, uid)
	if string.find(job.name or "", "stamp") then
		job.comment = "site"
		job.name = "site"
	end
	if string.find(job.name or "", "image") then
		slurm.log_user("GPUs are dear")
		slurm.log_user("Use few")
	end
	if string.find(job.name or "", "nope") then
		slurm.log_user("not on Sundays")
		return 1
	end
	return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
END
echo 'JobSubmitPlugins=lua' >"$T/extra"
MC_CONF_EXTRA=$T/extra
export MC_CONF_EXTRA
cluster_start 1
echo "required $plugin" >"$(dirname "$SLURM_CONF")/plugstack.conf"
like "$(sbatch --help)" '--image=IMAGE' "the site's sbatch has an option more"
cat >"$T/train.slurm" <<'END'
#!/bin/sh
#SBATCH --image docker:ada/torch:2 --fast
#SBATCH --job-name=image
srun sh -c 'echo "image: $SITE_IMAGE"'
END
cd "$T" || exit 1

lbd_start
ok "a job that the site marks as its own" lbctl submit --name stamp -- true
run_reaches stamp failed 20
like "$(lbctl status stamp)" 'this site replaces the comments of jobs' "fails, and says why"
is "$(squeue -h)" "" "and leaves nothing behind"
ok "a job of which it has something to say" lbctl submit --name imagery -- true
run_reaches imagery completed 20
like "$(lbctl events imagery)" 'submitted +job [0-9]+: .*GPUs are dear; .*Use few$' "is submitted with those words"
exits 6 "a job that it refuses with a number of its own" lbctl submit --name nope -- true
like "$err" 'would refuse the job: .*not on Sundays' "is refused, with its words"
exits 2 "unless lbd is told, such an option is a mistake" lbctl submit train.slurm
like "$err" 'train.slurm:2: --image: there is no such option of sbatch .*slurm.plugin_options' "with the key"
lbd_stop

printf '[slurm]\nplugin_options = ["mem="]\n' >"$LB_HOME/lbd.toml"
exits 2 "an option of sbatch itself is none of a plug-in" lbctl daemon start
like "$err" 'lbd.toml:[0-9]+: slurm.plugin_options: "mem=": sbatch has --mem itself' "which is told"
printf '[slurm]\nplugin_options = ["image=", "fast"]\n' >"$LB_HOME/lbd.toml"
lbd_start
exits 2 "libslurm loads no plug-ins" lbctl submit train.slurm
like "$err" 'train.slurm:2: --image: .* needs submit_with = "sbatch" in .slurm. of lbd.toml' "so it is told what is missing"
lbd_stop

printf '[slurm]\nsubmit_with = "sbatch"\nplugin_options = ["image=", "fast"]\n[poll]\ninterval = "200ms"\n' \
	>"$LB_HOME/lbd.toml"
lbd_start
ok "the script is taken" lbctl submit --name image train.slurm
run_reaches image completed 60
like "$(cat "$T"/slurm-*.out)" '^image: docker:ada/torch:2$' "and the plug-in has what it says"
ok "a run's own options may be such, too" lbctl submit --name other --set 'slurm.extra=["--image=b"]' train.slurm
run_reaches other completed 60
like "$(cat "$T"/slurm-*.out)" '^image: b$' "which overrules the script"
done_testing
