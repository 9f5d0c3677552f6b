/* SPDX-License-Identifier: MIT */
/* attempt.c - writes and reads the files in an attempt's folder.
 *
 * lbd and lbrun may be of different releases (an upgrade never touches running jobs) and on
 * different hosts: what they tell each other goes through these files, whole or not at all. */
#include "common/run/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/run/attempt_folders.h"

enum { FILE_MAX_BYTES = 4 * 1024 * 1024, FILE_MODE = 0640, CHECK_MS = 10 * 60 * 1000 };

/* --- what the three files share -------------------------------------------------------------- */

static json_t *new_file(const char *token)
{
	json_t *o = json_object();

	js_set_int(o, "version", ATTEMPT_FILE_VERSION);
	js_set_str(o, "token", token);
	return o;
}

/* Takes `o`. */
static int write_file(json_t *o, const char *folder, const char *name,
		      int (*write)(const char *, const void *, size_t, mode_t, struct err *),
		      struct err *err)
{
	char *path = path_join("%s/%s", folder, name);
	char *line = js_line(o);
	char *text = xasprintf("%s\n", line);
	int rc = write(path, text, strlen(text), FILE_MODE, err);

	free(text);
	free(line);
	free(path);
	json_decref(o);
	return rc;
}

static int check_file(const json_t *o, struct err *err)
{
	int64_t version = js_int(o, "version", 0);

	if (version < 1)
		return err_set(err, ERR_USAGE, "\"version\" is missing");
	if (version > ATTEMPT_FILE_VERSION)
		return err_set(err, ERR_USAGE, "version %lld is newer than this program",
			       (long long)version);
	return 0;
}

/* A string member that must fit; a missing one counts as "". */
static int get_text(const json_t *o, const char *key, char *out, size_t size, struct err *err)
{
	const char *text = js_str(o, key, "");

	if (strlen(text) >= size)
		return err_set(err, ERR_USAGE, "\"%s\" is longer than %zu bytes", key, size - 1);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int get_token(const json_t *o, char out[TOKEN_HEX + 1], struct err *err)
{
	if (get_text(o, "token", out, TOKEN_HEX + 1, err) < 0)
		return -1;
	if (strspn(out, "0123456789abcdef") != TOKEN_HEX)
		return err_set(err, ERR_USAGE, "\"token\" must be %d hex digits", TOKEN_HEX);
	return 0;
}

/* Loads, checks what is common, lets `fill` do the rest, and names the file in errors. */
static int read_file(const char *folder, const char *name,
		     int (*fill)(const json_t *o, void *out, struct err *err), void *out,
		     struct err *err)
{
	char *path = path_join("%s/%s", folder, name);
	json_t *o = js_load(path, FILE_MAX_BYTES, err);
	int rc = o ? 0 : -1;

	if (o && (check_file(o, err) < 0 || fill(o, out, err) < 0))
		rc = err_wrap(err, "%s", path);
	json_decref(o);
	free(path);
	return rc;
}

/* --- attempt.json ---------------------------------------------------------------------------- */

static void set_bytes(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, text ? js_bytes(text) : json_null());
}

static json_t *names_of_causes(const struct attempt_params *p)
{
	json_t *list = json_array();

	for (int cause = 0; cause < CAUSE_COUNT; cause++) {
		if (p->never_on_cause[cause])
			json_array_append_new(list, json_string(cause_name((enum cause)cause)));
	}
	return list;
}

/* An empty list is left out. */
static void set_words(json_t *o, const char *key, char **words)
{
	json_t *list = js_words(words);

	if (json_array_size(list) > 0)
		json_object_set(o, key, list);
	json_decref(list);
}

