/* SPDX-License-Identifier: MIT */
/* submit.c - text → spec → folder → (lbworker's check) → row.
 *
 * Everything that can be wrong is found before the row is committed; what was made until then is
 * taken back. The folder keeps the text as it was submitted (submitted.toml) beside what became of
 * it with every --set (spec.toml). */
#include "daemon/submit.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/names.h"
#include "common/paths.h"

enum {
	MAX_DRAWS = 100,
	CHECK_DEADLINE_MS = 20 * 1000,
	CHECK_MAX_BYTES = 4096,
};

struct submission {
	struct request *request;
	struct lbd *lbd;
	struct toml toml;
	struct run_spec spec;
	char name[NAME_MAX_BYTES + 1];
	char *dir;
	const char *scheduler;

	/* lbworker train --check */
	uv_process_t process;
	uv_pipe_t output;
	uv_timer_t deadline;
	int open_handles;
	struct buf said;
	int64_t exit_status;
	char chunk[1024];
};

static void submission_free(struct submission *s)
{
	toml_clear(&s->toml);
	run_spec_clear(&s->spec);
	buf_fini(&s->said);
	free(s->dir);
	free(s);
}

static void refuse(struct submission *s, const struct err *err, bool made_folder)
{
	if (made_folder)
		folder_remove(s->dir, NULL);
	request_refuse(s->request, err);
	submission_free(s);
}

/* --- the spec --------------------------------------------------------------------------------------------- */

static int set_in_run(struct toml *toml, const char *key, json_t *value)
{
	json_t *run = json_object_get(toml->root, "run");

	if (run == NULL) {
		run = json_object();
		json_object_set_new(toml->root, "run", run);
	}
	return json_object_set_new(run, key, value);
}

/* What the command line says on top of the file. */
static int apply_args(struct toml *toml, const json_t *args, struct err *err)
{
	const json_t *sets = json_object_get(args, "set");
	json_t *command = json_object_get(args, "command"), *item;
	const char *name = js_str(args, "name", NULL), *workdir = js_str(args, "workdir", NULL);
	size_t i;

	json_array_foreach(sets, i, item)
		if (!json_is_string(item) || toml_set(toml, json_string_value(item), err) < 0)
			return err_set(err, ERR_USAGE, "--set: must be section.key=value");
	if (name)
		set_in_run(toml, "name", json_string(name));
	if (command)
		set_in_run(toml, "command", json_incref(command));
	if (workdir && json_object_get(json_object_get(toml->root, "run"), "workdir") == NULL)
		set_in_run(toml, "workdir", json_string(workdir));
	return 0;
}

/* The secrets are read again for each job; whether they can be is told now. */
static int check_env_file(const struct submission *s, struct err *err)
{
	struct err why = { 0 };
	char **list;

	if (s->spec.env_file == NULL)
		return 0;
	list = env_file_read(s->spec.env_file, s->request->peer.uid, &why);
	if (list == NULL)
		return err_set(err, ERR_USAGE, "run.env_file: %.400s", why.text);
	env_file_free(list);
	return 0;
}

