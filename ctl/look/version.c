/* SPDX-License-Identifier: MIT */
/* version.c - lbctl version: of lbctl, of the lbd that answers, and (--verbose) of all that is
 * installed here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "ctl/base/slurm_releases.h"

enum { ANSWER_MS = 20 * 1000 };

/* --- what is installed ------------------------------------------------------------------------ */

/* What the loader says, for people; a helper whose library is not here cannot say what it is for,
 * its name can. Owned. */
static char *trouble_of(const char *path, const char *said)
{
	static const char loader[] = "shared libraries: ";
	const char *why = strstr(said, loader), *number = strrchr(path, '-');
	const char *release = number ? slurm_release_of_library((int)strtol(number + 1, NULL, 10))
				     : NULL;

	return xasprintf("%s%s%sdoes not run: %s", release ? "for Slurm " : "",
			 release ? release : "", release ? "; " : "",
			 why ? why + strlen(loader) : said);
}

/* {"path","version","trouble"}: one of the two is null. */
static json_t *examine(const char *path)
{
	const char *const argv[] = { path, "--version", NULL };
	const char *version;
	char *text = NULL, *trouble = NULL;
	struct err err = { 0 };
	int status = program_output(argv, ANSWER_MS, &text, &err);
	json_t *o = json_object();

	if (status != 0)
		trouble = trouble_of(path, text[0] ? text : err.text);
	version = strchr(text, ' ');
	js_set_str(o, "path", path);
	js_set_str(o, "version", status == 0 && version ? version + 1 : NULL);
	js_set_str(o, "trouble", trouble);
	free(trouble);
	free(text);
	return o;
}

/* All programs of this installation, helpers last; owned. */
static json_t *installation(void)
{
	static const char *const programs[] = { "lbd", "lbrun", "lbworker", "lbd-slurm-commands" };
	struct strv helpers = path_slurm_helpers();
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char *path = path_sibling(programs[i], NULL);

		if (path)
			json_array_append_new(list, examine(path));
		free(path);
	}
	for (size_t i = 0; i < helpers.count; i++)
		json_array_append_new(list, examine(helpers.items[i]));
	strv_free(helpers.items);
	return list;
}

static void print_installation(const struct ctl *ctl, const json_t *list, const char *in_use)
{
	const json_t *item;
	size_t i;

	puts("installed here");
	json_array_foreach(list, i, item) {
		const char *path = js_str(item, "path", "");
		char *name = clean_copy(path_base(path), &ctl->out);
		char *text = clean_copy(js_str(item, "version", js_str(item, "trouble", "")),
					&ctl->out);

		printf("  %-19s %s%s\n", name, text,
		       in_use && strcmp(in_use, path) == 0 ? "  (speaks to Slurm)" : "");
		free(text);
		free(name);
	}
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_lbd(const struct ctl *ctl, const json_t *lbd)
{
	char *version = clean_copy(js_str(lbd, "version", NULL), &ctl->out);
	char *home = clean_copy(js_str(lbd, "home", NULL), &ctl->out);

	printf("lbd   %s (process %lld, %s)\n", version, (long long)js_int(lbd, "pid", 0), home);
	free(version);
	free(home);
}

/* Which lbctl this is can be told without lbd; people ask when something does not work. */
int version_run(struct ctl *ctl, struct err *err)
{
	struct err why = { 0 };
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, &why), *all = NULL;

	(void)err;
	if (ctl->options.verbose)
		all = installation();
	if (ctl->options.json) {
		json_t *o = json_pack("{s:s, s:o}", "lbctl", LB_VERSION, "lbd",
				      lbd ? json_incref(lbd) : json_null());

		if (all)
			json_object_set(o, "installed", all);
		print_json(o);
	} else {
		printf("lbctl %s\n", LB_VERSION);
		if (lbd)
			print_lbd(ctl, lbd);
		if (all)
			print_installation(ctl, all, js_str(lbd, "slurm_helper", NULL));
	}
	json_decref(all);
	json_decref(lbd);
	if (why.code != ERR_NONE)
		complain(ctl, why.text);
	return 0;
}
