/* SPDX-License-Identifier: MIT */
/* poll.c - all jobs of ours in one look, and what to know of the cluster. */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "slurm/commands/look.h"
#include "slurm/commands/operations.h"
#include "slurm/commands/words.h"

void op_poll(const json_t *request, struct answer *a)
{
	struct look look;
	json_t *rows;

	(void)request;
	if (look_all(a, &look)) {
		look_clear(&look);
		return;
	}
	rows = json_array();
	for (size_t i = 0; i < look.count; i++) {
		const struct seen *job = &look.jobs[i];
		char text[WIRE_ROW_BYTES];

		if (!job->row.token[0] || (job->is_task && look_foremost(&look, job) != job))
			continue;
		wire_row_print(&job->row, text);
		json_array_append_new(rows, json_string(text));
	}
	js_set_int(a->body, "last", look.time);
	json_object_set_new(a->body, "jobs", rows);
	look_clear(&look);
}

/* The value of "Name   = value" in a line of its own, NULL: there is none. Cuts the text. */
static const char *setting(char *text, const char *name)
{
	size_t len = strlen(name);

	for (char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		char *value = at + len + strspn(at + len, " ");

		if (strncmp(at, name, len) == 0 && strncmp(value, "= ", 2) == 0)
			return value + 2;
	}
	return NULL;
}

static void put_text(json_t *body, const char *key, char *text, const char *name)
{
	const char *value = setting(text, name);
	size_t len = value ? strcspn(value, "\n") : 0;

	while (len > 0 && value[len - 1] == ' ')
		len--;
	if (value)
		json_object_set_new(body, key, json_stringn(value, len));
}

static void put_number(json_t *body, const char *key, char *text, const char *name)
{
	const char *value = setting(text, name);

	if (value)
		js_set_int(body, key, strtoll(value, NULL, 10));
}

/* "root(0)" */
static void put_uid(json_t *body, const char *key, char *text, const char *name)
{
	const char *value = setting(text, name), *open = value ? strchr(value, '(') : NULL;

	if (open)
		js_set_int(body, key, strtoll(open + 1, NULL, 10));
}

void op_info(const json_t *request, struct answer *a)
{
	static const char *const words[] = { "scontrol", "show", "config", NULL };
	struct said said;

	(void)request;
	command_ask(words, &said);
	if (said.status) {
		command_failed(a, &said, false, "scontrol show config");
	} else if (!setting(said.out, "ClusterName") || !setting(said.out, "SLURM_VERSION")) {
		answer_set(a, SCHEDULER_DOWN, "scontrol show config tells no configuration");
	} else {
		put_text(a->body, "version", said.out, "SLURM_VERSION");
		put_text(a->body, "cluster", said.out, "ClusterName");
		put_number(a->body, "min_job_age", said.out, "MinJobAge");
		put_number(a->body, "message_timeout", said.out, "MessageTimeout");
		put_number(a->body, "kill_wait", said.out, "KillWait");
		put_uid(a->body, "slurmd_uid", said.out, "SlurmdUser");
	}
	said_clear(&said);
}
