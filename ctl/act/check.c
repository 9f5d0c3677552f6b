/* SPDX-License-Identifier: MIT */
/* check.c - lbctl check: a run of "lbworker check", one rank on each of some nodes. A run like any other, that
 * is not tried again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/team/ask.h"

enum { SETTINGS_MAX = 12 };

struct check {
	char *setting[SETTINGS_MAX]; /* as of --set; owned */
	size_t settings;
};

static void set(struct check *c, char *setting)
{
	c->setting[c->settings++] = setting;
}

/* "1", "3-7": how many that are; 0: neither. */
static int64_t count_range(const char *text, size_t length)
{
	char *end;
	long first = strtol(text, &end, 10), last = first;

	if (end == text)
		return 0;
	if (*end == '-')
		last = strtol(end + 1, &end, 10);
	return end == text + length && last >= first ? last - first + 1 : 0;
}

/* Of "[1-3,7]", whose first character is behind the bracket. */
static int64_t count_ranges(const char *text, const char *end)
{
	int64_t sum = 0;

	while (text < end) {
		size_t length = strcspn(text, ",]");
		int64_t count = count_range(text, length);
		if (count == 0)
			return 0;
		sum += count;
		text += length + 1;
	}
	return sum;
}

/* Names in "n[1-3],login,gpu[01-02]x", as Slurm writes lists of nodes; 0: it is none. Of two pairs of
 * brackets in a name both count. */
static int64_t count_nodes(const char *list)
{
	int64_t sum = 0, of_name = 1;
	bool is_empty = true;

	for (; *list; list++) {
		if (*list == '[') {
			const char *end = strchr(list, ']');
			int64_t count = end ? count_ranges(list + 1, end) : 0;
			if (count == 0)
				return 0;
			of_name *= count;
			list = end;
		} else if (*list == ',') {
			sum += is_empty ? 0 : of_name;
			of_name = 1;
			is_empty = true;
			continue;
		}
		is_empty = false;
	}
	return sum + (is_empty ? 0 : of_name);
}

/* Those of the run's newest attempt, and its partition. */
static char *nodes_of_run(struct ctl *ctl, const char *run, struct err *err)
{
	json_t *about = ask_about(ctl, VERB_STATUS, run, NULL, err);
	json_t *attempts = json_object_get(about, "attempts"), *nodes = NULL;
	const json_t *node;
	char *all = NULL;
	size_t i;

	for (i = json_array_size(attempts); i-- > 0 && json_array_size(nodes) == 0;)
		nodes = json_object_get(json_array_get(attempts, i), "nodes");
	json_array_foreach(nodes, i, node) {
		char *more = xasprintf("%s%s%s", all ? all : "", all ? "," : "",
				       json_string_value(node));
		free(all);
		all = more;
	}
	if (about && !all)
		err_set(err, ERR_NOT_FOUND, "%s: no attempt of it has had a node yet", run);
	json_decref(about);
	return all;
}

static int set_nodes(struct check *c, const char *list, struct err *err)
{
	int64_t count = count_nodes(list);

	if (count == 0)
		return err_set(err, ERR_USAGE,
			       "check: --nodes %s: names with commas between them, like n1,n[4-7]",
			       list);
	set(c, xasprintf("slurm.nodelist=%s", list));
	set(c, xasprintf("slurm.nodes=%" PRId64, count));
	if (count > 1)
		set(c, xstrdup("slurm.mpi=pmi2"));
	return 0;
}

static int choose_nodes(struct ctl *ctl, struct check *c, struct err *err)
{
	const struct options *o = &ctl->options;
	const char *run = ctl->operands.count > 0 ? ctl->operands.words[0] : NULL;

	if (run && (o->nodes || o->partition))
		return err_set(err, ERR_USAGE,
			       "check: a run, or --nodes and --partition, not both");
	if (o->partition)
		set(c, xasprintf("slurm.partition=%s", o->partition));
	if (o->partition && !o->nodes && o->count == 0)
		return err_set(
			err, ERR_USAGE,
			"check: --partition %s wants --count N, or --nodes LIST: lbd does not "
			"know how many nodes it has",
			o->partition);
	if (o->nodes)
		return set_nodes(c, o->nodes, err);
	if (o->count > 0)
		set(c, xasprintf("slurm.nodes=%" PRId64, o->count));
	if (o->count > 1)
		set(c, xstrdup("slurm.mpi=pmi2"));
	if (!run)
		return 0;
	char *list = nodes_of_run(ctl, run, err);
	int rc = list ? set_nodes(c, list, err) : -1;
	free(list);
	return rc;
}

/* What a person would have typed: lbctl submit --set … -- lbworker check … */
static int submit(struct ctl *ctl, struct check *c, struct err *err)
{
	struct operands given = ctl->operands, words = { 0 };
	size_t count = ctl->options.set_count;

	ctl->options.set = xrealloc(ctl->options.set,
				    (count + c->settings + 1) * sizeof(*ctl->options.set));
	for (size_t i = 0; i < c->settings; i++)
		ctl->options.set[count + i] = c->setting[i];
	ctl->options.set_count = count + c->settings;
	ctl->options.set[ctl->options.set_count] = NULL;
	words.rest = xcalloc(given.rest_count + 3, sizeof(*words.rest));
	words.rest[words.rest_count++] = "lbworker";
	words.rest[words.rest_count++] = "check";
	for (size_t i = 0; i < given.rest_count; i++)
		words.rest[words.rest_count++] = given.rest[i];
	words.dashes = true;
	ctl->operands = words;
	ctl->options.follow = !ctl->options.dry_run && !ctl->options.json;
	int status = submit_run(ctl, err);
	ctl->operands = given;
	ctl->options.set_count = count;
	free(words.rest);
	return status;
}

int check_run(struct ctl *ctl, struct err *err)
{
	struct check c = { 0 };
	int status = -1;

	set(&c, xstrdup("slurm.ntasks_per_node=1"));
	set(&c, xstrdup("restart.max_without_progress=0"));
	set(&c, xstrdup("restart.in_place=0"));
	set(&c, xstrdup("restart.never_on_exit_codes=[1,2,5]"));
	if (choose_nodes(ctl, &c, err) == 0)
		status = submit(ctl, &c, err);
	for (size_t i = 0; i < c.settings; i++)
		free(c.setting[i]);
	return status;
}
