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
#include "common/strv.h"
#include "daemon/batch_job.h"
#include "daemon/network.h"

enum { ENV_JSON_MAX = 256 * 1024 };

/* What a login gives; Slurm itself adds nothing but SLURM_*. */
static void env_login(struct strv *env, const struct run *run)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *path = getenv("PATH"), *lang = getenv("LANG");

	strv_set(env, xasprintf("PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin"));
	if (lang)
		strv_set(env, xasprintf("LANG=%s", lang));
	strv_set(env, xasprintf("SLURM_SUBMIT_DIR=%s", run->spec.workdir));
	if (pw == NULL)
		return;
	strv_set(env, xasprintf("HOME=%s", pw->pw_dir));
	strv_set(env, xasprintf("USER=%s", pw->pw_name));
	strv_set(env, xasprintf("LOGNAME=%s", pw->pw_name));
	strv_set(env, xasprintf("SHELL=%s", pw->pw_shell));
}

int job_env_submitter(struct strv *env, const struct run *run, struct err *err)
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
			strv_set(env, xasprintf("%s=%s", name, text));
		free(text);
	}
	json_decref(saved);
	return 0;
}

int job_env_add_secrets(struct strv *env, const struct run *run, struct err *err)
{
	char **list;

	if (run->spec.env_file == NULL)
		return 0;
	list = env_file_read(run->spec.env_file, (unsigned)run->owner_uid, err);
	if (list == NULL)
		return -1;
	for (char **entry = list; *entry; entry++)
		strv_set(env, xstrdup(*entry));
	strv_free(list);
	return 0;
}

/* A batch script gets the submitter's environment and nothing else, as from sbatch; where there is
 * none (cron), that of a login. */
static int env_of_script(struct strv *env, const struct run *run, const json_t *fields,
			 struct err *err)
{
	if (job_env_submitter(env, run, err) < 0)
		return -1;
	if (env->count == 0)
		env_login(env, run);
	batch_job_env(fields, env);
	return 0;
}

int job_env_make(struct strv *env, const struct config *config, const struct run *run,
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
