/* SPDX-License-Identifier: MIT */
/* test_self_submission.c - which scripts bring themselves back, and on which line. */
#include "tests/unit/unit.h"

#include "slurm/batch/self_submission.h"

/* A script that hands itself to sbatch, in the ways in which people write that, and some that do
 * not. */
static void test_submits_itself(void **state)
{
	static const struct {
		const char *text;
		int line; /* 0: it does not */
		enum self_submission how;
	} cases[] = {
		{ "#!/bin/sh\nsbatch --begin=now+1day $0\n", 2, SUBMITS_LATER },
		{ "#!/bin/sh\nsbatch \"$0\" \"$@\"\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\nSELF=$(readlink -f \"$0\")\nsleep 1\nsbatch \"$SELF\"\n", 4,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\nhere=\"${BASH_SOURCE[0]}\"\nme=$here\nsbatch --begin=now+1hour ${me}\n",
		  4, SUBMITS_LATER },
		{ "#!/bin/bash\nsbatch -p cpu \\\n   \"${BASH_SOURCE[0]}\"\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\nsbatch $BASH_SOURCE\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch --begin=now+1day /home/ada/cron/nightly.slurm\n", 2,
		  SUBMITS_LATER },
		{ "#!/bin/sh\nsbatch -b now+2hours $0\n", 2, SUBMITS_LATER },
		{ "#!/bin/sh\nsbatch nightly.slurm\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\ncmd=$(scontrol show job $SLURM_JOB_ID | awk -F= '/Command=/{print $2}')\nsbatch $cmd\n",
		  3, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch $(scontrol show job \"$SLURM_JOB_ID\" | sed -n 's/.*Command=//p')\n",
		  2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nid=$(sbatch --parsable \"$0\")\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch <$0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\n/usr/bin/sbatch \"$0\"\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch --export=ALL,N=$((N+1)) $0\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch --export NONE $0\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch --export=ALL $0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\n[ $n -lt 3 ] && sbatch -d afterany:$SLURM_JOB_ID $0 $((n + 1))\n", 2,
		  SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch \"$0\" --resume\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch $0 $ARGS\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch $0 >/dev/null; exit 0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch $0 && exit 0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\ntrap \"sbatch $0\" USR1\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch $0 2>err\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch $0 # again\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nscontrol requeue $SLURM_JOB_ID\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\n# sbatch $0 is what this used to do\necho hi\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/bash\nagain() {\n  sbatch \\\n    --output=x \\\n    slurm/nightly.slurm\n}\ntrap again USR1\n",
		  3, SUBMITS_AGAIN },
		{ "#!/bin/bash\n#SBATCH -n 1\n# sbatch $0\n\ntrap 'sbatch $0' USR1\n", 5,
		  SUBMITS_AGAIN },
		/* other arguments, whatever it calls itself */
		{ "#!/bin/bash\nsbatch \"${BASH_SOURCE[0]}\" \\\n  --resume\n", 2,
		  SUBMITS_ANOTHER },
		{ "#!/bin/bash\nme=$(realpath $0)\nid=$(sbatch -d afterany:$SLURM_JOB_ID \"$me\" $((n+1)))\n",
		  3, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch -t 10 jobs/nightly.slurm stage2\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch jobs/nightly.slurm \"$@\"\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/sh\nid=$(sbatch \"$DIR/nightly.slurm\" | awk '{print $4}')\n", 2,
		  SUBMITS_AGAIN },
		{ "#!/bin/sh\nssh $SLURM_SUBMIT_HOST \"cd $PWD && sbatch nightly.slurm\"\n", 2,
		  SUBMITS_ANOTHER },
		/* as an array, of which it is to become a task */
		{ "#!/bin/bash\nif [ -z \"$SLURM_ARRAY_TASK_ID\" ]; then\n  exec sbatch --array=0-$n \"$0\"\nfi\n",
		  3, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch -a 1-4 $0\n", 2, SUBMITS_ANOTHER },
		{ "#!/bin/sh\nsbatch --array=$SLURM_ARRAY_TASK_ID $0\n", 2, SUBMITS_AGAIN },
		/* what it says, and what lies beside it */
		{ "#!/bin/bash\n[ $# = 1 ] || { echo \"Usage: sbatch $0 DATASET\"; exit 1; }\n", 0,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\nh) printf 'sbatch %s\\n' $0 ;;\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/bash\ncat <<X\nUsage: sbatch $0 DATASET\nX\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/bash\necho \"$(date) $(sbatch -d singleton $0)\"\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\necho again; sbatch $0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\nDIR=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\nROOT=$(cd $DIR/..; pwd)\nsbatch $DIR/eval.sh\nsbatch \"${DIR}/eval.sh\"\nsbatch $ROOT/eval.sh\n",
		  0, SUBMITS_AGAIN },
		{ "#!/bin/bash\nNAME=$(basename $(dirname $0))\nsbatch -J $NAME eval.sh\n", 0,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\nsbatch $(dirname $0)/eval.sh\nsbatch ${0%/*}/eval.sh\n", 0,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\nDIR=$(dirname $0)\nsbatch $DIR/nightly.slurm\n", 3, SUBMITS_AGAIN },
		{ "#!/bin/bash\nME=$(cd $(dirname $0); pwd)/$(basename $0)\nsbatch $ME\n", 3,
		  SUBMITS_AGAIN },
		/* where it was called by hand, in no job */
		{ "#!/bin/bash\nif [ -z $SLURM_JOB_ID ]; then\n  mkdir -p logs\n  sbatch \"$0\" \"$@\"\n  exit\nfi\n",
		  0, SUBMITS_AGAIN },
		{ "#!/bin/bash\n[[ -z \"${SLURM_JOB_ID:-}\" ]] && exec sbatch \"$0\"\n", 0,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\nif test -z \"$SLURM_JOBID\"; then\n  if x; then\n    y\n  fi\n  sbatch $0\nfi\nsbatch $0\n",
		  8, SUBMITS_AGAIN },
		{ "#!/bin/bash\nif [ -z $SLURM_JOB_ID ]; then\n  sbatch $0\nelse\n  sbatch $0\nfi\n",
		  5, SUBMITS_AGAIN },
		{ "#!/bin/bash\nif [ -z $DONE ]; then sbatch $0; fi\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\nif [ ! -z $SLURM_JOB_ID ]; then sbatch $0; fi\n", 2,
		  SUBMITS_AGAIN },
		{ "#!/bin/bash\n[ -z $SLURM_JOB_ID ] || sbatch $0\n", 2, SUBMITS_AGAIN },
		{ "#!/bin/bash\nif [[ -z \"$DONE\" && -n $SLURM_JOB_ID ]]; then\n  sbatch $0\nfi\n",
		  3, SUBMITS_AGAIN },
		{ "#!/bin/bash\n[ -z $1 ] && [ -z \"$SLURM_JOB_ID\" ] && exec sbatch $0\n", 0,
		  SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch other.slurm\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch other.slurm | awk '{print $0}'\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/sh\nsbatch other.slurm; echo \"$0 is done\"\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/sh\necho \"$0\"\nsqueue\n", 0, SUBMITS_AGAIN },
		{ "#!/bin/sh\nSELF=$0\nsbatch not-nightly.slurm\n", 0, SUBMITS_AGAIN },
		{ "", 0, SUBMITS_AGAIN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum self_submission how = SUBMITS_AGAIN;
		int line = submits_itself("/cron/cron.daily/nightly.slurm", cases[i].text, &how);

		if (line != cases[i].line || how != cases[i].how)
			fail_msg("%s", cases[i].text);
	}
}

/* Which lines ask scontrol for a requeue, and which only have both words. */
static void test_requeue_line(void **state)
{
	static const struct {
		const char *text;
		int line; /* 0: none */
	} cases[] = {
		{ "#!/bin/sh\nscontrol requeue $SLURM_JOB_ID\n", 2 },
		{ "#!/bin/sh\ntrap 'scontrol  requeuehold 5; exit 0' USR1\n", 2 },
		{ "#!/bin/sh\n/usr/bin/scontrol --quiet requeue 5\n", 2 },
		{ "scontrol -M c1 requeue 5", 1 },
		{ "subprocess.call([\"scontrol\", 'requeue', job])\n", 1 },
		{ "$(which scontrol) requeue 5\n", 1 },
		{ "spawn(\"scontrol\", [\"requeue\", job])\n", 1 },
		{ "scontrol show job 5 | grep -i requeue; scontrol requeue 5\n", 1 },
		{ "#!/bin/sh\ntrue\n\nif x; then\n\tscontrol requeue 5\nfi\n", 5 },
		{ "#!/bin/sh\n# scontrol requeue 5\n", 0 },
		{ "scontrol show job $SLURM_JOB_ID | grep -i requeue\n", 0 },
		{ "scontrol -o show job 5 >f; grep requeue f\n", 0 },
		{ "scontrol update jobid=5 requeue=1\n", 0 },
		{ "scontrol\n", 0 },
		{ "scontrol -M\n", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (requeue_line(cases[i].text) != cases[i].line)
			fail_msg("%s", cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submits_itself),
		cmocka_unit_test(test_requeue_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
