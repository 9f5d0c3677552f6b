/* SPDX-License-Identifier: MIT */
/* attempt_params.c - the members of attempt.json, as a table: a new parameter is one row. */
#include "common/run/attempt_params.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "common/run/attempt_file.h"

enum { CHECK_MS = 10 * 60 * 1000 };

enum kind { BYTES, WORDS, NUMBER, FLAG };

/* What is absent, as in the file of an older lbd, has its default. */
struct member {
	const char *key;
	enum kind kind;
	size_t at;
	int64_t number;   /* default of NUMBER and FLAG */
	const char *text; /* of BYTES; NULL = none */
};

#define AT(field) offsetof(struct attempt_params, field)

static const struct member members[] = {
	{ "run", BYTES, AT(run), 0, "" },
	{ "number", NUMBER, AT(number), 0, NULL },
	{ "command", WORDS, AT(command), 0, NULL },
	{ "workdir", BYTES, AT(workdir), 0, NULL },
	{ "run_dir", BYTES, AT(run_dir), 0, NULL },
	{ "checkpoint_dir", BYTES, AT(checkpoint_dir), 0, NULL },
	{ "checkpoint_layout", BYTES, AT(layout), 0, NULL },
	{ "checkpoint_pattern", BYTES, AT(pattern), 0, NULL },
	{ "checkpoint_check_ms", NUMBER, AT(check_ms), CHECK_MS, NULL },
	{ "checkpoint_complete_when", BYTES, AT(complete_when), 0, NULL },
	{ "checkpoint_stage", BYTES, AT(stage), 0, NULL },
	{ "stage_rate", NUMBER, AT(stage_rate), 0, NULL },
	{ "cache", BYTES, AT(cache), 0, NULL },
	{ "cache_bytes", NUMBER, AT(cache_bytes), 0, NULL },
	{ "cache_variables", WORDS, AT(cache_variables), 0, NULL },
	{ "save_every_ms", NUMBER, AT(save_every_ms), 0, NULL },
	{ "node_mtbf_ms", NUMBER, AT(node_mtbf_ms), 0, NULL },
	{ "switches", BYTES, AT(switches), 0, NULL },
	{ "team", BYTES, AT(team), 0, NULL },
	{ "group", BYTES, AT(group), 0, "" },
	{ "owner", BYTES, AT(owner), 0, "" },
	{ "lbd_socket", BYTES, AT(lbd_socket), 0, NULL },
	{ "launcher", BYTES, AT(launcher), 0, "none" },
	{ "srun", WORDS, AT(srun), 0, NULL },
	{ "torchrun", WORDS, AT(torchrun), 0, NULL },
	{ "profiler", WORDS, AT(profiler), 0, NULL },
	{ "preflight_ms", NUMBER, AT(preflight_ms), 0, NULL },
	{ "preflight_tries", NUMBER, AT(preflight_tries), 0, NULL },
	{ "preflight", WORDS, AT(preflight), 0, NULL },
	{ "is_script", FLAG, AT(is_script), 0, NULL },
	{ "script", BYTES, AT(script), 0, NULL },
	{ "rollback", NUMBER, AT(rollback), 0, NULL },
	{ "in_place", NUMBER, AT(in_place), 0, NULL },
	{ "spare_nodes", NUMBER, AT(spare_nodes), 0, NULL },
	{ "without_progress", NUMBER, AT(without_progress), 0, NULL },
	{ "max_without_progress", NUMBER, AT(max_without_progress), -1, NULL },
	{ "kill_grace_ms", NUMBER, AT(kill_grace_ms), 30000, NULL },
	{ "stop_grace_ms", NUMBER, AT(stop_grace_ms), 30000, NULL },
	{ "resume", BYTES, AT(resume), 0, "latest" },
	{ "keep_latest_k", NUMBER, AT(retention.keep_latest_k), 0, NULL },
	{ "keep_every", NUMBER, AT(retention.keep_every), 0, NULL },
	{ "max_bytes", NUMBER, AT(retention.max_bytes), 0, NULL },
	{ "note_bytes", NUMBER, AT(note_bytes), 0, NULL },
	{ "warn_ms", NUMBER, AT(warn_ms), 0, NULL },
	{ "kill_wait_ms", NUMBER, AT(kill_wait_ms), 0, NULL },
};
enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

