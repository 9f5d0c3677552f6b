/* SPDX-License-Identifier: MIT */
/* absent.c - finds them among the cluster's nodes, and leaves them out of a request. */
#include "slurm/pipe/absent.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/hosts.h"

/* Nodes of a cloud that are powered down Slurm names nowhere but in their partitions, unless
 * PrivateData=cloud. */
static bool has_node(const struct cluster *c, const char *name)
{
	bool has = false;

	for (size_t i = 0; i < c->node_count && !has; i++)
		has = c->nodes[i].name && strcmp(c->nodes[i].name, name) == 0;
	for (size_t i = 0; i < c->partition_count && !has; i++)
		has = hosts_have(c->partitions[i].nodes, name);
	return has;
}

/* Of what sbatch is told the last word counts. */
static json_t *with_nodes(const json_t *request, const json_t *nodes)
{
	json_t *other = json_deep_copy(request);
	char *list = hosts_fold(nodes, HOSTS_TEXT_BYTES), *word = xasprintf("--exclude=%s", list);

	js_set_str(json_object_get(other, "fields"), "exc_nodes", list);
	if (json_object_get(other, "sbatch"))
		json_array_append_new(json_object_get(other, "sbatch"), js_bytes(word));
	free(word);
	free(list);
	return other;
}

json_t *absent_left_out(const json_t *request, const struct cluster *c, json_t *names)
{
	json_t *all = hosts_expand(js_str(json_object_get(request, "fields"), "exc_nodes", ""));
	json_t *kept = json_array(), *other = NULL, *name;
	bool are_known = c->node_count > 0 && json_array_size(all) < HOSTS_MAX;
	size_t i;

	json_array_foreach(all, i, name) {
		if (!are_known || has_node(c, json_string_value(name)))
			json_array_append(kept, name);
		else if (names)
			json_array_append(names, name);
	}
	if (json_array_size(kept) < json_array_size(all))
		other = with_nodes(request, kept);
	json_decref(kept);
	json_decref(all);
	return other;
}

void absent_submit_again(const json_t *request, struct answer *a,
			 int (*load)(struct cluster *c, struct answer *a),
			 void (*submit)(const json_t *request, struct answer *a))
{
	struct answer ignored = { 0 };
	struct cluster c = { 0 };
	json_t *names, *other;

	if (a->result != SCHEDULER_REFUSED || !strstr(a->text, "Invalid node name specified"))
		return;
	names = json_array();
	load(&c, &ignored);
	other = absent_left_out(request, &c, names);
	if (other) {
		answer_set(a, SCHEDULER_OK, "%s", "");
		json_object_set(a->body, "absent", names);
		submit(other, a);
	}
	json_decref(other);
	json_decref(names);
	json_decref(ignored.body);
	cluster_fini(&c);
}
