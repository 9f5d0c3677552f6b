/* SPDX-License-Identifier: MIT */
/* complete.c - the words that shells complete: lbctl help complete WHAT, one a line. What cannot be
 * asked has no words; a shell is no place for errors. */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/paths.h"
#include "ctl/base/command.h"
#include "ctl/base/program.h"
#include "ctl/team/team.h"

enum { KEYS_MS = 5000, ASK_MS = 1000 }; /* somebody waits at a prompt */

static json_t *ask_runs(struct ctl *ctl, bool all)
{
	struct err err = { 0 };

	return client_ask(&ctl->client, VERB_LS,
			  json_pack("{s:b, s:b}", "all", all ? 1 : 0, "cron", 1), &err);
}

/* Each value of a member once, with this behind it. */
static void print_members(const json_t *list, const char *member, const char *behind)
{
	json_t *seen = json_object();
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *value = js_str(item, member, "");

		if (value[0] && !json_object_get(seen, value)) {
			json_object_set_new(seen, value, json_null());
			printf("%s%s\n", value, behind);
		}
	}
	json_decref(seen);
}

static void of_runs(struct ctl *ctl)
{
	json_t *runs = ask_runs(ctl, false);

	print_members(runs, "name", "");
	json_decref(runs);
}

static void of_all(struct ctl *ctl)
{
	json_t *runs = ask_runs(ctl, true);

	print_members(runs, "name", "");
	json_decref(runs);
}

static void of_groups(struct ctl *ctl)
{
	json_t *runs = ask_runs(ctl, true);

	print_members(runs, "group", "");
	json_decref(runs);
}

static void of_selectors(struct ctl *ctl)
{
	json_t *runs = ask_runs(ctl, false);

	print_members(runs, "group", "@group");
	print_members(runs, "owner", "@user");
	puts("ALL");
	json_decref(runs);
}

static void of_keys(struct ctl *ctl)
{
	char *lbd = path_sibling("lbd", NULL), *text = NULL;
	const char *const argv[] = { lbd ? lbd : "lbd", "--print-keys", NULL };
	struct err err = { 0 };

	(void)ctl;
	if (program_output(argv, KEYS_MS, &text, &err) == 0)
		fputs(text, stdout);
	free(text);
	free(lbd);
}

static void of_cron(struct ctl *ctl)
{
	struct err err = { 0 };
	json_t *data = client_ask(&ctl->client, VERB_CRON, NULL, &err);

	print_members(json_object_get(data, "entries"), "name", "");
	json_decref(data);
}

static const struct {
	const char *what;
	void (*print)(struct ctl *ctl);
} words[] = {
	{ "runs", of_runs },          { "all", of_all },
	{ "groups", of_groups },      { "selectors", of_selectors },
	{ "team", team_print_names }, { "keys", of_keys },
	{ "cron", of_cron },
};

int complete_run(struct ctl *ctl, const char *what, struct err *err)
{
	ctl->client.deadline_ms = ASK_MS;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].what, what) == 0) {
			words[i].print(ctl);
			return 0;
		}
	}
	return err_set(err, ERR_USAGE,
		       "help complete: runs, all, groups, selectors, team, keys or cron");
}