int attempt_params_write(const char *folder, const struct attempt_params *p, struct err *err)
{
	json_t *o = new_file(p->token);
	json_t *codes = json_array();

	for (int64_t i = 0; i < p->never_count; i++)
		json_array_append_new(codes, json_integer(p->never_on_exit_codes[i]));
	js_set_str(o, "run", p->run);
	js_set_int(o, "number", p->number);
	set_words(o, "command", p->command);
	set_bytes(o, "workdir", p->workdir);
	set_bytes(o, "run_dir", p->run_dir);
	set_bytes(o, "checkpoint_dir", p->checkpoint_dir);
	set_bytes(o, "checkpoint_layout", p->layout);
	set_bytes(o, "checkpoint_pattern", p->pattern);
	js_set_int(o, "checkpoint_check_ms", p->check_ms);
	set_bytes(o, "checkpoint_complete_when", p->complete_when);
	set_bytes(o, "checkpoint_stage", p->stage);
	js_set_int(o, "stage_rate", p->stage_rate);
	set_bytes(o, "cache", p->cache);
	js_set_int(o, "cache_bytes", p->cache_bytes);
	set_words(o, "cache_variables", p->cache_variables);
	js_set_int(o, "save_every_ms", p->save_every_ms);
	js_set_int(o, "node_mtbf_ms", p->node_mtbf_ms);
	set_bytes(o, "switches", p->switches);
	set_bytes(o, "team", p->team);
	js_set_str(o, "group", p->group);
	js_set_str(o, "owner", p->owner);
	set_bytes(o, "lbd_socket", p->lbd_socket);
	js_set_str(o, "launcher", p->launcher);
	set_words(o, "srun", p->srun);
	set_words(o, "torchrun", p->torchrun);
	set_words(o, "profiler", p->profiler);
	js_set_int(o, "preflight_ms", p->preflight_ms);
	js_set_int(o, "preflight_tries", p->preflight_tries);
	set_words(o, "preflight", p->preflight);
	js_set_bool(o, "is_script", p->is_script);
	set_bytes(o, "script", p->script);
	js_set_int(o, "rollback", p->rollback);
	js_set_int(o, "in_place", p->in_place);
	js_set_int(o, "spare_nodes", p->spare_nodes);
	js_set_int(o, "without_progress", p->without_progress);
	js_set_int(o, "max_without_progress", p->max_without_progress);
	js_set_int(o, "stop_grace_ms", p->stop_grace_ms);
	set_bytes(o, "resume", p->resume ? p->resume : "latest");
	json_object_set_new(o, "never_on_causes", names_of_causes(p));
	js_set_int(o, "kill_grace_ms", p->kill_grace_ms);
	js_set_int(o, "keep_latest_k", p->retention.keep_latest_k);
	js_set_int(o, "keep_every", p->retention.keep_every);
	js_set_int(o, "max_bytes", p->retention.max_bytes);
	js_set_int(o, "note_bytes", p->note_bytes);
	js_set_int(o, "warn_ms", p->warn_ms);
	js_set_int(o, "kill_wait_ms", p->kill_wait_ms);
	json_object_set_new(o, "never_on_exit_codes", codes);
	json_object_set_new(o, "watch", attempt_watch_json(&p->watch));
	return write_file(o, folder, "attempt.json", file_write_visible, err);
}

static char *take_bytes(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	return value && !json_is_null(value) ? js_bytes_take(value) : NULL;
}

/* NULL where there is no such list. */
static int get_words(const json_t *o, const char *key, char ***out, struct err *err)
{
	const json_t *list = json_object_get(o, key);
	const json_t *word;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) == 0)
		return err_set(err, ERR_USAGE, "\"%s\" must be a list of strings", key);
	*out = xcalloc(json_array_size(list) + 1, sizeof((*out)[0]));
	json_array_foreach(list, i, word) {
		(*out)[i] = js_bytes_take(word);
		if (!(*out)[i])
			return err_set(err, ERR_USAGE, "\"%s\": item %zu is no string", key, i);
	}
	return 0;
}

static int get_commands(const json_t *o, struct attempt_params *p, struct err *err)
{
	if (get_words(o, "command", &p->command, err) < 0 ||
	    get_words(o, "srun", &p->srun, err) < 0 ||
	    get_words(o, "torchrun", &p->torchrun, err) < 0 ||
	    get_words(o, "profiler", &p->profiler, err) < 0 ||
	    get_words(o, "preflight", &p->preflight, err) < 0 ||
	    get_words(o, "cache_variables", &p->cache_variables, err) < 0)
		return -1;
	return p->command ? 0 : err_set(err, ERR_USAGE, "\"command\" must be a list of strings");
}

