/* SPDX-License-Identifier: MIT */
/* check.c - lbctl check: a run of "lbworker check", one rank on each of some nodes. A run like any
 * other, that is not tried again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/hosts.h"
#include "ctl/act/extra.h"
#include "ctl/base/command.h"
#include "ctl/team/ask.h"

/* How many names a list like "n[1-3],login,gpu[01-02]x" has, HOSTS_MAX where they are more; 0: it
 * is none. */
static size_t count_nodes(const char *list)
{
	json_t *names = hosts_expand(list);
	size_t count = json_array_size(names), i;
	const json_t *name;
	bool is_list = true;

	json_array_foreach(names, i, name)
		is_list = is_list && !strpbrk(json_string_value(name), "[]");
	json_decref(names);
	return is_list ? count : 0;
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
		err_set(err, ERR_NOT_FOUND,
			"%s: no node is known that it was on; name them by --nodes", run);
	json_decref(about);
	return all;
}

static int set_nodes(struct extra *extra, const char *list, struct err *err)
{
	size_t count = count_nodes(list);

	if (count == 0)
		return err_set(err, ERR_USAGE,
			       "check: --nodes %s: names with commas between them, like n1,n[4-7]",
			       list);
	if (count >= HOSTS_MAX)
		return err_set(err, ERR_USAGE, "check: --nodes: at most %d nodes at once",
			       HOSTS_MAX - 1);
	extra_add(extra, xasprintf("slurm.nodelist=%s", list));
	extra_add(extra, xasprintf("slurm.nodes=%zu", count));
	if (count > 1)
		extra_add(extra, xstrdup("slurm.mpi=pmi2"));
	return 0;
}

static int choose_nodes(struct ctl *ctl, struct extra *extra, struct err *err)
{
	const struct options *o = &ctl->options;
	const char *run = ctl->operands.count > 0 ? ctl->operands.words[0] : NULL;

	if (run && (o->nodes || o->partition))
		return err_set(err, ERR_USAGE,
			       "check: a run, or --nodes and --partition, not both");
	if (o->partition)
		extra_add(extra, xasprintf("slurm.partition=%s", o->partition));
	if (o->partition && !o->nodes && o->count == 0)
		return err_set(
			err, ERR_USAGE,
			"check: --partition %s wants --count N, or --nodes LIST: lbd does not "
			"know how many nodes it has",
			o->partition);
	if (o->nodes)
		return set_nodes(extra, o->nodes, err);
	if (o->count > 0)
		extra_add(extra, xasprintf("slurm.nodes=%" PRId64, o->count));
	if (o->count > 1)
		extra_add(extra, xstrdup("slurm.mpi=pmi2"));
	if (!run)
		return 0;
	char *list = nodes_of_run(ctl, run, err);
	int rc = list ? set_nodes(extra, list, err) : -1;
	free(list);
	return rc;
}

/* Without Slurm there is one machine, whatever nodes a run's newest attempt had. */
static int choose_this_machine(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;

	if (o->nodes || o->partition || o->count > 1)
		return err_set(err, ERR_USAGE,
			       "check: %s: there is no Slurm here, so this machine alone can be "
			       "checked: lbctl check",
			       o->nodes       ? "--nodes"
			       : o->partition ? "--partition"
					      : "--count");
	if (ctl->operands.count == 0)
		return 0;
	json_t *run = ask_about(ctl, VERB_STATUS, ctl->operands.words[0], NULL, err);
	json_decref(run);
	return run ? 0 : -1;
}

/* What a person would have typed: lbctl submit --set … -- lbworker check … */
static int submit(struct ctl *ctl, struct extra *extra, struct err *err)
{
	struct operands given = ctl->operands, words = { 0 };

	words.rest = xcalloc(given.rest_count + 3, sizeof(*words.rest));
	words.rest[words.rest_count++] = "lbworker";
	words.rest[words.rest_count++] = "check";
	for (size_t i = 0; i < given.rest_count; i++)
		words.rest[words.rest_count++] = given.rest[i];
	words.dashes = true;
	ctl->operands = words;
	ctl->options.follow = !ctl->options.dry_run && !ctl->options.json;
	int status = extra_submit(ctl, extra, err);
	ctl->operands = given;
	free(words.rest);
	return status;
}

int check_run(struct ctl *ctl, struct err *err)
{
	struct extra extra = { 0 };
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, err);
	int status = -1, rc;

	if (!lbd)
		return -1;

	extra_add(&extra, xstrdup("slurm.ntasks_per_node=1"));
	extra_add(&extra, xstrdup("restart.max_without_progress=0"));
	extra_add(&extra, xstrdup("restart.in_place=0"));
	extra_add(&extra, xstrdup("restart.never_on_exit_codes=[1,2,5]"));
	rc = js_bool(lbd, "slurm", true) ? choose_nodes(ctl, &extra, err)
					 : choose_this_machine(ctl, err);
	if (rc == 0)
		status = submit(ctl, &extra, err);
	json_decref(lbd);
	extra_clear(&extra);
	return status;
}
