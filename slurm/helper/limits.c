/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limits.c - what partitions and nodes could ever give a job.
 *
 * Slurm has one error for "never" and for "not while these nodes are down". Here it is counted: a
 * node that is down counts as what it is when it is up. What cannot be counted (complex
 * constraints, switches) is taken to fit: a job that might start one day is not refused. */
#include "slurm/helper/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/bytes.h"

enum { MAX_ABSENT_SHOWN = 8 };

int cluster_load(struct cluster *c, struct answer *a)
{
	int rc;

	*c = (struct cluster){ 0 };
	rc = slurm_load_partitions(0, &c->partitions, SHOW_ALL);
	if (rc)
		return slurm_failed(a, rc, false, "reading the partitions");
	rc = slurm_load_node(0, &c->nodes, SHOW_ALL | SHOW_DETAIL);
	return rc ? slurm_failed(a, rc, false, "reading the nodes") : 0;
}

void cluster_fini(struct cluster *c)
{
	slurm_free_partition_info_msg(c->partitions);
	slurm_free_node_info_msg(c->nodes);
}

const partition_info_t *cluster_partition(const struct cluster *c, const char *name, size_t len)
{
	for (uint32_t i = 0; i < c->partitions->record_count; i++) {
		const partition_info_t *p = &c->partitions->partition_array[i];

		if (name ? strlen(p->name) == len && memcmp(p->name, name, len) == 0
			 : (p->flags & PART_FLAG_DEFAULT) != 0)
			return p;
	}
	return NULL;
}

void cluster_each(const struct cluster *c, const char *names,
		  void (*see)(const partition_info_t *p, void *arg), void *arg)
{
	const partition_info_t *p;

	if (names == NULL) {
		p = cluster_partition(c, NULL, 0);
		if (p)
			see(p, arg);
		return;
	}
	while (*names) {
		size_t len = strcspn(names, ",");

		p = cluster_partition(c, names, len);
		if (p)
			see(p, arg);
		names += len + (names[len] == ',');
	}
}

