/* SPDX-License-Identifier: MIT */
/* diff.c - lbctl diff: two runs side by side: settings, packages, and the code that each is made
 * of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/code.h"
#include "ctl/code/made.h"
#include "ctl/team/ask.h"

enum { SIDES = 2, PATCH_MAX_BYTES = 1024 * 1024 };

struct side {
	json_t *run; /* what lbd, or its export, tells of it */
	struct made made;
};

static int read_side(struct ctl *ctl, const char *name, struct side *side, struct err *err)
{
	const char *dir;

	side->run = ask_about(ctl, VERB_STATUS, name, json_object(), err);
	dir = js_str(side->run, "dir", NULL);
	if (!side->run)
		return -1;
	if (!dir)
		return err_set(err, ERR_NOT_FOUND, "%s: its folder is not told", name);
	return made_read(&side->made, name, dir, err);
}

static void clear_side(struct side *side)
{
	json_decref(side->run);
	made_clear(&side->made);
}

/* --- showing ---------------------------------------------------------------------------------- */

static char *value_text(const json_t *value, const struct style *style)
{
	char *text, *clean;

	if (json_is_null(value))
		return xstrdup("-");
	text = json_is_string(value) ? js_bytes_take(value) : json_dumps(value, JSON_ENCODE_ANY);
	clean = clean_copy(text, style);
	free(text);
	return clean;
}

static void show_differences(const struct ctl *ctl, const char *title, json_t *differ)
{
	const char *key;
	json_t *pair;

	if (json_object_size(differ) == 0)
		return;
	printf("%s\n", title);
	json_object_foreach(differ, key, pair) {
		char *name = clean_copy(key, &ctl->out);
		char *a = value_text(json_array_get(pair, 0), &ctl->out);
		char *b = value_text(json_array_get(pair, 1), &ctl->out);

		printf("  %s: %s -> %s\n", name, a, b);
		free(name);
		free(a);
		free(b);
	}
}

static void show(const struct ctl *ctl, const struct side sides[SIDES], json_t *answer,
		 const char *patch, const struct err *why)
{
	bool is_same = patch && !patch[0];

	for (int i = 0; i < SIDES; i++) {
		char *text = code_text(sides[i].made.code), *clean = clean_copy(text, &ctl->out);

		printf("%s %s  code %s\n", i == 0 ? "a" : "b", sides[i].made.name, clean);
		free(text);
		free(clean);
	}
	show_differences(ctl, "settings", json_object_get(answer, "settings"));
	show_differences(ctl, "packages", json_object_get(answer, "packages"));
	if (!patch)
		printf("code: cannot be compared: %s\n", why->text);
	else if (is_same)
		printf("code: the same\n");
	else
		print_lines("", patch, &ctl->out);
}

int diff_run(struct ctl *ctl, struct err *err)
{
	struct side sides[SIDES] = { 0 };
	struct err why = { 0 };
	json_t *answer;
	char *patch;
	int rc = 0;

	for (int i = 0; rc == 0 && i < SIDES; i++)
		rc = read_side(ctl, ctl->operands.words[i], &sides[i], err);
	if (rc == 0) {
		patch = made_patch(&sides[0].made, &sides[1].made, PATCH_MAX_BYTES, &why);
		answer = made_differences(&sides[0].made, &sides[1].made);
		if (ctl->options.json) {
			json_object_set_new(answer, "patch", patch ? js_bytes(patch) : json_null());
			if (!patch)
				js_set_str(answer, "why", why.text);
			print_json(json_incref(answer));
		} else {
			show(ctl, sides, answer, patch, &why);
		}
		json_decref(answer);
		free(patch);
	}
	for (int i = 0; i < SIDES; i++)
		clear_side(&sides[i]);
	return rc;
}
