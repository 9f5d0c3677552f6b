/* SPDX-License-Identifier: MIT */
#include "daemon/job_env.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/files.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/paths.h"
#include "daemon/batch_job.h"
#include "daemon/network.h"

enum { ENV_JSON_MAX = 256 * 1024 };

void job_env_take(struct job_env *env, char *entry)
{
	size_t name = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->list[i], entry, name) == 0) {
			free(env->list[i]);
			env->list[i] = entry;
			return;
		}
	}
	env->list = xrealloc(env->list, (env->count + 2) * sizeof(char *));
	env->list[env->count++] = entry;
	env->list[env->count] = NULL;
}

/* The values may be secrets: nothing of them stays in freed memory. */
void job_env_free(struct job_env *env)
{
	for (size_t i = 0; i < env->count; i++) {
		explicit_bzero(env->list[i], strlen(env->list[i]));
		free(env->list[i]);
	}
	free(env->list);
}

/* What a login gives; Slurm itself adds nothing but SLURM_*. */
static void env_login(struct job_env *env, const struct run *run)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *path = getenv("PATH"), *lang = getenv("LANG");

	job_env_take(env, xasprintf("PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin"));
	if (lang)
		job_env_take(env, xasprintf("LANG=%s", lang));
	job_env_take(env, xasprintf("SLURM_SUBMIT_DIR=%s", run->spec.workdir));
	if (pw == NULL)
		return;
	job_env_take(env, xasprintf("HOME=%s", pw->pw_dir));
	job_env_take(env, xasprintf("USER=%s", pw->pw_name));
	job_env_take(env, xasprintf("LOGNAME=%s", pw->pw_name));
	job_env_take(env, xasprintf("SHELL=%s", pw->pw_shell));
}

int job_env_submitter(struct job_env *env, const struct run *run, struct err *err)
{
	char *path = path_join("%s/env.json", run->dir);
	json_t *saved = file_exists(path) ? js_load(path, ENV_JSON_MAX, err) : json_object();
	const char *name;
	json_t *value;

	free(path);
	if (saved == NULL)
		return -1;
	json_object_foreach(saved, name, value) {
		char *text = js_bytes_take(value);

		if (text)
			job_env_take(env, xasprintf("%s=%s", name, text));
		free(text);
	}
	json_decref(saved);
	return 0;
}

int job_env_add_secrets(struct job_env *env, const struct run *run, struct err *err)
{
	char **list;

	if (run->spec.env_file == NULL)
		return 0;
	list = env_file_read(run->spec.env_file, (unsigned)run->owner_uid, err);
	if (list == NULL)
		return -1;
	for (char **entry = list; *entry; entry++)
		job_env_take(env, xstrdup(*entry));
	env_file_free(list);
	return 0;
}

/* A batch script gets the submitter's environment and nothing else, as from sbatch; where there is
 * none (cron), that of a login. */
static int env_of_script(struct job_env *env, const struct run *run, const json_t *fields,
			 struct err *err)
{
	if (job_env_submitter(env, run, err) < 0)
		return -1;
	if (env->count == 0)
		env_login(env, run);
	batch_job_env(fields, env);
	return 0;
}

int job_env_make(struct job_env *env, const struct config *config, const struct run *run,
		 const json_t *fields, struct err *err)
{
	const char *network = network_of(config, &run->spec);
	int rc;

	if (run->spec.script) {
		rc = env_of_script(env, run, fields, err);
	} else {
		env_login(env, run);
		rc = job_env_submitter(env, run, err);
	}
	return rc == 0 && network ? network_add(env, config, network, err) : rc;
}
