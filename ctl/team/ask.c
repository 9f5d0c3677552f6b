/* SPDX-License-Identifier: MIT */
/* ask.c - asks about one run: lbd, or of a colleague's run the files. */
#include <stdlib.h>
#include <string.h>

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