static int get_codes(const json_t *o, struct attempt_params *p, struct err *err)
{
	const json_t *list = json_object_get(o, "never_on_exit_codes");
	const json_t *code;
	size_t i;

	p->never_on_exit_codes = xcalloc(json_array_size(list) + 1, sizeof(int64_t));
	json_array_foreach(list, i, code) {
		if (!json_is_integer(code))
			return err_set(err, ERR_USAGE, "\"never_on_exit_codes\" must be integers");
		p->never_on_exit_codes[p->never_count++] = json_integer_value(code);
	}
	return 0;
}

/* Absent in what an older lbd wrote; a name that only a newer one knows cannot happen here. */
static void get_causes(const json_t *o, struct attempt_params *p)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(o, "never_on_causes"), i, name) {
		enum cause cause = cause_from_name(json_string_value(name));

		if (cause != CAUSE_COUNT)
			p->never_on_cause[cause] = true;
	}
}

static int fill_params(const json_t *o, void *out, struct err *err)
{
	struct attempt_params *p = out;

	p->run = xstrdup(js_str(o, "run", ""));
	p->number = js_int(o, "number", 0);
	p->workdir = take_bytes(o, "workdir");
	p->run_dir = take_bytes(o, "run_dir");
	p->checkpoint_dir = take_bytes(o, "checkpoint_dir");
	p->layout = take_bytes(o, "checkpoint_layout");
	p->pattern = take_bytes(o, "checkpoint_pattern");
	p->check_ms = js_int(o, "checkpoint_check_ms", CHECK_MS);
	p->complete_when = take_bytes(o, "checkpoint_complete_when");
	p->stage = take_bytes(o, "checkpoint_stage");
	p->stage_rate = js_int(o, "stage_rate", 0);
	p->cache = take_bytes(o, "cache");
	p->cache_bytes = js_int(o, "cache_bytes", 0);
	p->save_every_ms = js_int(o, "save_every_ms", 0);
	p->node_mtbf_ms = js_int(o, "node_mtbf_ms", 0);
	p->lbd_socket = take_bytes(o, "lbd_socket");
	p->switches = take_bytes(o, "switches");
	p->team = take_bytes(o, "team");
	p->group = xstrdup(js_str(o, "group", ""));
	p->owner = xstrdup(js_str(o, "owner", ""));
	p->launcher = xstrdup(js_str(o, "launcher", "none"));
	p->is_script = js_bool(o, "is_script", false);
	p->script = take_bytes(o, "script");
	p->rollback = js_int(o, "rollback", 0);
	p->preflight_ms = js_int(o, "preflight_ms", 0);
	p->preflight_tries = js_int(o, "preflight_tries", 0);
	p->in_place = js_int(o, "in_place", 0);
	p->spare_nodes = js_int(o, "spare_nodes", 0);
	p->without_progress = js_int(o, "without_progress", 0);
	p->max_without_progress = js_int(o, "max_without_progress", -1);
	p->kill_grace_ms = js_int(o, "kill_grace_ms", 30000);
	p->stop_grace_ms = js_int(o, "stop_grace_ms", p->kill_grace_ms);
	p->resume = take_bytes(o, "resume");
	if (!p->resume)
		p->resume = xstrdup("latest");
	get_causes(o, p);
	p->retention.keep_latest_k = js_int(o, "keep_latest_k", 0);
	p->retention.keep_every = js_int(o, "keep_every", 0);
	p->retention.max_bytes = js_int(o, "max_bytes", 0);
	p->note_bytes = js_int(o, "note_bytes", 0);
	p->warn_ms = js_int(o, "warn_ms", 0);
	p->kill_wait_ms = js_int(o, "kill_wait_ms", 0);
	if (get_token(o, p->token, err) < 0 || name_check(p->run, err) < 0 ||
	    get_commands(o, p, err) < 0 || get_codes(o, p, err) < 0 ||
	    attempt_watch_read(json_object_get(o, "watch"), &p->watch, err) < 0)
		return -1;
	if (p->number < 1)
		return err_set(err, ERR_USAGE, "\"number\" must be an integer of at least 1");
	if (!p->workdir || !p->run_dir || !p->checkpoint_dir)
		return err_set(err, ERR_USAGE,
			       "\"workdir\", \"run_dir\" and \"checkpoint_dir\" must be strings");
	if (strcmp(p->launcher, "none") != 0 && strcmp(p->launcher, "srun") != 0)
		return err_set(err, ERR_USAGE, "\"launcher\" must be \"none\" or \"srun\"");
	if (p->in_place < 0 || p->kill_grace_ms < 0 || p->stop_grace_ms < 0)
		return err_set(err, ERR_USAGE,
			       "\"in_place\", \"kill_grace_ms\" and "
			       "\"stop_grace_ms\" must not be negative");
	if (strcmp(p->resume, "latest") != 0 && strcmp(p->resume, "scratch") != 0 &&
	    p->resume[0] != '/')
		return err_set(err, ERR_USAGE,
			       "\"resume\" must be \"latest\", \"scratch\" or an absolute path");
	return 0;
}