/* Slurm would run the job in /tmp instead, and say so only in its output. */
static int check_workdir(const struct submission *s, struct err *err)
{
	struct stat st;

	if (s->spec.workdir == NULL)
		return err_set(err, ERR_USAGE, "run.workdir: in which folder shall it run?");
	if (stat(s->spec.workdir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "run.workdir: %s: there is no such folder",
			       s->spec.workdir);
	return 0;
}

static int read_spec(struct submission *s, struct err *err)
{
	const json_t *args = s->request->args;
	const char *text = js_str(args, "toml", ""), *file = js_str(args, "file", "command line");

	if (toml_parse(&s->toml, text, strlen(text), file, err) < 0 ||
	    apply_args(&s->toml, args, err) < 0 || run_spec_read(&s->toml, &s->spec, err) < 0)
		return -1;
	if (check_workdir(s, err) < 0 || check_env_file(s, err) < 0)
		return -1;
	s->scheduler = submit_scheduler(s->lbd, &s->spec, err);
	return s->scheduler ? 0 : -1;
}

const char *submit_scheduler(const struct lbd *lbd, const struct run_spec *spec, struct err *err)
{
	if (spec->scheduler == SPEC_SCHEDULER_LOCAL)
		return "local";
	if (lbd->slurm)
		return "slurm";
	if (spec->scheduler == SPEC_SCHEDULER_AUTO)
		return "local";
	err_set(err, ERR_SCHEDULER, "run.scheduler: this lbd found no Slurm configuration or no "
				    "lbd-slurm beside it; \"local\" runs on this machine");
	return NULL;
}

/* --- name and folder ----------------------------------------------------------------------------------------- */

static bool is_free(struct lbd *lbd, const char *name)
{
	struct ledger_run row;
	struct err err = { 0 };
	char *dir = path_join("%s/%s", lbd->config.runs_folder, name);
	bool no_row = ledger_run_find(lbd->ledger, name, &row, &err) < 0 &&
		      err.code == ERR_NOT_FOUND;
	bool no_folder = !file_exists(dir);

	free(dir);
	return no_row && no_folder;
}

static int choose_name(struct submission *s, struct err *err)
{
	if (s->spec.name) {
		snprintf(s->name, sizeof(s->name), "%s", s->spec.name);
		if (is_free(s->lbd, s->name))
			return 0;
		return err_set(err, ERR_LOCKED, "%s: there is such a run already (or its folder below "
						"%s); choose another name, or lbctl restart %s",
			       s->name, s->lbd->config.runs_folder, s->name);
	}
	for (int i = 0; i < MAX_DRAWS; i++) {
		name_draw(random_u64(), s->name);
		if (is_free(s->lbd, s->name))
			return 0;
	}
	return err_set(err, ERR_INTERNAL, "no free name found in %d draws", MAX_DRAWS);
}

static bool is_env_name(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

static int write_env(const struct submission *s, struct err *err)
{
	json_t *env = json_object_get(s->request->args, "env"), *kept = json_object(), *value;
	char *path = path_join("%s/env.json", s->dir), *text;
	const char *name;
	int rc;

	json_object_foreach(env, name, value)
		if (is_env_name(name))
			json_object_set(kept, name, value);
	text = js_line(kept);
	rc = file_write_atomic(path, text, strlen(text), 0640, err);
	free(text);
	free(path);
	json_decref(kept);
	return rc;
}

static int write_submitted(const struct submission *s, struct err *err)
{
	const char *text = js_str(s->request->args, "toml", "");
	char *path = path_join("%s/submitted.toml", s->dir);
	int rc = file_write_visible(path, text, strlen(text), 0640, err);

	free(path);
	return rc;
}

static int write_spec(const struct submission *s, struct err *err)
{
	char *text = toml_print(&s->toml), *path = path_join("%s/spec.toml", s->dir);
	int rc = file_write_atomic(path, text, strlen(text), 0640, err);

	free(text);
	free(path);
	return rc;
}

/* spec.toml and env.json must be there as surely as the row that will be committed. */
static int make_folder(struct submission *s, struct err *err)
{
	s->dir = path_join("%s/%s", s->lbd->config.runs_folder, s->name);
	if (folder_make(s->dir, 0750, err) < 0 || write_submitted(s, err) < 0 ||
	    write_env(s, err) < 0 || write_spec(s, err) < 0)
		return -1;
	return folder_sync(s->lbd->config.runs_folder, err);
}

/* --- the row ----------------------------------------------------------------------------------------------------- */

static int insert_row(struct submission *s, struct err *err)
{
	struct ledger *ledger = s->lbd->ledger;
	struct ledger_run row = {
		.name = s->name, .owner = s->request->peer.user,
		.owner_uid = s->request->peer.uid, .state = RUN_CREATED, .text = "",
		.scheduler = s->scheduler, .dir = s->dir, .wanted = ORDER_RUN, .wanted_by = "",
		.wanted_reason = "", .created_ms = clock_wall_ms(), .step = -1, .target_step = -1,
		.loss = NAN, .tokens_per_s = NAN, .mfu = NAN,
	};
	struct ledger_event event = {
		.time_ms = row.created_ms, .kind = "created", .actor = row.owner, .text = "",
	};

	if (ledger_run_insert(ledger, &row, &event.run_id, err) < 0)
		return -1;
	return ledger_event_put(ledger, &event, err);
}

/* Row and first attempt are committed together; from then on the run cannot be lost. */
static void finish(struct submission *s)
{
	struct ledger *ledger = s->lbd->ledger;
	struct err err = { 0 };

	if (insert_row(s, &err) < 0 || engine_adopt(s->lbd->engine, s->name, &err) < 0) {
		ledger_rollback(ledger);
		refuse(s, &err, true);
	} else if (engine_settle(s->lbd->engine, &err) < 0) {
		refuse(s, &err, true);
	} else {
		request_answer(s->request, json_pack("{s:s}", "run", s->name));
		submission_free(s);
	}
}

/* --- lbworker's check of a training config ------------------------------------------------------------------- */

/* lbworker names the copy; the person knows the file by its own name. */
static void own_words(struct submission *s, struct err *err)
{
	char *copy = path_join("%s/submitted.toml", s->dir), *said = s->said.data;
	const char *file = js_str(s->request->args, "file", "spec");
	size_t skip;

	if (said == NULL || *said == '\0') {
		err_set(err, ERR_USAGE, "%s: lbworker refuses it (status %lld)", file,
			(long long)s->exit_status);
	} else {
		said[strcspn(said, "\n")] = '\0';
		if (strncmp(said, "lbworker: ", 10) == 0)
			said += 10;
		skip = strncmp(said, copy, strlen(copy)) == 0 ? strlen(copy) : 0;
		err_set(err, ERR_USAGE, "%s%s", skip ? file : "", said + skip);
	}
	free(copy);
}

static void on_check_closed(uv_handle_t *handle)
{
	struct submission *s = handle->data;
	struct err err = { 0 };

	if (--s->open_handles > 0)
		return;
	if (s->exit_status == 0) {
		finish(s);
		return;
	}
	own_words(s, &err);
	refuse(s, &err, true);
}

static void check_over(struct submission *s)
{
	if (uv_is_closing((uv_handle_t *)&s->deadline))
		return;
	uv_close((uv_handle_t *)&s->process, on_check_closed);
	uv_close((uv_handle_t *)&s->output, on_check_closed);
	uv_close((uv_handle_t *)&s->deadline, on_check_closed);
}

static void on_check_exit(uv_process_t *process, int64_t status, int signo)
{
	struct submission *s = process->data;

	s->exit_status = signo ? 128 + signo : status;
	if (!uv_is_active((uv_handle_t *)&s->output))
		check_over(s);
}

static void on_check_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct submission *s = handle->data;

	(void)suggested;
	*buf = uv_buf_init(s->chunk, sizeof(s->chunk));
}

static void on_check_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct submission *s = stream->data;

	if (got > 0) {
		buf_add(&s->said, buf->base, (size_t)got);	/* past its maximum: enough was said */
		return;
	}
	if (got < 0) {
		uv_read_stop(stream);
		if (!uv_is_active((uv_handle_t *)&s->process))
			check_over(s);
	}
}

