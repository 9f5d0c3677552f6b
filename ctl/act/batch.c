/* SPDX-License-Identifier: MIT */
/* batch.c - a batch script and what sbatch would have sent along with it: the whole environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/kept_env.h"
#include "ctl/act/submission.h"
#include "ctl/base/command.h"
#include "slurm/batch/self_submission.h"

static void set_var(json_t *env, const char *name, char *value)
{
	if (value)
		json_object_set_new(env, name, js_bytes(value));
	free(value);
}

json_t *batch_environment(void)
{
	json_t *env = json_object();
	char host[256] = "";
	int nice;

	for (char **entry = environ; *entry; entry++) {
		size_t len = strcspn(*entry, "=");
		char *name = xstrndup(*entry, len), *key = js_bytes_key(name);

		if (len > 0 && (*entry)[len])
			json_object_set_new(env, key, js_bytes(*entry + len + 1));
		free(key);
		free(name);
	}
	set_var(env, "SLURM_UMASK", kept_umask());
	errno = 0;
	nice = getpriority(PRIO_PROCESS, 0);
	if (nice != -1 || errno == 0)
		set_var(env, "SLURM_PRIO_PROCESS", xasprintf("%d", nice));
	set_var(env, "SLURM_SUBMIT_DIR", getcwd(NULL, 0));
	if (gethostname(host, sizeof(host) - 1) == 0)
		set_var(env, "SLURM_SUBMIT_HOST", xstrdup(host));
	return env;
}

/* As sbatch names it: from the current folder, without looking through links. */
static char *full_path(const char *file)
{
	char *folder, *path;

	if (file[0] == '/')
		return xstrdup(file);
	folder = getcwd(NULL, 0);
	path = path_join("%s/%s", folder ? folder : "", file);
	free(folder);
	return path;
}

/* What it means under lbd, before somebody wonders. */
static void tell_of_self_submission(const char *file, const char *text)
{
	int requeue = requeue_line(text);
	enum self_submission how = SUBMITS_AGAIN;
	int line = requeue ? requeue : submits_itself(file, text, &how);

	if (line > 0 && how == SUBMITS_LATER)
		fprintf(stderr,
			"lbctl: %s:%d: sbatch of this script for a later time: such a job is "
			"Slurm's, and lbd knows nothing of it; lbd starts what lies in "
			"$LB_HOME/cron when it is due, without that line: man lbctl, cron\n",
			file, line);
	else if (line > 0 && how == SUBMITS_ANOTHER)
		fprintf(stderr,
			"lbctl: %s:%d: sbatch of this script by its whole path, by ssh or with --array, --export or other arguments: "
			"that job is Slurm's, and trains beside the run, which lbd brings back by "
			"itself; take the line out: man lbctl, submit\n",
			file, line);
	else if (line > 0)
		fprintf(stderr,
			"lbctl: %s:%d: %s: lbd brings the run back by itself, after the time "
			"limit, too, in a new job; the call is taken for that: man lbctl, submit\n",
			file, line, requeue ? "scontrol requeue" : "sbatch of this script");
}

void batch_add_script(json_t *args, const char *file, const char *text,
		      const struct operands *operands)
{
	char *path = full_path(file);
	json_t *arguments = json_array();

	for (size_t i = 0; i < operands->rest_count; i++)
		json_array_append_new(arguments, js_bytes(operands->rest[i]));
	json_object_set_new(args, "script", js_bytes(text));
	tell_of_self_submission(file, text);
	json_object_set_new(args, "script_path", js_bytes(path));
	json_object_set_new(args, "arguments", arguments);
	free(path);
}

/* As sbatch writes it, and names the job. */
void batch_add_wrap(json_t *args, const char *command)
{
	static const struct operands none;
	char *text = xasprintf(
		"#!/bin/sh\n# This script was created by lbctl submit --wrap.\n\n%s\n", command);

	batch_add_script(args, "wrap", text, &none);
	free(text);
}
