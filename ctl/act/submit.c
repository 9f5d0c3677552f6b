/* SPDX-License-Identifier: MIT */
/* act/ - commands that change something.
 *
 * submit.c - lbctl submit: a run, or what it would be (--dry-run). */
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "ctl/act/submission.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/follow.h"

/* Without an answer nobody knows whether the run exists; saying so keeps people from trying a
 * second one. And train.py was hardly meant as a run spec. */
static void explain(const struct ctl *ctl, struct err *err)
{
	const char *file = ctl->operands.count == 1 ? ctl->operands.words[0] : NULL;
	struct err why = *err;
	char word[SHELL_WORD_BYTES];

	if (ctl->client.sent && (err->code == ERR_TIMEOUT || err->code == ERR_DAEMON)) {
		err_wrap(err, "the run may or may not have been submitted, lbctl ls will tell");
	} else if (err->code == ERR_USAGE && file && text_ends_with(file, ".py") &&
		   !strstr(why.text, "to submit a command")) {
		*err = (struct err){ 0 };
		err_set(err, why.code, "%s; to submit a command, write: lbctl submit -- python %s",
			why.text, shell_word(file, word));
	}
}

/* --- --dry-run ------------------------------------------------------------------------------- */

static void show_line(const struct ctl *ctl, const char *name, const json_t *value)
{
	char *bytes = js_bytes_take(value), *text;

	if (json_is_array(value)) {
		char *list = js_line(value);

		printf("  %s = %s\n", name, list);
		free(list);
	} else if (json_is_integer(value)) {
		printf("  %s = %lld\n", name, (long long)json_integer_value(value));
	} else if (bytes) {
		text = clean_copy(bytes, &ctl->out);
		printf("  %s = %s\n", name, text);
		free(text);
	}
	free(bytes);
}

static void show_object(const struct ctl *ctl, const char *title, json_t *object)
{
	const char *name;
	json_t *value;

	printf("\n%s\n", title);
	json_object_foreach(object, name, value) {
		if (strcmp(title, "environment") == 0 && json_is_null(value))
			printf("  %s   (not shown: it may be secret)\n", name);
		else
			show_line(ctl, name, value);
	}
}

static void show_script(const struct ctl *ctl, const char *script)
{
	printf("\nscript\n");
	print_lines("  ", script, &ctl->out);
}

static void show_words(const struct ctl *ctl, const char *title, const json_t *words)
{
	const json_t *arg;
	size_t i;

	if (json_array_size(words) == 0)
		return;
	printf("\n%s\n", title);
	json_array_foreach(words, i, arg) {
		char *bytes = js_bytes_take(arg), *text = clean_copy(bytes, &ctl->out);

		printf("  %s\n", text);
		free(text);
		free(bytes);
	}
}

static void show_job(struct ctl *ctl, json_t *job)
{
	static const char *const plain[] = { "run",     "scheduler", "launcher",
					     "workdir", "output",    "checkpoints" };
	char *script;

	if (ctl->options.json) {
		print_json(json_incref(job));
		return;
	}
	printf("this job would be submitted; nothing was\n");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		show_line(ctl, plain[i], json_object_get(job, plain[i]));
	show_object(ctl, "totals", json_object_get(job, "totals"));
	show_object(ctl, "resources", json_object_get(job, "resources"));
	show_words(ctl, "srun", json_object_get(job, "srun"));
	show_words(ctl, "profiler", json_object_get(job, "profiler"));
	show_words(ctl, "torchrun", json_object_get(job, "torchrun"));
	show_words(ctl, "trainer", json_object_get(job, "command"));
	script = js_bytes_take(json_object_get(job, "script"));
	show_script(ctl, script ? script : "");
	free(script);
	show_object(ctl, "environment", json_object_get(job, "environment"));
}

int submit_run(struct ctl *ctl, struct err *err)
{
	json_t *args, *data;
	char *name;
	int status = 0;

	if (ctl->operands.count == 0 && ctl->operands.rest_count == 0 && !ctl->options.wrap)
		return err_set(err, ERR_USAGE,
			       "submit: name a file or a command; usage: "
			       "lbctl submit %s",
			       ctl->command->usage);
	if (ctl->options.sweep.count > 0)
		return submit_sweep(ctl, err);
	args = submission(ctl, err);
	data = args ? submission_send(ctl, args, err) : NULL;
	if (!data) {
		explain(ctl, err);
		return -1;
	}
	submission_note(ctl, data);
	if (ctl->options.dry_run) {
		show_job(ctl, data);
		json_decref(data);
		return 0;
	}
	name = clean_copy(js_str(data, "run", NULL), &ctl->out);
	if (ctl->options.json)
		print_json(json_incref(data));
	else
		puts(name);
	fflush(stdout);
	if (ctl->options.follow)
		status = follow_show(ctl, name, true, err);
	else if (js_bool(data, "wait", false))
		status = wait_as_sbatch(ctl, name, err);
	else
		hint(ctl, "follow it: lbctl follow %s", name);
	free(name);
	json_decref(data);
	return status;
}
