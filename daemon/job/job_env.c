/* SPDX-License-Identifier: MIT */
/* job_env.c - lays environments over each other. */
#include "daemon/job/job_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/host/limits.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/network.h"

enum { ENV_JSON_MAX = 4 * 1024 * 1024 }; /* what a request can hold, written down by us */

/* Containers give people numbers that no account has: what they, or their makers, have set. */
static void env_of_nobody(struct strv *env)
{
	static const char *const names[] = { "HOME", "USER", "LOGNAME", "SHELL" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value)
			strv_set(env, xasprintf("%s=%s", names[i], value));
	}
}

/* What a login gives; Slurm itself adds nothing but SLURM_*. */
static void env_login(struct strv *env, const struct run *run)
{
	struct account me;
	const char *path = getenv("PATH"), *lang = getenv("LANG");

	strv_set(env, xasprintf("PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin"));
	if (lang)
		strv_set(env, xasprintf("LANG=%s", lang));
	strv_set(env, xasprintf("SLURM_SUBMIT_DIR=%s", run->spec.workdir));
	if (!account_of(getuid(), &me)) {
		env_of_nobody(env);
		return;
	}
	strv_set(env, xasprintf("HOME=%s", me.home));
	strv_set(env, xasprintf("USER=%s", me.name));
	strv_set(env, xasprintf("LOGNAME=%s", me.name));
	strv_set(env, xasprintf("SHELL=%s", me.shell));
	account_clear(&me);
}

int job_env_submitter(struct strv *env, const struct run *run, struct err *err)
{
	char *path = path_join("%s/env.json", run->dir);
	json_t *given = json_object_get(run->given, "env"), *saved;
	const char *key;
	json_t *value;

	if (!run->given)
		saved = file_exists(path) ? js_load(path, ENV_JSON_MAX, err) : json_object();
	else
		saved = json_is_object(given) ? json_incref(given) : json_object();
	free(path);
	if (saved == NULL)
		return -1;
	json_object_foreach(saved, key, value) {
		char *name = js_bytes_key_take(key), *text = js_bytes_take(value);

		if (name && text)
			strv_set(env, xasprintf("%s=%s", name, text));
		free(name);
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

bool job_env_is_cron(char *const *env)
{
	for (; env && *env; env++)
		if (strncmp(*env, "LB_CRON=", 8) == 0)
			return true;
	return false;
}

static void strv_set_all(struct strv *env, const struct strv *from)
{
	for (size_t i = 0; i < from->count; i++)
		strv_set(env, xstrdup(from->items[i]));
}

/* A batch script gets the submitter's environment and nothing else, as from sbatch; that of cron,
 * which nobody submitted, what a login gives, too. */
static void env_of_script(struct strv *env, const struct run *run, const struct batch_job *job)
{
	if (job->submitter.count == 0 || job_env_is_cron(job->submitter.items))
		env_login(env, run);
	strv_set_all(env, &job->submitter);
	batch_job_env(job->fields, env);
}

/* Without Slurm a command has the limits of who submits it; nodes of a cluster have their own. */
static void env_of_command(struct strv *env, const struct run *run, const struct batch_job *job)
{
	bool has_cluster = !run->scheduler || !run->scheduler->ops->unused;

	env_login(env, run);
	for (size_t i = 0; i < job->submitter.count; i++)
		if (!has_cluster || strncmp(job->submitter.items[i], LIMIT_VARIABLES,
					    sizeof(LIMIT_VARIABLES) - 1) != 0)
			strv_set(env, xstrdup(job->submitter.items[i]));
}

int job_env_make(struct strv *env, const struct config *config, const struct run *run,
		 const struct batch_job *job, struct err *err)
{
	const char *network = network_of(config, &run->spec);

	if (run->spec.script)
		env_of_script(env, run, job);
	else
		env_of_command(env, run, job);
	return network ? network_add(env, config, network, err) : 0;
}
