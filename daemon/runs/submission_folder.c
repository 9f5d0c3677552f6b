/* SPDX-License-Identifier: MIT */
/* submission_folder.c - the name of a new run, and its folder: it keeps the text as it was
 * submitted (submitted.toml) beside what became of it with every --set (spec.toml). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"
#include "daemon/job/network.h"
#include "common/run/code_files.h"
#include "daemon/runs/remover.h"
#include "daemon/runs/submission.h"
#include "slurm/batch/directives.h"

enum { MAX_DRAWS = 100 };

static bool has_row(struct lbd *lbd, const char *name)
{
	struct ledger_run row;
	struct err err = { 0 };

	return ledger_run_find(lbd->ledger, name, &row, &err) == 0 || err.code != ERR_NOT_FOUND;
}

static bool is_free(struct lbd *lbd, const char *name)
{
	char *dir = path_join("%s/%s", lbd->config.runs_folder, name);
	struct stat st;
	bool no_folder = lstat(dir, &st) < 0 && !remover_is_at(lbd, dir);

	free(dir);
	return no_folder && !has_row(lbd, name);
}

bool submit_left_folder(struct lbd *lbd, const char *name)
{
	char *dir = path_join("%s/%s", lbd->config.runs_folder, name);
	bool has_run = folder_holds(dir, "record.json") || folder_holds(dir, "attempts");
	struct stat st;
	bool is = !has_run && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
		  st.st_uid == geteuid() && !has_row(lbd, name);

	free(dir);
	return is;
}

/* Whether an lbd died over a submission, or one is under way, perhaps of another home's lbd, people
 * know. */
static int refuse_name(const struct submission *s, struct err *err)
{
	char *dir = path_join("%s/%s", s->lbd->config.runs_folder, s->name);
	char word[SHELL_WORD_BYTES];

	if (has_row(s->lbd, s->name))
		err_set(err, ERR_LOCKED,
			"%s: there is such a run already; choose another name, or lbctl restart %s",
			s->name, s->name);
	else if (remover_is_at(s->lbd, dir))
		err_set(err, ERR_LOCKED, "%s: a run of this name is being removed, with %s",
			s->name, dir);
	else if (submit_left_folder(s->lbd, s->name))
		err_set(err, ERR_LOCKED,
			"%s: no run has its folder: it is being submitted, or that was cut short "
			"(then: rm -r %s); or choose another name",
			s->name, shell_word(dir, word));
	else
		err_set(err, ERR_LOCKED,
			"%s: a run that this lbd does not know has the folder %s; choose another "
			"name",
			s->name, dir);
	free(dir);
	return -1;
}

int submission_choose_name(struct submission *s, struct err *err)
{
	if (s->spec.name) {
		snprintf(s->name, sizeof(s->name), "%s", s->spec.name);
		if (is_free(s->lbd, s->name))
			return 0;
		return refuse_name(s, err);
	}
	for (int i = 0; i < MAX_DRAWS; i++) {
		name_draw(random_u64(), s->name);
		if (is_free(s->lbd, s->name))
			return 0;
	}
	return err_set(err, ERR_INTERNAL, "no free name found in %d draws", MAX_DRAWS);
}

static int write_env(const struct submission *s, struct err *err)
{
	json_t *env = json_object_get(s->by.args, "env");
	char *path = path_join("%s/env.json", s->dir),
	     *text = json_is_object(env) ? js_line(env) : xstrdup("{}");
	int rc;

	/* it may hold secrets, with a script above all: then it is the whole environment */
	rc = file_write_visible(path, text, strlen(text), 0600, err);
	explicit_bzero(text, strlen(text));
	free(text);
	free(path);
	return rc;
}

static int write_script(const struct submission *s, struct err *err)
{
	char *text = js_bytes_take(json_object_get(s->by.args, "script"));
	char *path = path_join("%s/slurm_script", s->dir);
	int rc = s->spec.script && text ? file_write_visible(path, text, strlen(text), 0750, err)
					: 0;

	free(text);
	free(path);
	return rc;
}

static int check_network(const struct submission *s, struct err *err)
{
	const char *name = network_of(&s->lbd->config, &s->spec);
	struct strv env = { 0 };
	int rc = name ? network_add(&env, &s->lbd->config, name, err) : 0;

	strv_free(env.items);
	return rc;
}

struct run submission_as_run(const struct submission *s)
{
	struct run run = {
		.dir = s->dir,
		.owner_uid = s->by.uid,
		.spec = s->spec,
		.given = s->by.args,
		.scheduler = submission_scheduler(s),
		.attempt = { .number = 1 },
	};

