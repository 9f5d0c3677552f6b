/* SPDX-License-Identifier: MIT */
/* job.c - an attempt's folder on disk, and the request that a scheduler gets for it. */
#include "daemon/job/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/attempt.h"
#include "common/run/attempt_params.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/job_env.h"
#include "daemon/job/job_go_back.h"
#include "daemon/job/job_params.h"

char *job_folder(const struct run *run)
{
	return path_join("%s/attempts/%lld", run->dir, (long long)run->attempt.number);
}

/* lbrun is the script's interpreter, and its second line tells lbrun the attempt. */
char *job_script(const struct config *config, const struct scheduler *scheduler, const char *folder,
		 const char *text)
{
	bool is_read = scheduler && scheduler->by_sbatch;
	char *first = xasprintf("#!%s --job\n%s%s\n", config->interpreter, ATTEMPT_JOB_MARK,
				folder);
	char *script = text ? batch_job_wrap(first, text, is_read) : xstrdup(first);

	free(first);
	return script;
}

/* What scontrol shows as the command: the script where it was submitted, with its arguments. */
static char **shown_argv(const struct run *run)
{
	char **argv = run->spec.script ? job_script_command(run) : NULL;

	if (argv) {
		free(argv[0]);
		argv[0] = xstrdup(run->spec.script);
	}
	return argv;
}

static void argv_free(char **argv)
{
	for (char **word = argv; word && *word; word++)
		free(*word);
	free(argv);
}

int job_retell(const struct config *config, const struct run *run, double node_mtbf_s,
	       struct err *err)
{
	char *folder = job_folder(run);
	struct batch_job job;
	int rc = batch_job_read(&job, config, run, err);

	if (rc == 0)
		rc = job_params_write(config, run, job.fields, folder, node_mtbf_s, err);
	batch_job_clear(&job);
	free(folder);
	return rc;
}

/* What a request to a scheduler borrows. */
struct parts {
	struct batch_job asked;
	char *folder, *script, *script_path, *output;
	char **argv;
	struct strv open_env;
};

static void parts_free(struct parts *p)
{
	strv_free(p->open_env.items);
	argv_free(p->argv);
	batch_job_clear(&p->asked);
	free(p->folder);
	free(p->script);
	free(p->script_path);
	free(p->output);
}

/* parts_free is due in any case. */
static int parts_make(struct parts *p, const struct config *config, const struct run *run,
		      struct err *err)
{
	if (batch_job_read(&p->asked, config, run, err) < 0)
		return -1;
	p->folder = job_folder(run);
	p->script = job_script(config, run->scheduler, p->folder, p->asked.text);
	p->argv = shown_argv(run);
	p->script_path = path_join("%s/job.sh", p->folder);
	p->output = path_join("%s/out.log", p->folder);
	return job_env_make(&p->open_env, config, run, &p->asked, err);
}

/* The environment is all that there is, or what is no secret of it. */
static struct job_request request_of(const struct parts *p, const struct run *run,
				     const char *ledger_id, char *const *env)
{
	return (struct job_request){
		.token = run->attempt.job.token,
		.ledger_id = ledger_id,
		.run = run->name,
		.fields = p->asked.fields,
		.script = p->script,
		.script_path = p->script_path,
		.output = p->output,
		.argv = p->argv,
		.env = env,
		.open_env = p->open_env.items,
		.env_file = run->spec.env_file,
		.env_uid = (unsigned)run->owner_uid,
		.words = run->scheduler->by_sbatch ? p->asked.words : NULL,
		.submit_dir = run->spec.workdir,
	};
}

/* Everything that the job needs on disk; job.sh, which says that the rest is there, comes last. */
static int write_files(const struct config *config, const struct run *run, const struct parts *p,
		       double node_mtbf_s, struct err *err)
{
	if (folder_make(p->folder, 0750, err) < 0)
		return -1;
	unlink(p->script_path); /* of a prequeued attempt of this number that was dropped */
	if (job_go_back(run, err) < 0 ||
	    job_params_write(config, run, p->asked.fields, p->folder, node_mtbf_s, err) < 0 ||
	    failpoint(FP_ATTEMPT_FILES, err) < 0)
		return -1;
	return file_write_visible(p->script_path, p->script, strlen(p->script), 0750, err);
}

