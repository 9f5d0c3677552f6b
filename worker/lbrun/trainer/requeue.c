/* SPDX-License-Identifier: MIT */
/* requeue.c - puts an sbatch of ours into the trainer's PATH, an scontrol and an scancel into a
 * script's, is those, and reads what they noted. */
#include "worker/lbrun/trainer/requeue.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/attempt_params.h"
#include "common/run/trainer_env.h"
#include "worker/lbrun/trainer/own_call.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024, EXIT_NOT_FOUND = 127 };

/* "JOB:FOLDER", for our programs: a job that the script submits inherits both, and is another
 * one. */
static const char variable[] = "LB_REQUEUE";

/* The number of a job without Slurm. */
static const char unnumbered[] = "LB_JOB_ID";

static const char *const programs[] = { "sbatch", "scontrol", "scancel", NULL };

/* Files that say what the launch asked for. */
static const char REQUEUE[] = "requeue", SUBMITTED[] = "submitted_again";

bool requeue_is_meant(const char *run_dir)
{
	static const char *const words[] = { "requeue", "sbatch", "--signal", NULL };
	char *path = path_join("%s/slurm_script", run_dir);
	char *text = file_read(path, SCRIPT_MAX_BYTES, NULL, NULL);
	bool is_meant = false;

	for (int i = 0; text && words[i]; i++)
		is_meant |= strstr(text, words[i]) != NULL;
	free(text);
	free(path);
	return is_meant;
}

static const char *value_in(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			return env->items[i] + len + 1;
	return NULL;
}

static void forget_mark(const char *folder, const char *mark)
{
	char *path = path_join("%s/%s", folder, mark);

	unlink(path);
	free(path);
}

static bool link_program(const char *bin, const char *name)
{
	char *link = path_join("%s/%s", bin, name), self[PATH_MAX];
	bool is_there = path_own_program(self, NULL) == 0 &&
			(symlink(self, link) == 0 || errno == EEXIST);

	free(link);
	return is_there;
}

/* What bash finds before any program, also when it is a login shell, whose PATH /etc/profile makes
 * anew. Where the folder is gone, in a job that inherits this, the program is Slurm's. */
static void export_function(struct strv *env, const char *name)
{
	char *function = xasprintf("BASH_FUNC_%s%%%%", name);

	if (!value_in(env, function))
		strv_set(env, xasprintf("%s=() {  PATH=${%s#*:}/bin:$PATH command %s \"$@\"\n}",
					function, variable, name));
	free(function);
}

void requeue_prepare(const char *folder, bool is_script, struct strv *env)
{
	const char *path = value_in(env, "PATH"), *job = value_in(env, "SLURM_JOB_ID");
	char *bin = path_join("%s/bin", folder);
	bool are_there;

	if (!job && is_script)
		job = value_in(env, unnumbered);
	are_there = path && job && (is_script || path_has_program(path, programs[0])) &&
		    folder_make(bin, 0750, NULL) == 0;

	forget_mark(folder, REQUEUE);
	forget_mark(folder, SUBMITTED);
	for (int i = 0; are_there && programs[i] && (is_script || i == 0); i++)
		are_there = link_program(bin, programs[i]);
	if (are_there) {
		strv_set(env, xasprintf("PATH=%s:%s", bin, path));
		strv_set(env, xasprintf("%s=%s:%s", variable, job, folder));
		for (int i = 0; is_script && programs[i]; i++)
			export_function(env, programs[i]);
	}
	free(bin);
}

bool requeue_was_asked(const char *folder)
{
	return folder_holds(folder, REQUEUE);
}

bool requeue_was_submitted(const char *folder)
{
	return folder_holds(folder, SUBMITTED);
}

/* scontrol's words for ESLURM_DISABLED, which a requeue of ours gets, and the job's number. */
bool requeue_is_refusal(const char *line, size_t len)
{
	static const char words[] = "Requested operation is presently disabled for job ";
	const char *job = getenv("SLURM_JOB_ID"), *at = memmem(line, len, words, sizeof(words) - 1);
	size_t left;

	if (!at || !job)
		return false;
	at += sizeof(words) - 1;
	left = len - (size_t)(at - line);
	return left >= strlen(job) && memcmp(at, job, strlen(job)) == 0 &&
	       (left == strlen(job) || at[strlen(job)] < '0' || at[strlen(job)] > '9');
}

/* --- as scontrol, sbatch and scancel ---------------------------------------------------------- */

bool requeue_is_called(const char *name)
{
	for (int i = 0; programs[i]; i++)
		if (strcmp(path_base(name), programs[i]) == 0)
			return true;
	return false;
}

static bool is_this_program(const char *folder, size_t len, const char *name)
{
	char *path = xasprintf("%.*s/%s", (int)len, folder, name);
	struct stat there, own;
	bool is = stat(path, &there) == 0 && stat("/proc/self/exe", &own) == 0 &&
		  there.st_dev == own.st_dev && there.st_ino == own.st_ino;

	free(path);
	return is;
}

