/* SPDX-License-Identifier: MIT */
/* audit.c - lbctl audit: a run that computes what another one has saved once more, with the same
 * resources, and says whether it comes out the same. It is a run like any other: of the same spec,
 * with "lbworker audit" in the place of "lbworker train". */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/run_spec.h"
#include "ctl/act/extra.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/made.h"
#include "ctl/look/run_space.h"
#include "ctl/team/ask.h"

struct audit {
	const char *run;
	json_t *about;   /* the run as lbd tells of it */
	json_t *attempt; /* the newest one's attempt.json; NULL: there is none */
	bool is_config;  /* it is a training configuration, without a command of its own */
	json_t *words;   /* the command of the audit; owned */
	struct made made;
	struct extra extra;
};

/* What it runs: its command, or what lbd made of a training configuration. Borrowed. */
static const json_t *command_of(const struct audit *a)
{
	const json_t *command = json_object_get(a->made.settings, "run.command");

	return command ? command : json_object_get(a->attempt, "command");
}

/* "audit" goes where the word behind lbworker says "train". NULL: another trainer. */
static json_t *audit_words(const struct audit *a)
{
	const json_t *words = command_of(a);
	json_t *out = json_array(), *word;
	bool is_behind = false, is_found = false;
	size_t i;

	json_array_foreach(words, i, word) {
		const char *text = json_string_value(word);
		bool is_train = is_behind && !is_found && text && strcmp(text, "train") == 0;
		json_array_append_new(out, is_train ? json_string("audit") : json_incref(word));
		is_found = is_found || is_train;
		is_behind = text && strcmp(path_base(text), "lbworker") == 0;
	}
	if (is_found)
		return out;
	json_decref(out);
	return NULL;
}

static int set_command(struct ctl *ctl, struct audit *a, struct err *err)
{
	json_t *words = audit_words(a);
	char *folder;

	if (!words)
		return err_set(
			err, ERR_USAGE,
			"%s: does not run \"lbworker train\"; only that computes the same bits "
			"again",
			a->run);
	folder = run_checkpoint_folder(a->attempt, js_str(a->about, "dir", ""));
	json_array_append_new(words, json_string("--of"));
	json_array_append_new(words, json_string(folder));
	free(folder);
	if (ctl->options.interval > 0) {
		json_array_append_new(words, json_string("--interval"));
		json_array_append_new(words, json_sprintf("%" PRId64, ctl->options.interval));
	}
	a->words = words;
	return 0;
}

static bool is_typed(const struct ctl *ctl, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < ctl->options.set_count; i++)
		if (strncmp(ctl->options.set[i], key, len) == 0 && ctl->options.set[i][len] == '=')
			return true;
	return false;
}

/* A training configuration is for lbworker alone, and not the spec of a command: of it those
 * settings go along that are lbd's. Checkpoints are both's, and set_apart's. */
static void keep_settings(const struct ctl *ctl, struct audit *a)
{
	for (size_t i = 0; i < run_spec_key_count; i++) {
		const struct key *k = &run_spec_keys[i];
		char *key = xasprintf("%s.%s", k->section, k->name), *text;
		const json_t *value = json_object_get(a->made.settings, key);

		if (value && strcmp(k->section, "checkpoint") != 0 && !is_typed(ctl, key)) {
			text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
			extra_add(&a->extra, xasprintf("%s=%s", key, text));
			free(text);
		}
		free(key);
	}
}

/* All nodes that any attempt had, beside those that the spec leaves out anyway. */
static void exclude_nodes(struct audit *a)
{
	const char *given = json_string_value(json_object_get(a->made.settings, "slurm.exclude"));
	char *all = xstrdup(given ? given : "");
	const json_t *attempt, *node;
	size_t i, k;

	json_array_foreach(json_object_get(a->about, "attempts"), i, attempt) {
		json_array_foreach(json_object_get(attempt, "nodes"), k, node) {
			char *more = xasprintf("%s%s%s", all, all[0] ? "," : "",
					       json_string_value(node));
			free(all);
			all = more;
		}
	}
	extra_add(&a->extra, xasprintf("slurm.exclude=%s", all));
	free(all);
}

/* The new run's own folder holds the replays, and an answer is no failure to be tried again. */
static void set_apart(struct audit *a)
{
	extra_add(&a->extra, xstrdup("checkpoint.folder="));
	extra_add(&a->extra, xstrdup("checkpoint.keep_latest_k=0"));
	extra_add(&a->extra, xstrdup("restart.never_on_exit_codes=[1,2,3,4]"));
}

/* What a person would have typed: lbctl submit SPEC --name … --set … -- COMMAND; of a training
 * configuration, which is no SPEC of a command, without it. */
static int submit(struct ctl *ctl, struct audit *a, struct err *err)
{
	char *spec = path_join("%s/spec.toml", js_str(a->about, "dir", ""));
	char *name = xasprintf("%s-audit", a->run);
	struct operands given = ctl->operands;
	const char *words[] = { a->is_config ? NULL : spec, NULL };
	const char **rest = xcalloc(json_array_size(a->words) + 1, sizeof(*rest));
	json_t *word;
	size_t i;

	json_array_foreach(a->words, i, word)
		rest[i] = json_string_value(word);
	if (!ctl->options.name)
		ctl->options.name = name;
	ctl->operands = (struct operands){
		.words = words,
		.count = !a->is_config,
		.rest = rest,
		.rest_count = json_array_size(a->words),
		.dashes = true,
	};
	int status = extra_submit(ctl, &a->extra, err);
	ctl->operands = given;
	free(rest);
	free(name);
	free(spec);
	return status;
}

int audit_run(struct ctl *ctl, struct err *err)
{
	struct audit a = { .run = ctl->operands.words[0] };
	int status = -1;

	a.about = ask_about(ctl, VERB_STATUS, a.run, NULL, err);
	a.attempt = a.about ? run_space_attempt(js_str(a.about, "dir", "")) : NULL;
	if (a.about && made_read(&a.made, a.run, js_str(a.about, "dir", ""), err) == 0 &&
	    set_command(ctl, &a, err) == 0) {
		a.is_config = !json_object_get(a.made.settings, "run.command");
		if (a.is_config)
			keep_settings(ctl, &a);
		set_apart(&a);
		if (ctl->options.other_nodes)
			exclude_nodes(&a);
		status = submit(ctl, &a, err);
	}
	extra_clear(&a.extra);
	made_clear(&a.made);
	json_decref(a.words);
	json_decref(a.attempt);
	json_decref(a.about);
	return status;
}