int attempt_params_read(const char *folder, struct attempt_params *out, struct err *err)
{
	int rc;

	*out = (struct attempt_params){ 0 };
	rc = read_file(folder, "attempt.json", fill_params, out, err);
	if (rc < 0)
		attempt_params_clear(out);
	return rc;
}

void attempt_params_clear(struct attempt_params *p)
{
	strv_free(p->command);
	strv_free(p->srun);
	strv_free(p->torchrun);
	strv_free(p->profiler);
	strv_free(p->preflight);
	free(p->run);
	free(p->workdir);
	free(p->run_dir);
	free(p->checkpoint_dir);
	free(p->lbd_socket);
	free(p->switches);
	free(p->team);
	free(p->group);
	free(p->owner);
	free(p->layout);
	free(p->pattern);
	free(p->complete_when);
	free(p->stage);
	free(p->script);
	free(p->cache);
	strv_free(p->cache_variables);
	free(p->launcher);
	free(p->resume);
	free(p->never_on_exit_codes);
	attempt_watch_clear(&p->watch);
	*p = (struct attempt_params){ 0 };
}

/* --- claim ----------------------------------------------------------------------------------- */

int attempt_claim_take(const char *folder, const struct attempt_claim *claim, struct err *err)
{
	json_t *o = new_file(claim->token);

	js_set_str(o, "job_id", claim->job_id);
	js_set_int(o, "restart_count", claim->restart_count);
	js_set_str(o, "host", claim->host);
	js_set_str(o, "boot_id", claim->boot_id);
	js_set_int(o, "pid", claim->pid);
	js_set_int(o, "time_ms", claim->time_ms);
	return write_file(o, folder, "claim", file_write_once, err);
}

static int fill_claim(const json_t *o, void *out, struct err *err)
{
	struct attempt_claim *c = out;

	c->restart_count = js_int(o, "restart_count", 0);
	c->pid = js_int(o, "pid", 0);
	c->time_ms = js_int(o, "time_ms", 0);
	if (get_token(o, c->token, err) < 0 ||
	    get_text(o, "job_id", c->job_id, sizeof(c->job_id), err) < 0 ||
	    get_text(o, "host", c->host, sizeof(c->host), err) < 0 ||
	    get_text(o, "boot_id", c->boot_id, sizeof(c->boot_id), err) < 0)
		return -1;
	return 0;
}

int attempt_claim_read(const char *folder, struct attempt_claim *out, struct err *err)
{
	*out = (struct attempt_claim){ 0 };
	return read_file(folder, "claim", fill_claim, out, err);
}

/* --- exit.json ------------------------------------------------------------------------------- */

