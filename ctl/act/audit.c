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
#include "ctl/act/extra.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/made.h"
#include "ctl/look/run_space.h"
#include "ctl/team/ask.h"

struct audit {
	const char *run;
	json_t *about; /* the run as lbd tells of it */
	struct made made;
	struct extra extra;
};

/* The word behind lbworker that says what it does: where "audit" goes. NULL: another trainer. */
static json_t *audit_words(const struct audit *a)
{
	json_t *words = json_object_get(a->made.settings, "run.command"), *out = json_array(),
	       *word;
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
	const char *run_dir = js_str(a->about, "dir", "");
	json_t *attempt = run_space_attempt(run_dir), *words = audit_words(a);
	char *folder = run_checkpoint_folder(attempt, run_dir), *text;

	json_decref(attempt);
	if (words) {
		json_array_append_new(words, json_string("--of"));
		json_array_append_new(words, json_string(folder));
	}
	if (words && ctl->options.interval > 0) {
		json_array_append_new(words, json_string("--interval"));
		json_array_append_new(words, json_sprintf("%" PRId64, ctl->options.interval));
	}
	free(folder);
	if (!words)
		return err_set(
			err, ERR_USAGE,
			"%s: does not run \"lbworker train\"; only that computes the same bits "
			"again",
			a->run);
	text = json_dumps(words, JSON_COMPACT);
	extra_add(&a->extra, xasprintf("run.command=%s", text));
	free(text);
	json_decref(words);
	return 0;
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

/* What a person would have typed: lbctl submit SPEC --name … --set … */
static int submit(struct ctl *ctl, struct audit *a, struct err *err)
{
	char *spec = path_join("%s/spec.toml", js_str(a->about, "dir", ""));
	char *name = xasprintf("%s-audit", a->run);
	const char *run = ctl->operands.words[0];

	if (!ctl->options.name)
		ctl->options.name = name;
	ctl->operands.words[0] = spec;
	int status = extra_submit(ctl, &a->extra, err);
	ctl->operands.words[0] = run;
	free(name);
	free(spec);
	return status;
}

int audit_run(struct ctl *ctl, struct err *err)
{
	struct audit a = { .run = ctl->operands.words[0] };
	int status = -1;

	a.about = ask_about(ctl, VERB_STATUS, a.run, NULL, err);
	if (a.about && made_read(&a.made, a.run, js_str(a.about, "dir", ""), err) == 0 &&
	    set_command(ctl, &a, err) == 0) {
		set_apart(&a);
		if (ctl->options.other_nodes)
			exclude_nodes(&a);
		status = submit(ctl, &a, err);
	}
	extra_clear(&a.extra);
	made_clear(&a.made);
	json_decref(a.about);
	return status;
}