	snprintf(run.name, sizeof(run.name), "%s", s->name);
	return run;
}

int spec_check_job(const struct run *run, const json_t *fields, struct err *err)
{
	const struct scheduler *to = run->scheduler;
	const struct job_request job = { .fields = fields };

	if (json_object_get(fields, "array_inx") && !run->spec.script)
		return err_set(err, ERR_USAGE,
			       "--array: only a script can be an array; for runs of a "
			       "command: lbctl submit --sweep");
	if (to == NULL || to->ops->check == NULL)
		return 0;
	return to->ops->check(to, &job, err);
}

static void note_unused(struct submission *s, const struct run *run, const json_t *fields)
{
	const struct scheduler *to = run->scheduler;
	char *options = to && to->ops->unused ? to->ops->unused(fields) : NULL;

	if (options)
		s->note = xasprintf("without Slurm this means nothing: %s", options);
	free(options);
}

/* The folder of "out/%A_%a.txt" as far as it does not depend on the job; NULL: the present one. */
static char *output_folder(const char *path, const char *workdir)
{
	size_t len = strcspn(path, "%\\");

	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len <= 1)
		return NULL;
	return path[0] == '/' ? xstrndup(path, len - 1)
			      : path_join("%s/%.*s", workdir, (int)(len - 1), path);
}

/* A folder that is not here may be on the nodes. */
static void note_absent(struct submission *s, const char *option, const char *folder)
{
	struct stat st;

	if (!s->note && folder && stat(folder, &st) < 0 && errno == ENOENT)
		s->note = xasprintf("%s: there is no folder %s here; where the nodes have none "
				    "either, the job cannot begin",
				    option, folder);
}

/* Slurm ends a job whose output cannot be written before it has begun, and says FAILED. One without
 * its folder it begins in /tmp, where lbrun refuses to go on. */
static void note_folders(struct submission *s, const json_t *fields)
{
	static const char *const outputs[][2] = { { "std_out", "--output" },
						  { "std_err", "--error" } };
	const char *workdir = js_str(fields, "work_dir", s->spec.workdir);

	note_absent(s, "--chdir", workdir);
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		char *path = js_bytes_take(json_object_get(fields, outputs[i][0]));
		char *folder = path && workdir ? output_folder(path, workdir) : NULL;

		note_absent(s, outputs[i][1], folder);
		free(folder);
		free(path);
	}
}

static void note_unread(struct submission *s, const struct batch_job *job)
{
	int line = job->text ? directives_first_unread(job->text, strlen(job->text)) : 0;

	if (line > 0 && !s->note)
		s->note = xasprintf(
			"%s:%d: #SBATCH behind the first command is not read, by sbatch "
			"neither",
			s->spec.script, line);
}

/* A command has few variables, no input, and one file for all that it says. */
static void note_command(struct submission *s, const json_t *fields)
{
	static const char *const vain[][2] = {
		{ "export", "--export means nothing to a command: what else it needs goes into "
			    "run.env_file, as lines of NAME=value" },
		{ "std_err",
		  "--error means nothing to a command: all that it says goes to --output" },
		{ "std_in", "--input means nothing to a command: write -- sh -c 'PROGRAM <FILE'" },
	};

	for (size_t i = 0; i < sizeof(vain) / sizeof(vain[0]) && !s->note; i++) {
		const char *value = js_str(fields, vain[i][0], NULL);

		if (value && strcasecmp(value, "NONE") != 0)
			s->note = xstrdup(vain[i][1]);
	}
}

/* Every option is understood now, not when the job is due. */
static int check_options(struct submission *s, struct err *err)
{
	struct run run = submission_as_run(s);
	struct batch_job job;
	int rc = batch_job_read(&job, &s->lbd->config, &run, err);

	if (rc == 0)
		rc = spec_check_job(&run, job.fields, err);
	if (rc == 0)
		note_unused(s, &run, job.fields);
	if (rc == 0 && s->spec.script)
		note_folders(s, job.fields);
	else if (rc == 0)
		note_command(s, job.fields);
	if (rc == 0)
		note_unread(s, &job);
	s->hold = js_int(job.fields, "hold", 0) != 0;
	s->wait = js_int(job.fields, "wait", 0) != 0;
	batch_job_clear(&job);
	return rc == 0 ? check_network(s, err) : -1;
}