/* Numbers are given again, tokens are not. */
static bool is_written(const struct run *run)
{
	char *folder = job_folder(run), *path = path_join("%s/job.sh", folder);
	struct attempt_params params = { 0 };
	bool is = file_exists(path) && attempt_params_read(folder, &params, NULL) == 0 &&
		  strcmp(params.token, run->attempt.job.token) == 0;

	attempt_params_clear(&params);
	free(folder);
	free(path);
	return is;
}

int job_write(const struct config *config, const struct run *run, double node_mtbf_s,
	      struct err *err)
{
	struct parts parts = { 0 };
	int rc;

	if (is_written(run))
		return 0;
	if (run->spec_problem)
		return err_set(err, ERR_USAGE, "%s", run->spec_problem);
	if ((rc = parts_make(&parts, config, run, err)) == 0)
		rc = write_files(config, run, &parts, node_mtbf_s, err);
	parts_free(&parts);
	return rc;
}

/* sbatch reads them, and the local scheduler does not ask for them later. */
static bool are_files_due(const struct scheduler *scheduler)
{
	return scheduler->by_sbatch || scheduler->ops->probe == NULL;
}

/* Slurm calls it an invalid time limit. */
static int meets_deadline(const struct run *run, const json_t *fields, struct err *err)
{
	int64_t deadline_ms = 1000 * js_int(fields, "deadline", 0);
	char text[CLOCK_TEXT_MAX];

	if (run->scheduler->ops->unused || deadline_ms == 0 || deadline_ms > clock_wall_ms())
		return 0;
	return err_set(err, ERR_REFUSED, "its deadline has passed: %s (--deadline)",
		       clock_text(deadline_ms, text));
}

int job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
	       const char *ledger_id, scheduler_done done, void *arg, struct err *err)
{
	struct parts parts = { 0 };
	struct strv env = { 0 };
	int rc = -1;

	if (run->scheduler == NULL)
		err_set(err, ERR_SCHEDULER, "Slurm is not available to this lbd");
	else if (parts_make(&parts, config, run, err) == 0 &&
		 meets_deadline(run, parts.asked.fields, err) == 0 &&
		 job_env_make(&env, config, run, &parts.asked, err) == 0 &&
		 job_env_add_secrets(&env, run, err) == 0)
		rc = are_files_due(run->scheduler)
			     ? write_files(config, run, &parts, node_mtbf_s, err)
			     : 0;
	if (rc == 0)
		rc = batch_job_set_output(&parts.asked, run, parts.output, err);
	if (rc == 0) {
		struct job_request job;

		job = request_of(&parts, run, ledger_id, env.items);
		failpoint(FP_SUBMIT_CALL, NULL);
		run->scheduler->ops->submit(run->scheduler, &job, done, arg);
	}
	strv_free(env.items);
	parts_free(&parts);
	return rc;
}

/* Nothing is written for a mere question, and no secret goes along. */
static int ask(struct parts *parts, struct job_request *job, const struct config *config,
	       const struct run *run, struct err *err)
{
	if (parts_make(parts, config, run, err) < 0 ||
	    batch_job_set_output(&parts->asked, run, parts->output, err) < 0)
		return -1;
	*job = request_of(parts, run, "", parts->open_env.items);
	return 0;
}

int job_probe(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	      struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->probe(run->scheduler, &job, done, arg);
	parts_free(&parts);
	return rc;
}

int job_room(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	     struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->room(run->scheduler, &job, done, arg);
	parts_free(&parts);
	return rc;
}

int job_why(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	    struct err *err)
{
	struct parts parts = { 0 };
	struct job_request job;
	int rc = ask(&parts, &job, config, run, err);

	if (rc == 0)
		run->scheduler->ops->why(run->scheduler, &run->attempt.job, &job,
					 run->excluded ? run->excluded : "", done, arg);
	parts_free(&parts);
	return rc;
}
