/* SPDX-License-Identifier: MIT */
/* in_slurm.c - prints the batch script of lbd's own job. */
#include "daemon/process/in_slurm.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "slurm/pipe/sbatch.h"

/* One chain for each folder: FNV-1a of its path. */
static uint32_t hash_of(const char *home)
{
	uint32_t h = 2166136261u;

	for (const char *c = home; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619u;
	return h;
}

static void print_option(FILE *to, const char *name, const char *value)
{
	if (value)
		fprintf(to, "#SBATCH --%s=%s\n", name, value);
}

static void print_options(const struct config *config, FILE *to)
{
	const struct in_slurm *s = &config->in_slurm;
	char *home = text_percents(config->home);

	fprintf(to, "#SBATCH --job-name=lbd-%08x\n", hash_of(config->home));
	fputs("#SBATCH --dependency=singleton\n"
	      "#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=1\n"
	      "#SBATCH --open-mode=append\n",
	      to);
	if (sbatch_own_cluster()[0])
		print_option(to, "clusters", sbatch_own_cluster());
	fprintf(to, "#SBATCH --time=%lld\n", (long long)(s->time_ms + 59999) / 60000);
	fprintf(to, "#SBATCH --output=\"%s/lbd.log\"\n", home);
	free(home);
	print_option(to, "mem", s->mem);
	print_option(to, "partition", s->partition);
	print_option(to, "account", s->account);
	print_option(to, "qos", s->qos);
}

/* Crashes are not Slurm's business: lbd is started again here, and after a while only, so that a
 * broken one does not fill the queue. Status 0 is an order to end, or the hand-over. People cancel
 * all that waits of theirs, the successor, too: it is looked for again, now and then and at the
 * end. Nobody submits any more when the script has ended: lbctl daemon stop would not see it. */
static const char body[] =
	"LB_DAEMON_JOB=$SLURM_JOB_ID\n"
	"export LB_HOME LB_DAEMON_JOB\n"
	"unset SQUEUE_ACCOUNT SQUEUE_LICENSES SQUEUE_PARTITION SQUEUE_QOS SLURM_CLUSTERS "
	"SBATCH_CLUSTERS\n"
	"[ \"${SLURM_JOB_ID:+x}\" ] || { echo 'this is a batch script: lbctl daemon start "
	"--in-slurm' >&2; exit 2; }\n"
	"\n"
	"queue_next() {\n"
	"	until [ -n \"$is_over\" ] ||\n"
	"		[ -n \"$(squeue -h -u \"$(id -un)\" -n \"$SLURM_JOB_NAME\" -t PENDING -o "
	"%i)\" ] ||\n"
	"		sbatch --parsable \"$LB_HOME/lbd.job\"; do\n"
	"		sleep 10 & wait $!\n"
	"	done\n"
	"}\n"
	"keep_next() {\n"
	"	trap is_over=1 TERM\n"
	"	while queue_next && [ -z \"$is_over\" ]; do sleep 600 & wait $!; done\n"
	"}\n"
	"stop() {\n"
	"	is_over=1\n"
	"	[ -z \"$pid\" ] || kill -TERM \"$pid\" 2>/dev/null\n"
	"}\n"
	"is_over= pid=\n"
	"trap stop TERM INT\n"
	"keep_next &\n"
	"keeper=$!\n"
	"while [ -z \"$is_over\" ] && [ \"$(date +%s)\" -lt \"$until\" ]; do\n"
	"	\"$lbd\" --foreground --home \"$LB_HOME\" --until \"$until\" &\n"
	"	pid=$!\n"
	"	wait \"$pid\"\n"
	"	status=$?\n"
	"	while kill -0 \"$pid\" 2>/dev/null; do wait \"$pid\"; status=$?; done\n"
	"	pid=\n"
	"	[ $status != 0 ] || break\n"
	"	[ -n \"$is_over\" ] || { echo \"lbd ended with status $status; once more in 10 "
	"s\" >&2; sleep 10; }\n"
	"done\n"
	"kill -TERM \"$keeper\" 2>/dev/null\n"
	"while kill -0 \"$keeper\" 2>/dev/null; do wait \"$keeper\"; done\n"
	"queue_next\n";

int in_slurm_print(const struct config *config, FILE *to, struct err *err)
{
	const struct in_slurm *s = &config->in_slurm;
	char *lbd = path_sibling("lbd", err), word[SHELL_WORD_BYTES];

	if (lbd == NULL)
		return -1;
	if (strpbrk(config->home, "\n\"\\%"))
		return err_set(err, ERR_USAGE, "%s: Slurm cannot keep a log below such a name",
			       config->home);
	fputs("#!/bin/sh\n# lbd in a job of its own; made by lbctl daemon start --in-slurm.\n", to);
	print_options(config, to);
	fputs("\n", to);
	fprintf(to, "lbd=%s\n", shell_word(lbd, word));
	fprintf(to, "LB_HOME=%s\n", shell_word(config->home, word));
	fprintf(to, "until=$(($(date +%%s) + %lld))\n",
		(long long)(s->time_ms - s->hand_over_ms) / 1000);
	fputs(body, to);
	free(lbd);
	return 0;
}
