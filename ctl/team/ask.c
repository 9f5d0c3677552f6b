/* SPDX-License-Identifier: MIT */
/* ask.c - asks about one run: lbd, or of a colleague's run the files; and which runs are meant. */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/team/selector.h"
#include "ctl/base/command.h"
#include "ctl/team/ask.h"
#include "ctl/team/colleague.h"
#include "ctl/team/team.h"

/* A name that is none here may be a colleague's. */
static void suggest(struct ctl *ctl, const char *run, struct err *err)
{
	struct err quiet = { 0 }, why = *err;
	bool is_run = err->code == ERR_NOT_FOUND && strstr(err->text, "no such run");
	char *theirs = is_run ? team_find(ctl, run, &quiet) : NULL;

	if (err->code == ERR_NOT_FOUND && !is_run)
		return; /* the run is there: a checkpoint of it is not */
	if (theirs) {
		*err = (struct err){ 0 };
		err_set(err, why.code, "%s; did you mean %s?", why.text, theirs);
	} else {
		client_suggest(&ctl->client, run, err);
	}
	free(theirs);
}

static json_t *ask_run(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		       json_t *(*ask)(struct client *client, enum verb verb, json_t *args,
				      struct err *err),
		       struct err *err)
{
	json_t *data;

	if (!args)
		args = json_object();
	if (strchr(run, '/') && !team_is_mine(ctl, run)) {
		data = colleague_ask(ctl, verb, run, args, err);
		json_decref(args);
		return data;
	}
	if (strchr(run, '/'))
		run = strchr(run, '/') + 1;
	json_object_set_new(args, "run", json_string(run));
	data = ask(&ctl->client, verb, args, err);
	if (!data)
		suggest(ctl, run, err);
	return data;
}

json_t *ask_about(struct ctl *ctl, enum verb verb, const char *run, json_t *args, struct err *err)
{
	return ask_run(ctl, verb, run, args, client_ask, err);
}

json_t *ask_patiently(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		      struct err *err)
{
	return ask_run(ctl, verb, run, args, client_ask_patient, err);
}

/* Adds the names to `meant`, as keys: each once, in this order. */
static int add_matching(struct ctl *ctl, const struct selector *selector, const char *word,
			json_t *meant, struct err *err)
{
	json_t *runs = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err);
	bool is_any = false;

	if (!runs)
		return -1;
	for (size_t i = json_array_size(runs); i > 0; i--) { /* the newest is the first */
		const json_t *run = json_array_get(runs, i - 1);
		const char *name = js_str(run, "name", "");

		if (!selector_matches(selector, name, js_str(run, "group", NULL),
				      js_str(run, "owner", "")))
			continue;
		is_any = true;
		json_object_set_new(meant, name, json_true());
	}
	json_decref(runs);
	return is_any ? 0 : err_set(err, ERR_NOT_FOUND, "%s: no such runs", word);
}

json_t *runs_meant(struct ctl *ctl, struct err *err)
{
	json_t *meant = json_object(), *names = json_array(), *value;
	const char *name;
	int rc = 0;

	for (size_t i = 0; i < ctl->operands.count && rc == 0; i++) {
		const char *word = ctl->operands.words[i];
		struct selector selector;

		rc = selector_parse(word, &selector, err);
		if (rc == 0 && selector_is_one(&selector))
			json_object_set_new(meant, word, json_true());
		else if (rc == 0)
			rc = add_matching(ctl, &selector, word, meant, err);
	}
	json_object_foreach(meant, name, value) {
		json_array_append_new(names, json_string(name));
	}
	json_decref(meant);
	if (rc == 0)
		return names;
	json_decref(names);
	return NULL;
}