static int write_submitted(const struct submission *s, struct err *err)
{
	const char *text = js_str(s->by.args, "toml", "");
	char *path = path_join("%s/submitted.toml", s->dir);
	int rc = file_write_visible(path, text, strlen(text), 0640, err);

	free(path);
	return rc;
}

static int write_spec(const struct submission *s, struct err *err)
{
	char *text = toml_print(&s->toml), *path = path_join("%s/spec.toml", s->dir);
	int rc = file_write_visible(path, text, strlen(text), 0640, err);

	free(text);
	free(path);
	return rc;
}

/* The code that the client found in its folder; its patch may hold what is for nobody else. What is
 * lost of it by a power cut is no run. */
static int write_code(const struct submission *s, struct err *err)
{
	json_t *code = json_copy(json_object_get(s->by.args, "code"));
	char *patch = js_bytes_take(json_object_get(code, "patch"));
	char *path = path_join("%s/" CODE_JSON, s->dir);
	char *files = js_bytes_take(json_object_get(code, "files"));
	char *patch_path = path_join("%s/code.patch", s->dir);
	char *files_path = path_join("%s/" CODE_FILES, s->dir);
	int rc = 0;

	if (json_is_object(code)) {
		json_object_del(code, "patch");
		json_object_del(code, "files");
		js_set_bool(code, "snapshot", json_object_get(s->by.args, "snapshot") != NULL);
		rc = js_save_visible(path, json_incref(code), err);
		if (rc == 0 && patch)
			rc = file_write_visible(patch_path, patch, strlen(patch), 0600, err);
		if (rc == 0 && files && !json_object_get(s->by.args, "snapshot"))
			rc = file_write_visible(files_path, files, strlen(files), 0640, err);
	}
	json_decref(code);
	free(patch);
	free(files);
	free(path);
	free(patch_path);
	free(files_path);
	return rc;
}

/* One of several syncs at once: each waits for the disk, which serves them together. */
struct syncing {
	uv_thread_t thread;
	bool has_thread;
	int (*sync)(const char *path, struct err *err);
	char *path; /* owned */
	int rc;
	struct err err;
};

static void sync_one(void *arg)
{
	struct syncing *one = arg;

	one->rc = one->sync(one->path, &one->err);
}

static void sync_begin(struct syncing *one, int (*sync)(const char *path, struct err *err),
		       char *path)
{
	*one = (struct syncing){ .sync = sync, .path = path };
	one->has_thread = uv_thread_create(&one->thread, sync_one, one) == 0;
	if (!one->has_thread)
		sync_one(one);
}

static int sync_end(struct syncing *one, struct err *err)
{
	if (one->has_thread)
		uv_thread_join(&one->thread);
	free(one->path);
	return one->rc == 0 ? 0 : err_set(err, one->err.code, "%s", one->err.text);
}

int submission_sync_folder(const struct submission *s, struct err *err)
{
	struct syncing all[5];
	size_t count = 0;
	int rc = 0;

	sync_begin(&all[count++], file_sync, path_join("%s/spec.toml", s->dir));
	sync_begin(&all[count++], file_sync, path_join("%s/env.json", s->dir));
	if (s->spec.script)
		sync_begin(&all[count++], file_sync, path_join("%s/slurm_script", s->dir));
	sync_begin(&all[count++], folder_sync, path_join("%s", s->dir));
	sync_begin(&all[count++], folder_sync, path_join("%s", s->lbd->config.runs_folder));
	while (count > 0)
		if (sync_end(&all[--count], err) < 0)
			rc = -1;
	return rc < 0 ? -1 : failpoint(FP_RUN_FOLDER, err);
}

int submission_make_folder(struct submission *s, struct err *err)
{
	s->dir = path_join("%s/%s", s->lbd->config.runs_folder, s->name);
	s->has_folder = folder_make_new(s->dir, 0750, err) == 0;
	if (!s->has_folder && err->code == ERR_LOCKED) { /* another home's lbd was faster */
		err_clear(err);
		return refuse_name(s, err);
	}
	if (!s->has_folder || submission_take_copy(s, err) < 0 ||
	    (!run_spec_is_command(&s->spec) && write_submitted(s, err) < 0))
		return -1;
	return check_options(s, err);
}

int submission_fill_folder(const struct submission *s, struct err *err)
{
	if (run_spec_is_command(&s->spec) && write_submitted(s, err) < 0)
		return -1;
	if (write_env(s, err) < 0 || write_script(s, err) < 0 || write_spec(s, err) < 0)
		return -1;
	return write_code(s, err);
}
