/* SPDX-License-Identifier: MIT */
/* notify.c - lbctl notify: does news reach anybody? */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

enum { POLL_MS = 200, PATIENCE_MS = 60 * 1000 };

/* The event that says what came of it; a new reference, NULL = none yet, or err. */
static json_t *outcome(struct ctl *ctl, int64_t after, struct err *err)
{
	json_t *events = client_ask(&ctl->client, VERB_EVENTS,
				    json_pack("{s:I}", "after", (json_int_t)after), err);
	json_t *event, *found = NULL;
	size_t i;

	json_array_foreach(events, i, event) {
		const char *kind = js_str(event, "kind", "");

		if (strcmp(kind, "notify_told") == 0 || strcmp(kind, "notify_failed") == 0)
			found = event;
	}
	json_incref(found);
	json_decref(events);
	return found;
}

static int tell(struct ctl *ctl, json_t *event, struct err *err)
{
	const char *text = js_str(event, "text", "");
	int rc = 0;

	if (strcmp(js_str(event, "kind", ""), "notify_failed") == 0) {
		rc = err_set(err, ERR_IO, "%s", text);
	} else if (ctl->options.json) {
		print_json(json_incref(event));
	} else {
		puts(text);
	}
	json_decref(event);
	return rc;
}

int notify_run(struct ctl *ctl, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + PATIENCE_MS, after;
	json_t *data;

	if (strcmp(ctl->operands.words[0], "test") != 0)
		return err_set(err, ERR_USAGE, "notify: usage: lbctl notify %s",
			       ctl->command->usage);
	data = client_ask(&ctl->client, VERB_NOTIFY_TEST, NULL, err);
	if (!data)
		return -1;
	after = js_int(data, "after", 0);
	json_decref(data);
	interrupt_catch();
	while (!interrupted() && clock_mono_ms() < end_ms) {
		json_t *event = outcome(ctl, after, err);

		if (event)
			return tell(ctl, event, err);
		if (err->code != ERR_NONE)
			return -1;
		nap(POLL_MS);
	}
	if (interrupted())
		return EXIT_INTERRUPTED;
	return err_set(err, ERR_TIMEOUT,
		       "nothing came of it within a minute; lbctl events tells more");
}