char *cluster_partition_names(const struct cluster *c)
{
	char *text = xstrdup("");

	for (uint32_t i = 0; i < c->partitions->record_count; i++) {
		char *longer = xasprintf("%s%s%s", text, text[0] ? ", " : "",
					 c->partitions->partition_array[i].name);

		free(text);
		text = longer;
	}
	return text;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void each_node(const struct cluster *c, const partition_info_t *p,
		      void (*see)(const node_info_t *node, void *arg), void *arg)
{
	for (const int32_t *at = p->node_inx; at && at[0] >= 0; at += 2)
		for (int32_t i = at[0]; i <= at[1] && i < (int32_t)c->nodes->record_count; i++)
			if (c->nodes->node_array[i].name)
				see(&c->nodes->node_array[i], arg);
}

/* What the job asks of each of its nodes; 0 and NULL: nothing that could be counted. */
struct needs {
	uint32_t nodes;
	uint32_t cpus, gpus;
	uint64_t mem_mb;
	const char *gpu_type, *features;
	json_t *excluded; /* names; owned */
};

/* "gres:gpu:2", "gres:gpu:h100:8", "gres/gpu:2", also as one of several: of GPUs alone. */
static void read_gpus(const char *tres, struct needs *n)
{
	const char *at = tres ? strstr(tres, "gpu") : NULL;

	if (at == NULL || (at != tres && strchr(":/,", at[-1]) == NULL))
		return;
	at += 3;
	if (*at != ':' && *at != '=')
		return;
	n->gpus = (uint32_t)strtoul(at + 1, NULL, 10);
	if (n->gpus == 0) {
		n->gpu_type = at + 1;
		at += 1 + strcspn(at + 1, ":=,");
		n->gpus = *at == ':' || *at == '=' ? (uint32_t)strtoul(at + 1, NULL, 10) : 1;
	}
}

/* Names that must all be there; anything else is left to Slurm. */
static const char *plain_features(const char *text)
{
	if (text == NULL || text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789_-.&")])
		return NULL;
	return text;
}

static struct needs needs_of(const job_desc_msg_t *job)
{
	struct needs n = {
		.nodes = job->min_nodes == NO_VAL || job->min_nodes == 0 ? 1 : job->min_nodes,
		.features = plain_features(job->features),
		.excluded = hosts_expand(job->exc_nodes ? job->exc_nodes : ""),
	};
	bool has_cpus = job->cpus_per_task != NO_VAL16 && job->cpus_per_task > 0;
	bool has_tasks = job->ntasks_per_node != NO_VAL16 && job->ntasks_per_node > 0;
	bool has_mem = job->pn_min_memory != NO_VAL64;

	if (job->overcommit == NO_VAL8 || job->overcommit == 0)
		n.cpus = (has_cpus ? job->cpus_per_task : 1u) *
			 (has_tasks ? job->ntasks_per_node : 1u);
	if (has_mem && job->pn_min_memory & MEM_PER_CPU)
		n.mem_mb = (job->pn_min_memory & ~MEM_PER_CPU) * (n.cpus ? n.cpus : 1);
	else if (has_mem)
		n.mem_mb = job->pn_min_memory;
	read_gpus(job->tres_per_node, &n);
	return n;
}

/* "gpu:h100:8(S:0-1),gpu:2" of a node */
static uint32_t gpus_of(const char *gres, const char *type)
{
	uint32_t sum = 0;

	for (const char *at = gres ? gres : ""; *at;) {
		size_t len = strcspn(at, ","), type_len = type ? strcspn(type, ":=,") : 0;
		const char *count = at + 4;

		if (strncmp(at, "gpu:", 4) == 0) {
			bool has_type = !(*count >= '0' && *count <= '9');
			size_t word = strcspn(count, ":,(");

			if (has_type && count[word] != ':')
				sum += 0;
			else if (!type ||
				 (has_type && word == type_len && memcmp(count, type, word) == 0))
				sum += (uint32_t)strtoul(has_type ? count + word + 1 : count, NULL,
							 10);
		}
		at += len + (at[len] == ',');
	}
	return sum;
}

static bool list_has(const char *list, const char *word, size_t len)
{
	for (const char *at = list ? list : ""; *at;) {
		size_t here = strcspn(at, ",");

		if (here == len && memcmp(at, word, len) == 0)
			return true;
		at += here + (at[here] == ',');
	}
	return false;
}

static bool has_features(const node_info_t *node, const char *wanted)
{
	for (const char *at = wanted ? wanted : ""; *at;) {
		size_t len = strcspn(at, "&");

		if (len && !list_has(node->features, at, len))
			return false;
		at += len + (at[len] == '&');
	}
	return true;
}

static bool is_excluded(const node_info_t *node, const json_t *excluded)
{
	const json_t *name;
	size_t i;

	json_array_foreach(excluded, i, name) {
		if (strcmp(json_string_value(name), node->name) == 0)
			return true;
	}
	return false;
}

/* How many nodes have enough of each, and of all. */
struct count {
	const struct needs *needs;
	uint32_t nodes, cpus, mem, gpus, features, all;
	uint32_t most_cpus, most_gpus;
	uint64_t most_mem;
};

static void count_node(const node_info_t *node, void *arg)
{
	struct count *c = arg;
	const struct needs *n = c->needs;
	uint32_t gpus = gpus_of(node->gres, n->gpu_type);
	bool cpus_ok = node->cpus >= n->cpus, mem_ok = node->real_memory >= n->mem_mb;
	bool gpus_ok = gpus >= n->gpus, features_ok = has_features(node, n->features);

	c->nodes++;
	c->cpus += cpus_ok;
	c->mem += mem_ok;
	c->gpus += gpus_ok;
	c->features += features_ok;
	c->all += cpus_ok && mem_ok && gpus_ok && features_ok && !is_excluded(node, n->excluded);
	c->most_cpus = node->cpus > c->most_cpus ? node->cpus : c->most_cpus;
	c->most_gpus = gpus > c->most_gpus ? gpus : c->most_gpus;
	c->most_mem = node->real_memory > c->most_mem ? node->real_memory : c->most_mem;
}

/* --- what is exceeded ------------------------------------------------------------------------- */

/* `text` is taken. */
static void add(json_t *list, const char *limit, int64_t allowed, int64_t asked, char *text)
{
	json_t *o = json_object();

	js_set_str(o, "limit", limit);
	js_set_int(o, "allowed", allowed);
	js_set_int(o, "asked", asked);
	json_object_set_new(o, "text", js_bytes(text));
	json_array_append_new(list, o);
	free(text);
}

static void check_time(json_t *list, const job_desc_msg_t *job, const partition_info_t *p)
{
	char most[CLOCK_TEXT_MAX], asked[CLOCK_TEXT_MAX];

	if (job->time_limit == NO_VAL || p->max_time == INFINITE || job->time_limit <= p->max_time)
		return;
	duration_text((int64_t)p->max_time * 60000, most);
	duration_text((int64_t)job->time_limit * 60000, asked);
	add(list, "MaxTime", p->max_time, job->time_limit,
	    job->time_limit == INFINITE
		    ? xasprintf(
			      "partition %s lets a job run for %s, this one asks for time without end",
			      p->name, most)
		    : xasprintf("partition %s lets a job run for %s, this one asks for %s", p->name,
				most, asked));
}

static void check_counts(json_t *list, const struct needs *n, const partition_info_t *p)
{
	if (p->max_nodes != INFINITE && n->nodes > p->max_nodes)
		add(list, "MaxNodes", p->max_nodes, n->nodes,
		    xasprintf("partition %s gives a job %u node%s at most, this one asks for %u",
			      p->name, p->max_nodes, p->max_nodes == 1 ? "" : "s", n->nodes));
	else if (n->nodes > p->total_nodes)
		add(list, "TotalNodes", p->total_nodes, n->nodes,
		    xasprintf("partition %s has %u node%s, the job asks for %u", p->name,
			      p->total_nodes, p->total_nodes == 1 ? "" : "s", n->nodes));
}

/* One kind of thing that too few nodes have enough of. */
static void check_kind(json_t *list, const struct needs *n, const partition_info_t *p, uint32_t fit,
		       const char *limit, uint64_t most, uint64_t asked, const char *unit)
{
	if (fit >= n->nodes)
		return;
	if (fit == 0)
		add(list, limit, (int64_t)most, (int64_t)asked,
		    xasprintf("nodes of partition %s have %" PRIu64
			      " %s at most, the job asks for %" PRIu64 " on each",
			      p->name, most, unit, asked));
	else
		add(list, limit, (int64_t)most, (int64_t)asked,
		    xasprintf("%u nodes of partition %s have %" PRIu64
			      " %s, the job asks for %u of those",
			      fit, p->name, asked, unit, n->nodes));
}

static void check_nodes(json_t *list, const struct needs *n, const partition_info_t *p,
			const struct count *c)
{
	check_kind(list, n, p, c->cpus, "CPUs", c->most_cpus, n->cpus, "CPUs");
	check_kind(list, n, p, c->mem, "Memory", c->most_mem, n->mem_mb, "MB of memory");
	check_kind(list, n, p, c->gpus, "GPUs", c->most_gpus, n->gpus,
		   n->gpu_type ? "GPUs of its type" : "GPUs");
	if (c->features < n->nodes)
		add(list, "Features", c->features, n->nodes,
		    xasprintf("%u nodes of partition %s have the features %s, the job asks for %u",
			      c->features, p->name, n->features, n->nodes));
	if (json_array_size(list) == 0 && c->all < n->nodes)
		add(list, "Nodes", c->all, n->nodes,
		    xasprintf(
			    "%u nodes of partition %s are all that the job asks for at once (CPUs, memory, "
			    "GPUs, features, not excluded); it asks for %u",
			    c->all, p->name, n->nodes));
}

json_t *limits_exceeded(const struct cluster *c, const job_desc_msg_t *job,
			const partition_info_t *p)
{
	struct needs needs = needs_of(job);
	struct count count = { .needs = &needs };
	json_t *list = json_array();

	check_time(list, job, p);
	check_counts(list, &needs, p);
	each_node(c, p, count_node, &count);
	if (json_array_size(list) == 0 && count.nodes > 0)
		check_nodes(list, &needs, p, &count);
	json_decref(needs.excluded);
	return list;
}

/* --- nodes that are away ---------------------------------------------------------------------- */

struct absent {
	char *text;
	uint32_t count, all;
};

static const char *absence_of(const node_info_t *node)
{
	if ((node->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN)
		return "down";
	if (node->node_state & NODE_STATE_DRAIN)
		return "drained";
	if (node->node_state & NODE_STATE_FAIL)
		return "failing";
	if (node->node_state & NODE_STATE_NO_RESPOND)
		return "does not answer";
	if (node->node_state & NODE_STATE_MAINT)
		return "in maintenance";
	return NULL;
}

static void see_absent(const node_info_t *node, void *arg)
{
	struct absent *a = arg;
	const char *how = absence_of(node);
	char *longer;

	a->all++;
	if (how == NULL)
		return;
	if (++a->count > MAX_ABSENT_SHOWN)
		return;
	longer = xasprintf("%s%s%s (%s%s%s)", a->text ? a->text : "", a->text ? ", " : "",
			   node->name, how, node->reason && node->reason[0] ? ": " : "",
			   node->reason ? node->reason : "");
	free(a->text);
	a->text = longer;
}

char *limits_absent_nodes(const struct cluster *c, const partition_info_t *p, uint32_t *count,
			  uint32_t *all)
{
	struct absent a = { 0 };

	each_node(c, p, see_absent, &a);
	*count = a.count;
	*all = a.all;
	if (a.count > MAX_ABSENT_SHOWN) {
		char *longer = xasprintf("%s and %u more", a.text, a.count - MAX_ABSENT_SHOWN);

		free(a.text);
		a.text = longer;
	}
	return a.text;
}

/* --- what is free now ------------------------------------------------------------------------- */

struct vacancy {
	const struct needs *needs;
	const json_t *taken;
	bool is_whole; /* the job wants its nodes for itself */
	uint32_t count;
};

static void see_free(const node_info_t *node, void *arg)
{
	struct vacancy *v = arg;
	const struct needs *n = v->needs;
	uint64_t used_mb;
	uint16_t used;

	if (absence_of(node) || is_excluded(node, n->excluded) || is_excluded(node, v->taken) ||
	    !has_features(node, n->features))
		return;
	libslurm_used_of(node, &used, &used_mb);
	v->count += node->cpus >= used + n->cpus && node->real_memory >= used_mb + n->mem_mb &&
		    gpus_of(node->gres, n->gpu_type) >=
			    gpus_of(node->gres_used, n->gpu_type) + n->gpus &&
		    (!v->is_whole || used == 0);
}

uint32_t limits_free_nodes(const struct cluster *c, const job_desc_msg_t *job,
			   const partition_info_t *p, const json_t *taken)
{
	struct needs needs = needs_of(job);
	struct vacancy v = { .needs = &needs, .taken = taken, .is_whole = job->shared == 0 };

	each_node(c, p, see_free, &v);
	json_decref(needs.excluded);
	return v.count;
}
