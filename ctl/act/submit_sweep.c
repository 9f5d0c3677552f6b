/* SPDX-License-Identifier: MIT */
/* submit_sweep.c - lbctl submit --sweep: a group of runs, judged all before the first is
 * submitted. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "ctl/act/submission.h"
#include "ctl/base/command.h"
#include "ctl/base/sweep.h"
#include "ctl/act/sweep_fill.h"
#include "ctl/base/print.h"

/* "run-{lr}" names each run by its values; its group is "run". */
static bool is_template(const struct ctl *ctl)
{
	return ctl->options.name && strchr(ctl->options.name, '{');
}

/* What is left of a template without its placeholders. */
static void base_of_template(const char *template, char out[NAME_MAX_BYTES + 1])
{
	size_t n = 0;

	for (; *template && n < NAME_MAX_BYTES; template ++) {
		if (*template == '{') {
			template += strcspn(template, "}");
			if (!*template)
				break;
		} else if (n > 0 || isalnum((unsigned char)*template)) {
			out[n++] = *template;
		}
	}
	while (n > 0 && !isalnum((unsigned char)out[n - 1]))
		n--;
	out[n] = '\0';
}

/* The group: "base" of "configs/base.toml", unless --name says another; of a mere command one is
 * drawn, as for every run without a name. */
static int sweep_base(const struct ctl *ctl, char out[NAME_MAX_BYTES + 1], struct err *err)
{
	const char *file = ctl->operands.count ? ctl->operands.words[0] : NULL;

	if (is_template(ctl)) {
		base_of_template(ctl->options.name, out);
	} else if (ctl->options.name) {
		snprintf(out, NAME_MAX_BYTES + 1, "%s", ctl->options.name);
	} else if (file) {
		file = path_base(file);
		snprintf(out, NAME_MAX_BYTES + 1, "%.*s", (int)strcspn(file, "."), file);
	} else {
		name_draw(random_u64(), out);
	}
	if (!out[0])
		snprintf(out, NAME_MAX_BYTES + 1, "sweep");
	return name_check(out, err);
}

static bool sets_group(const json_t *sets)
{
	const json_t *set;
	size_t i;

	json_array_foreach(sets, i, set) {
		if (strncmp(json_string_value(set), "run.group=", 10) == 0)
			return true;
	}
	return false;
}

static char *name_of(const struct ctl *ctl, const char *base, size_t number,
		     const json_t *combination)
{
	return is_template(ctl) ? sweep_fill_name(ctl->options.name, combination)
				: xasprintf("%s-%zu", base, number);
}

/* The submission of one combination; a new reference. */
static json_t *one_of_sweep(const json_t *args, const char *base, const char *name,
			    const json_t *combination, bool dry)
{
	json_t *one = sweep_fill(args, combination), *all = json_object_get(one, "set");
	char *group = xasprintf("run.group=%s", base);

	if (!sets_group(all))
		json_array_append_new(all, json_string(group));
	json_object_set_new(one, "name", json_string(name));
	if (dry)
		json_object_set_new(one, "dry_run", json_true());
	free(group);
	return one;
}

static int explain(const char *name, const json_t *combination, bool submitted_some,
		   struct err *err)
{
	char *which = js_line(combination);

	err_wrap(err,
		 submitted_some ? "%s %s: the runs before it were submitted"
				: "%s %s: nothing was submitted",
		 name, which);
	free(which);
	return -1;
}

/* Every combination is judged before the first is submitted. */
static int sweep_pass(struct ctl *ctl, const json_t *args, const char *base, const json_t *all,
		      bool dry, json_t *runs, struct err *err)
{
	json_t *combination;
	size_t i;
	int rc = 0;

	json_array_foreach(all, i, combination) {
		char *name = name_of(ctl, base, i + 1, combination);
		json_t *one = one_of_sweep(args, base, name, combination, dry);
		json_t *data = submission_send(ctl, one, err);

		if (dry && i == 0)
			submission_note(ctl, data);
		if (!data)
			rc = explain(name, combination, !dry && i > 0, err);
		else if (js_bool(data, "wait", false))
			rc = err_set(err, ERR_USAGE, "--sweep: excludes --wait (or SBATCH_WAIT)");
		else if (!dry || ctl->options.dry_run)
			json_array_append_new(runs, json_pack("{s:O, s:O}", "run",
							      json_object_get(data, "run"), "set",
							      combination));
		json_decref(data);
		free(name);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int check_names(const struct ctl *ctl, const char *base, const json_t *all, struct err *err)
{
	json_t *seen = json_object(), *combination;
	size_t i;
	int rc = 0;

	json_array_foreach(all, i, combination) {
		char *name = name_of(ctl, base, i + 1, combination);

		if (name_check(name, err) < 0)
			rc = err_wrap(err, "--name");
		else if (json_object_get(seen, name))
			rc = err_set(err, ERR_USAGE,
				     "--name: two runs would be called %s: name what "
				     "else is swept, too",
				     name);
		json_object_set_new(seen, name, json_true());
		free(name);
		if (rc < 0)
			break;
	}
	json_decref(seen);
	return rc;
}

static void show_sweep(struct ctl *ctl, const char *base, json_t *runs)
{
	const json_t *each, *set;
	size_t i, k;

	if (ctl->options.json) {
		print_json(json_incref(runs));
		return;
	}
	json_array_foreach(runs, i, each) {
		printf("%s", js_str(each, "run", "?"));
		if (ctl->options.dry_run) {
			json_array_foreach(json_object_get(each, "set"), k, set) {
				printf(" %s", json_string_value(set));
			}
		}
		putchar('\n');
	}
	if (!ctl->options.dry_run)
		hint(ctl, "compare them: lbctl compare %s; end them: lbctl kill %s@group", base,
		     base);
}

/* A template is no name yet: each run gets its own. */
static json_t *sweep_submission(struct ctl *ctl, struct err *err)
{
	const char *name = ctl->options.name;
	json_t *args;

	ctl->options.name = NULL;
	args = submission(ctl, err);
	ctl->options.name = name;
	json_object_del(args, "dry_run");
	return args;
}

int submit_sweep(struct ctl *ctl, struct err *err)
{
	json_t *all = sweep_combinations(&ctl->options.sweep, err), *args = NULL;
	json_t *runs = json_array();
	char base[NAME_MAX_BYTES + 1];
	int rc = -1;

	if (all && ctl->options.follow)
		err_set(err, ERR_USAGE, "--sweep: excludes --follow");
	else if (all && sweep_base(ctl, base, err) == 0 && check_names(ctl, base, all, err) == 0)
		args = sweep_submission(ctl, err);
	if (args && sweep_check(args, ctl->options.name, all, err) == 0)
		rc = sweep_pass(ctl, args, base, all, true, runs, err);
	if (rc == 0 && !ctl->options.dry_run)
		rc = sweep_pass(ctl, args, base, all, false, runs, err);
	if (rc == 0)
		show_sweep(ctl, base, runs);
	json_decref(args);
	json_decref(all);
	json_decref(runs);
	return rc;
}