/* `path` without folders in which this name means us, wherever somebody has moved them to. */
static void leave_out(char *path, const char *name)
{
	char *to = path;

	for (char *at = path; *at;) {
		size_t len = strcspn(at, ":"), whole = len + (at[len] == ':');

		if (!is_this_program(at, len, name)) {
			memmove(to, at, whole);
			to += whole;
		}
		at += whole;
	}
	*to = '\0';
}

static int run_real(char **argv)
{
	char *path = getenv("PATH");
	const char *name = path_base(argv[0]);

	if (path)
		leave_out(path, name); /* in place: the environment has it */
	if (strcmp(name, "sbatch") == 0) {
		trainer_env_forget();
		unsetenv("SLURM_RESTART_COUNT");
	}
	execvp(name, argv);
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return EXIT_NOT_FOUND;
}

static int note(const char *folder, const char *mark)
{
	char *path = path_join("%s/%s", folder, mark);
	struct err why = { 0 };
	int rc = file_write_visible(path, "", 0, 0640, &why);

	if (rc < 0)
		fprintf(stderr, "lbrun: %s\n", why.text);
	free(path);
	return rc < 0 ? 1 : 0;
}

/* What a script asks for of its own job; -1: this call is about another. */
static int as_scontrol(char **argv, const struct own_job *job, const char *folder)
{
	enum own_requeue what = own_requeue(argv, job);

	if (what == REQUEUE_OTHER)
		return -1;
	if (note(folder, REQUEUE))
		return 1;
	fprintf(stderr,
		"lbrun: the job is not requeued%s: lbd brings the run back in another one%s\n",
		what == REQUEUE_OWN_HELD ? ", nor held" : "",
		what == REQUEUE_OWN_HELD ? ", at once (lbctl hold keeps a run)" : "");
	return 0;
}

/* A script that goes on with the number of what it has submitted gets its own. */
static int as_sbatch(char **argv, const struct own_job *job, const char *folder)
{
	enum own_submission what = own_submission(argv, job);
	bool is_parsable = false;
	char *next;

	if (what == SUBMISSION_BESIDE)
		fprintf(stderr,
			"lbrun: this script is submitted with other arguments: that job is "
			"Slurm's, and trains beside the run, which lbd brings back by itself\n");
	if (what == SUBMISSION_OTHER || what == SUBMISSION_BESIDE)
		return -1;
	if (what == SUBMISSION_NEXT && note(folder, SUBMITTED))
		return 1;
	for (char **word = argv + 1; *word; word++)
		is_parsable |= strcmp(*word, "--parsable") == 0;
	fprintf(stderr,
		"lbrun: this script is not submitted again: lbd brings the run back in another job\n");
	next = own_next_number(job);
	printf("%s%s\n", is_parsable ? "" : "Submitted batch job ", next);
	free(next);
	return 0;
}

/* Training is done, and what was submitted for the case that it is not goes; or the script has
 * submitted itself, and now ends its job. */
static int as_scancel(char **argv, const struct own_job *job, const char *folder)
{
	enum own_cancel what = own_cancel(argv, job);

	if (what == CANCEL_OWN && requeue_was_submitted(folder))
		return note(folder, REQUEUE);
	if (what != CANCEL_NEXT)
		return -1;
	forget_mark(folder, SUBMITTED);
	fprintf(stderr,
		"lbrun: nothing was submitted: the run is over when its script ends with status 0\n");
	return 0;
}

static int as_called(char **argv, const char *job_id, const char *folder)
{
	bool is_sbatch = strcmp(path_base(argv[0]), "sbatch") == 0;
	const char *number = getenv(unnumbered);
	struct attempt_params params = { 0 };
	struct err why = { 0 };
	struct own_job job = {
		.id = job_id,
		.is_unnumbered = !getenv("SLURM_JOB_ID") && number && strcmp(number, job_id) == 0,
		.array_id = getenv("SLURM_ARRAY_JOB_ID"),
		.array_task = getenv("SLURM_ARRAY_TASK_ID"),
	};
	int status;

	if (is_sbatch && attempt_params_read(folder, &params, &why) < 0) {
		fprintf(stderr, "lbrun: %s\n", why.text);
		return 1;
	}
	if (is_sbatch && params.is_script) {
		job.script = params.command[0];
		job.lay_at = params.script;
		job.arguments = params.command + 1;
		job.input = "/dev/stdin"; /* a pipe is not read */
	}
	if (strcmp(path_base(argv[0]), "scancel") == 0)
		status = as_scancel(argv, &job, folder);
	else
		status = is_sbatch ? as_sbatch(argv, &job, folder)
				   : as_scontrol(argv, &job, folder);
	attempt_params_clear(&params);
	return status;
}

/* A caller that cleared its environment, as people do so that sbatch takes nothing of this job for
 * the next one, is in this job all the same: any other has a number. */
int requeue_main(char **argv)
{
	const char *job = getenv("SLURM_JOB_ID"), *value = getenv(variable);
	const char *colon = value ? strchr(value, ':') : NULL;
	char *own = colon ? xstrndup(value, (size_t)(colon - value)) : NULL;
	bool is_own = own && (!job || strcmp(job, own) == 0);
	int status = is_own ? as_called(argv, own, colon + 1) : -1;

	free(own);
	return status >= 0 ? status : run_real(argv);
}
