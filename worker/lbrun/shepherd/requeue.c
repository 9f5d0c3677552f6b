/* SPDX-License-Identifier: MIT */
/* requeue.c - puts a scontrol of ours into the script's PATH, is that scontrol, and reads what it
 * noted. */
#include "worker/lbrun/shepherd/requeue.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024, EXIT_NOT_FOUND = 127 };

/* "JOB:FOLDER", for our scontrol: a job that the script submits inherits both, and is another
 * one. */
static const char variable[] = "LB_REQUEUE";

static char *mark_of(const char *folder)
{
	return path_join("%s/requeue", folder);
}

bool requeue_is_meant(const char *run_dir)
{
	char *path = path_join("%s/slurm_script", run_dir);
	char *text = file_read(path, SCRIPT_MAX_BYTES, NULL, NULL);
	bool is_meant = text && strstr(text, "requeue");

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

void requeue_prepare(const char *folder, struct strv *env)
{
	char *bin = path_join("%s/bin", folder), *link = path_join("%s/bin/scontrol", folder);
	char *mark = mark_of(folder), self[PATH_MAX];
	const char *path = value_in(env, "PATH"), *job = value_in(env, "SLURM_JOB_ID");

	unlink(mark);
	if (path && job && path_own_program(self, NULL) == 0 && folder_make(bin, 0750, NULL) == 0) {
		if (symlink(self, link) == 0 || errno == EEXIST) {
			strv_set(env, xasprintf("PATH=%s:%s", bin, path));
			strv_set(env, xasprintf("%s=%s:%s", variable, job, folder));
		}
	}
	free(mark);
	free(link);
	free(bin);
}

bool requeue_was_asked(const char *folder)
{
	char *mark = mark_of(folder);
	bool was_asked = file_exists(mark);

	free(mark);
	return was_asked;
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

/* --- as scontrol ------------------------------------------------------------------------------ */

bool requeue_is_called(const char *name)
{
	return strcmp(path_base(name), "scontrol") == 0;
}

/* "12", and of an array "10_3", where 12 is the task's own number. */
static bool is_own_job(const char *word)
{
	const char *job = getenv("SLURM_JOB_ID"), *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *task = getenv("SLURM_ARRAY_TASK_ID");
	char name[64];

	if (strncasecmp(word, "jobid=", 6) == 0)
		word += 6;
	if (job && strcmp(word, job) == 0)
		return true;
	if (!array || !task)
		return false;
	snprintf(name, sizeof(name), "%s_%s", array, task);
	return strcmp(word, name) == 0;
}

/* "requeue 12", in any case and cut short as scontrol allows, options before it. */
static bool is_own_requeue(char **argv)
{
	char **word = argv + 1;
	size_t len;

	while (*word && **word == '-')
		word++;
	len = *word ? strlen(*word) : 0;
	return len >= 3 && strncasecmp(*word, "requeue", len) == 0 && word[1] &&
	       is_own_job(word[1]) && !word[2];
}

/* `path` without the folder of ours, wherever somebody has moved it to. */
static void leave_out(char *path, const char *bin)
{
	char *to = path;

	for (char *at = path; *at;) {
		size_t len = strcspn(at, ":"), whole = len + (at[len] == ':');

		if (len != strlen(bin) || strncmp(at, bin, len) != 0) {
			memmove(to, at, whole);
			to += whole;
		}
		at += whole;
	}
	*to = '\0';
}

static int run_scontrol(char **argv, const char *folder)
{
	char *path = getenv("PATH"), *bin = path_join("%s/bin", folder);

	if (path)
		leave_out(path, bin); /* in place: the environment has it */
	free(bin);
	execvp("scontrol", argv);
	fprintf(stderr, "scontrol: %s\n", strerror(errno));
	return EXIT_NOT_FOUND;
}

int requeue_main(char **argv)
{
	const char *job = getenv("SLURM_JOB_ID"), *value = getenv(variable), *folder;
	struct err why = { 0 };
	char *mark;

	folder = value ? strchr(value, ':') : NULL;
	if (!folder) {
		fprintf(stderr, "scontrol: called in a way that lbrun does not know\n");
		return EXIT_NOT_FOUND;
	}
	folder++;
	if (!job || strlen(job) != (size_t)(folder - 1 - value) ||
	    strncmp(job, value, strlen(job)) != 0 || !is_own_requeue(argv))
		return run_scontrol(argv, folder);
	mark = mark_of(folder);
	if (file_write_visible(mark, "", 0, 0640, &why) < 0) {
		fprintf(stderr, "lbrun: %s\n", why.text);
		return 1;
	}
	free(mark);
	fprintf(stderr, "lbrun: the job is not requeued: lbd brings the run back in another one\n");
	return 0;
}