static void on_check_deadline(uv_timer_t *timer)
{
	struct submission *s = timer->data;

	uv_process_kill(&s->process, SIGKILL);
}

/* `--set a.b=c` is `--a.b c` to lbworker. Returns an owned, NULL-terminated argv. */
static char **check_argv(const struct submission *s, const char *lbworker)
{
	const json_t *sets = json_object_get(s->request->args, "set");
	size_t count = json_array_size(sets), n = 0;
	char **argv = xcalloc(5 + 2 * count, sizeof(char *));

	argv[n++] = xstrdup(lbworker);
	argv[n++] = xstrdup("train");
	argv[n++] = path_join("%s/submitted.toml", s->dir);
	argv[n++] = xstrdup("--check");
	for (size_t i = 0; i < count; i++) {
		const char *set = json_string_value(json_array_get(sets, i));
		size_t key = strcspn(set, "=");

		argv[n++] = xasprintf("--%.*s", (int)key, set);
		argv[n++] = xstrdup(set[key] ? set + key + 1 : "");
	}
	return argv;
}

static void argv_free(char **argv)
{
	for (char **arg = argv; *arg; arg++)
		free(*arg);
	free(argv);
}

static int spawn_check(struct submission *s, char **argv)
{
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&s->output },
	};
	uv_process_options_t options = {
		.file = argv[0], .args = argv, .exit_cb = on_check_exit, .stdio = stdio,
		.stdio_count = 3, .cwd = s->spec.workdir,
	};

	uv_pipe_init(s->lbd->loop, &s->output, 0);
	uv_timer_init(s->lbd->loop, &s->deadline);
	s->process.data = s->output.data = s->deadline.data = s;
	s->open_handles = 3;
	return uv_spawn(s->lbd->loop, &s->process, &options);
}

static void check_training_config(struct submission *s)
{
	const char *lbrun = s->lbd->config.lbrun;
	char *lbworker = path_join("%.*s/lbworker", (int)(strrchr(lbrun, '/') - lbrun), lbrun);
	char **argv = check_argv(s, lbworker);
	int rc;

	buf_init(&s->said, CHECK_MAX_BYTES);
	rc = spawn_check(s, argv);
	if (rc < 0) {
		buf_addf(&s->said, "cannot run %s: %s", lbworker, uv_strerror(rc));
		s->exit_status = -1;
		check_over(s);
	} else {
		uv_read_start((uv_stream_t *)&s->output, on_check_alloc, on_check_read);
		uv_timer_start(&s->deadline, on_check_deadline, CHECK_DEADLINE_MS, 0);
	}
	argv_free(argv);
	free(lbworker);
}

void submit_run(struct request *request)
{
	struct submission *s = xcalloc(1, sizeof(*s));
	struct err err = { 0 };

	s->request = request;
	s->lbd = request->lbd;
	if (read_spec(s, &err) < 0 || choose_name(s, &err) < 0)
		refuse(s, &err, false);
	else if (make_folder(s, &err) < 0)
		refuse(s, &err, true);
	else if (s->spec.command.count == 0)
		check_training_config(s);
	else
		finish(s);
}