/* --- writing ---------------------------------------------------------------------------------- */

/* An empty list is left out. */
static void set_words(json_t *o, const char *key, char **words)
{
	json_t *list = js_words(words);

	if (json_array_size(list) > 0)
		json_object_set(o, key, list);
	json_decref(list);
}

static void set_member(json_t *o, const struct member *m, const void *at)
{
	switch (m->kind) {
	case BYTES: {
		const char *text = *(char *const *)at ? *(char *const *)at : m->text;

		json_object_set_new(o, m->key, text ? js_bytes(text) : json_null());
		break;
	}
	case WORDS:
		set_words(o, m->key, *(char **const *)at);
		break;
	case NUMBER:
		js_set_int(o, m->key, *(const int64_t *)at);
		break;
	case FLAG:
		js_set_bool(o, m->key, *(const bool *)at);
		break;
	}
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

static json_t *list_of_codes(const struct attempt_params *p)
{
	json_t *list = json_array();

	for (int64_t i = 0; i < p->never_count; i++)
		json_array_append_new(list, json_integer(p->never_on_exit_codes[i]));
	return list;
}

int attempt_params_write(const char *folder, const struct attempt_params *p, struct err *err)
{
	json_t *o = attempt_file_new(p->token);

	for (size_t i = 0; i < MEMBERS; i++)
		set_member(o, &members[i], (const char *)p + members[i].at);
	json_object_set_new(o, "never_on_causes", names_of_causes(p));
	json_object_set_new(o, "never_on_exit_codes", list_of_codes(p));
	json_object_set_new(o, "watch", attempt_watch_json(&p->watch));
	return attempt_file_write(o, folder, "attempt.json", file_write_visible, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static char *take_bytes(const json_t *o, const struct member *m)
{
	const json_t *value = json_object_get(o, m->key);
	char *bytes = value && !json_is_null(value) ? js_bytes_take(value) : NULL;

	return bytes || !m->text ? bytes : xstrdup(m->text);
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

static int get_member(const json_t *o, const struct member *m, void *at, struct err *err)
{
	switch (m->kind) {
	case BYTES:
		*(char **)at = take_bytes(o, m);
		break;
	case WORDS:
		return get_words(o, m->key, at, err);
	case NUMBER:
		*(int64_t *)at = js_int(o, m->key, m->number);
		break;
	case FLAG:
		*(bool *)at = js_bool(o, m->key, m->number);
		break;
	}
	return 0;
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

/* What lbrun relies on. */
static int check(const struct attempt_params *p, struct err *err)
{
	if (!p->command)
		return err_set(err, ERR_USAGE, "\"command\" must be a list of strings");
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

static int fill_params(const json_t *o, void *out, struct err *err)
{
	struct attempt_params *p = out;

	for (size_t i = 0; i < MEMBERS; i++)
		if (get_member(o, &members[i], (char *)p + members[i].at, err) < 0)
			return -1;
	if (!json_object_get(o, "stop_grace_ms"))
		p->stop_grace_ms = p->kill_grace_ms;
	get_causes(o, p);
	if (attempt_file_token(o, p->token, err) < 0 || name_check(p->run, err) < 0 ||
	    get_codes(o, p, err) < 0 ||
	    attempt_watch_read(json_object_get(o, "watch"), &p->watch, err) < 0)
		return -1;
	return check(p, err);
}

int attempt_params_read(const char *folder, struct attempt_params *out, struct err *err)
{
	int rc;

	*out = (struct attempt_params){ 0 };
	rc = attempt_file_read(folder, "attempt.json", fill_params, out, err);
	if (rc < 0)
		attempt_params_clear(out);
	return rc;
}

void attempt_params_clear(struct attempt_params *p)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		void *at = (char *)p + members[i].at;

		if (members[i].kind == BYTES)
			free(*(char **)at);
		else if (members[i].kind == WORDS)
			strv_free(*(char ***)at);
	}
	free(p->never_on_exit_codes);
	attempt_watch_clear(&p->watch);
	*p = (struct attempt_params){ 0 };
}
