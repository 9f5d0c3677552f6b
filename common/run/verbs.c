/* SPDX-License-Identifier: MIT */
/* verbs.c - finds a verb by its name, and checks requests against the table. */
#include "common/run/verbs.h"

#include <string.h>

#include "common/base/json.h"

const struct verb_info verb_info[VERB_COUNT] = {
#define X(id, name, role, help) [VERB_##id] = { name, role, help },
	VERBS(X)
#undef X
};

/* VERB_COUNT when there is no such verb. */
static enum verb verb_from_name(const char *name)
{
	int v = 0;

	while (v < VERB_COUNT && strcmp(verb_info[v].name, name) != 0)
		v++;
	return (enum verb)v;
}

const char *role_name(enum role role)
{
	static const char *const names[ROLE_COUNT] = {
		[ROLE_NONE] = "outsider",
		[ROLE_MEMBER] = "team member",
		[ROLE_SUBMITTER] = "owner",
		[ROLE_OWNER] = "owner",
	};

	return names[role];
}

/* Of all arguments it alone keeps the others from being obeyed: nothing else is taken for false. */
static bool is_dry_run_clear(const json_t *args)
{
	const json_t *dry_run = json_object_get(args, "dry_run");

	return dry_run == NULL || json_is_boolean(dry_run) || json_is_null(dry_run);
}

static json_t *check_request(const json_t *frame, enum verb *verb, struct err *err)
{
	const char *name = js_str(frame, "verb", NULL);
	json_t *args = json_object_get(frame, "args");

	*verb = name ? verb_from_name(name) : VERB_COUNT;
	if (js_int(frame, "v", 0) != CONTROL_VERSION)
		err_set(err, ERR_USAGE, "this lbd speaks version %d of the protocol",
			CONTROL_VERSION);
	else if (name == NULL)
		err_set(err, ERR_USAGE, "a request needs a \"verb\"");
	else if (*verb == VERB_COUNT)
		err_set(err, ERR_USAGE, VERB_UNKNOWN "%.60s", name);
	else if (args && !json_is_object(args))
		err_set(err, ERR_USAGE, "\"args\" must be an object");
	else if (!is_dry_run_clear(args))
		err_set(err, ERR_USAGE, "\"dry_run\" must be true or false");
	else
		return args ? json_incref(args) : json_object();
	return NULL;
}

json_t *verb_request_parse(const char *line, size_t len, enum verb *verb, struct err *err)
{
	json_t *frame = js_parse(line, len, err),
	       *args = frame ? check_request(frame, verb, err) : NULL;

	json_decref(frame);
	return args;
}