int attempt_exit_write(const char *folder, const struct attempt_exit *e, struct err *err)
{
	json_t *o = new_file(e->token);

	js_set_str(o, "cause", cause_name(e->cause));
	js_set_int(o, "exit_code", e->exit_code < 0 ? JS_NONE : e->exit_code);
	js_set_bool(o, "final", e->is_final);
	js_set_bool(o, "node", e->is_node);
	js_set_bool(o, "left_ranks", e->left_ranks);
	js_set_bool(o, "unclear", e->is_unclear);
	js_set_int(o, "signal", e->signal == 0 ? JS_NONE : e->signal);
	js_set_str(o, "switched", e->switched == ORDER_RUN ? NULL : run_order_name(e->switched));
	js_set_int(o, "launches", e->launches);
	js_set_int(o, "last_seq", e->last_seq);
	js_set_int(o, "time_ms", e->time_ms);
	js_set_str(o, "text", e->text);
	return write_file(o, folder, "exit.json", file_write_atomic, err);
}

static int fill_exit(const json_t *o, void *out, struct err *err)
{
	struct attempt_exit *e = out;

	e->exit_code = (int)js_int(o, "exit_code", -1);
	e->is_final = js_bool(o, "final", false);
	e->is_node = js_bool(o, "node", false);
	e->left_ranks = js_bool(o, "left_ranks", false);
	e->is_unclear = js_bool(o, "unclear", false);
	e->signal = (int)js_int(o, "signal", 0);
	e->switched = run_order_from_name(js_str(o, "switched", run_order_name(ORDER_RUN)));
	e->launches = js_int(o, "launches", 0);
	e->last_seq = js_int(o, "last_seq", 0);
	e->time_ms = js_int(o, "time_ms", 0);
	e->cause = cause_from_name(js_str(o, "cause", ""));
	if (e->cause == CAUSE_COUNT || e->cause == CAUSE_NONE)
		return err_set(err, ERR_USAGE, "\"cause\" is unknown");
	if (get_token(o, e->token, err) < 0 ||
	    get_text(o, "text", e->text, sizeof(e->text), err) < 0)
		return -1;
	return 0;
}

int attempt_exit_read(const char *folder, struct attempt_exit *out, struct err *err)
{
	*out = (struct attempt_exit){ .exit_code = -1 };
	return read_file(folder, "exit.json", fill_exit, out, err);
}

/* --- unheard/NODE ---------------------------------------------------------------------------- */

int attempt_unheard_write(const char *folder, const char *node, const struct attempt_unheard *u,
			  struct err *err)
{
	char *notes = path_join("%s/unheard", folder);
	int rc = folder_make(notes, 0750, err);

	if (rc == 0) {
		json_t *o = new_file(u->token);

		js_set_int(o, "launch", u->launch);
		js_set_int(o, "nodes", u->nodes);
		js_set_int(o, "silent_ms", u->silent_ms);
		rc = write_file(o, notes, node, file_write_visible, err);
	}
	free(notes);
	return rc;
}

static int fill_unheard(const json_t *o, void *out, struct err *err)
{
	struct attempt_unheard *u = out;

	u->launch = js_int(o, "launch", 0);
	u->nodes = js_int(o, "nodes", 0);
	u->silent_ms = js_int(o, "silent_ms", 0);
	return get_token(o, u->token, err);
}

int attempt_unheard_read(const char *folder, const char *node, struct attempt_unheard *out,
			 struct err *err)
{
	char *name = path_join("unheard/%s", node);
	int rc;

	*out = (struct attempt_unheard){ 0 };
	rc = read_file(folder, name, fill_unheard, out, err);
	free(name);
	return rc;
}

/* --- fencing --------------------------------------------------------------------------------- */

int64_t attempt_newest_claim(const char *run_dir)
{
	size_t count;
	int64_t newest = 0, *numbers = attempt_folders(run_dir, &count);

	for (size_t i = count; i-- > 0 && newest == 0;) {
		char *claim = path_join("%s/attempts/%lld/claim", run_dir, (long long)numbers[i]);

		if (file_exists(claim))
			newest = numbers[i];
		free(claim);
	}
	free(numbers);
	return newest;
}
