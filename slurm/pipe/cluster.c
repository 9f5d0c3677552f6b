/* SPDX-License-Identifier: MIT */
/* cluster.c - what partitions and nodes could ever give a job.
 *
 * Slurm has one error for "never" and for "not while these nodes are down". Here it is counted: a
 * node that is down counts as what it is when it is up. What cannot be counted (complex
 * constraints, switches) is taken to fit: a job that might start one day is not refused. */
#include "slurm/pipe/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/run/hosts.h"
#include "slurm/batch/batch_counts.h"

enum { MAX_ABSENT_SHOWN = 8 };

void cluster_fini(struct cluster *c)
{
	free(c->nodes);
	free(c->partitions);
	strv_free(c->texts.items);
	*c = (struct cluster){ 0 };
}

const char *cluster_keep(struct cluster *c, const char *text, size_t len)
{
	char *copy = text ? xstrndup(text, len) : NULL;

	if (copy)
		strv_add(&c->texts, copy);
	return copy;
}

/* NULL: there is none of this name (len bytes); name NULL: the default one. */
static const struct cluster_partition *find_partition(const struct cluster *c, const char *name,
						      size_t len)
{
	for (size_t i = 0; i < c->partition_count; i++) {
		const struct cluster_partition *p = &c->partitions[i];

		if (name ? strlen(p->name) == len && memcmp(p->name, name, len) == 0
			 : p->is_default)
			return p;
	}
	return NULL;
}

void cluster_each(const struct cluster *c, const char *names,
		  void (*see)(const struct cluster_partition *p, void *arg), void *arg)
{
	const struct cluster_partition *p;

	if (names == NULL) {
		p = find_partition(c, NULL, 0);
		if (p)
			see(p, arg);
		return;
	}
	while (*names) {
		size_t len = strcspn(names, ",");

		p = find_partition(c, names, len);
		if (p)
			see(p, arg);
		names += len + (names[len] == ',');
	}
}

/* --- nodes ------------------------------------------------------------------------------------ */

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

static void each_node(const struct cluster *c, const struct cluster_partition *p,
		      void (*see)(const struct cluster_node *node, void *arg), void *arg)
{
	size_t len = strlen(p->name);

	for (size_t i = 0; i < c->node_count; i++)
		if (list_has(c->nodes[i].partitions, p->name, len))
			see(&c->nodes[i], arg);
}

/* What the job asks of each of its nodes; 0 and NULL: nothing that could be counted. */
struct needs {
	int64_t nodes, cpus, gpus, mem_mb;
	const char *gpu_type, *features; /* borrowed of the fields */
	json_t *excluded;                /* names; owned */
};

/* "2", "h100:8"; of "gpu:2", "gres/gpu:h100:2", also as one of several, the GPUs alone. */
static void read_gpus(const char *text, bool is_gres, struct needs *n)
{
	const char *at = text && is_gres ? strstr(text, "gpu") : text;

	if (at == NULL || (at != text && strchr(":/,", at[-1]) == NULL))
		return;
	if (is_gres)
		at += 3;
	if (is_gres && *at != ':' && *at != '=')
		return;
	at += is_gres;
	n->gpus = *at >= '0' && *at <= '9' ? batch_count_of(at) : 0;
	if (n->gpus == 0) {
		n->gpu_type = at;
		at += strcspn(at, ":=,");
		n->gpus = *at == ':' || *at == '=' ? batch_count_of(at + 1) : 1;
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

/* What is asked for, or 1 where nothing is. */
static int64_t at_least_one(const json_t *fields, const char *key, int64_t fallback)
{
	int64_t n = js_int(fields, key, fallback);

	return n > 0 ? n : 1;
}

static struct needs needs_of(const json_t *fields)
{
	const char *gpus = js_str(fields, "gpus_per_node", NULL);
	int64_t per_cpu = js_int(fields, "mem_per_cpu", 0);
	struct needs n = {
		.nodes = at_least_one(fields, "min_nodes", 1),
		.features = plain_features(js_str(fields, "features", NULL)),
		.excluded = hosts_expand(js_str(fields, "exc_nodes", "")),
		.mem_mb = js_int(fields, "mem_per_node", 0),
	};

	if (js_int(fields, "overcommit", 0) == 0)
		n.cpus = at_least_one(fields, "cpus_per_task",
				      js_int(fields, "implied_cpus_per_task", 1)) *
			 at_least_one(fields, "ntasks_per_node", 1);
	if (n.mem_mb <= 0)
		n.mem_mb = per_cpu > 0 ? per_cpu * (n.cpus ? n.cpus : 1) : 0;
	read_gpus(gpus ? gpus : js_str(fields, "gres", NULL), !gpus, &n);
	return n;
}

/* "gpu:h100:8(S:0-1),gpu:2" of a node; of those in use "gpu:(null):2(IDX:0-1)", without a type */
static int64_t gpus_of(const char *gres, const char *type)
{
	int64_t sum = 0;

	for (const char *at = gres ? gres : ""; *at;) {
		size_t len = strcspn(at, ","), type_len = type ? strcspn(type, ":=,") : 0;
		const char *count = at + (strncmp(at, "gpu:(null):", 11) == 0 ? 11 : 4);

		if (strncmp(at, "gpu:", 4) == 0) {
			bool has_type = !(*count >= '0' && *count <= '9');
			size_t word = strcspn(count, ":,(");

			if (has_type && count[word] != ':')
				sum += 0;
			else if (!type ||
				 (has_type && word == type_len && memcmp(count, type, word) == 0))
				sum += strtol(has_type ? count + word + 1 : count, NULL, 10);
		}
		at += len + (at[len] == ',');
	}
	return sum;
}

static bool has_features(const struct cluster_node *node, const char *wanted)
{
	for (const char *at = wanted ? wanted : ""; *at;) {
		size_t len = strcspn(at, "&");

		if (len && !list_has(node->features, at, len))
			return false;
		at += len + (at[len] == '&');
	}
	return true;
}

static bool is_excluded(const struct cluster_node *node, const json_t *excluded)
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
	unsigned nodes, cpus, mem, gpus, features, all;
	int64_t most_cpus, most_gpus, most_mem;
};

static void count_node(const struct cluster_node *node, void *arg)
{
	struct count *c = arg;
	const struct needs *n = c->needs;
	int64_t gpus = gpus_of(node->gres, n->gpu_type);
	bool cpus_ok = node->cpus >= n->cpus, mem_ok = node->mem_mb >= n->mem_mb;
	bool gpus_ok = gpus >= n->gpus, features_ok = has_features(node, n->features);

	c->nodes++;
	c->cpus += cpus_ok;
	c->mem += mem_ok;
	c->gpus += gpus_ok;
	c->features += features_ok;
	c->all += cpus_ok && mem_ok && gpus_ok && features_ok && !is_excluded(node, n->excluded);
	c->most_cpus = node->cpus > c->most_cpus ? node->cpus : c->most_cpus;
	c->most_gpus = gpus > c->most_gpus ? gpus : c->most_gpus;
	c->most_mem = node->mem_mb > c->most_mem ? node->mem_mb : c->most_mem;
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

/* Slurm shortens a job that says how little will do (--time-min). */
static void check_time(json_t *list, const json_t *fields, const struct cluster_partition *p)
{
	int64_t minutes = js_int(fields, "time_min", js_int(fields, "time_limit", 0));
	char most[CLOCK_TEXT_MAX], asked[CLOCK_TEXT_MAX];

	if (p->max_minutes == CLUSTER_NO_LIMIT || (minutes >= 0 && minutes <= p->max_minutes))
		return;
	duration_text(p->max_minutes * 60000, most);
	duration_text(minutes * 60000, asked);
	add(list, "MaxTime", p->max_minutes, minutes,
	    minutes < 0
		    ? xasprintf(
			      "partition %s lets a job run for %s, this one asks for time without "
			      "end",
			      p->name, most)
		    : xasprintf("partition %s lets a job run for %s, this one asks for %s", p->name,
				most, asked));
}

static void check_counts(json_t *list, const struct needs *n, const struct cluster_partition *p)
{
	if (n->nodes > p->max_nodes)
		add(list, "MaxNodes", p->max_nodes, n->nodes,
		    xasprintf("partition %s gives a job %" PRId64
			      " node%s at most, this one asks for %" PRId64,
			      p->name, p->max_nodes, p->max_nodes == 1 ? "" : "s", n->nodes));
	else if (n->nodes > p->total_nodes)
		add(list, "TotalNodes", p->total_nodes, n->nodes,
		    xasprintf("partition %s has %" PRId64 " node%s, the job asks for %" PRId64,
			      p->name, p->total_nodes, p->total_nodes == 1 ? "" : "s", n->nodes));
}

/* One kind of thing that too few nodes have enough of. */
static void check_kind(json_t *list, const struct needs *n, const struct cluster_partition *p,
		       unsigned fit, const char *limit, int64_t most, int64_t asked,
		       const char *unit)
{
	if (fit >= n->nodes)
		return;
	if (fit == 0)
		add(list, limit, most, asked,
		    xasprintf("nodes of partition %s have %" PRId64
			      " %s at most, the job asks for %" PRId64 " on each",
			      p->name, most, unit, asked));
	else
		add(list, limit, most, asked,
		    xasprintf("%u nodes of partition %s have %" PRId64
			      " %s, the job asks for %" PRId64 " of those",
			      fit, p->name, asked, unit, n->nodes));
}

static void check_nodes(json_t *list, const struct needs *n, const struct cluster_partition *p,
			const struct count *c)
{
	check_kind(list, n, p, c->cpus, "CPUs", c->most_cpus, n->cpus, "CPUs");
	check_kind(list, n, p, c->mem, "Memory", c->most_mem, n->mem_mb, "MB of memory");
	check_kind(list, n, p, c->gpus, "GPUs", c->most_gpus, n->gpus,
		   n->gpu_type ? "GPUs of its type" : "GPUs");
	if (c->features < n->nodes)
		add(list, "Features", c->features, n->nodes,
		    xasprintf("%u nodes of partition %s have the features %s, the job asks for "
			      "%" PRId64,
			      c->features, p->name, n->features, n->nodes));
	if (json_array_size(list) == 0 && c->all < n->nodes)
		add(list, "Nodes", c->all, n->nodes,
		    xasprintf("%u nodes of partition %s are all that the job asks for at once "
			      "(CPUs, memory, GPUs, features, not excluded); it asks for %" PRId64,
			      c->all, p->name, n->nodes));
}

json_t *cluster_exceeded(const struct cluster *c, const json_t *fields,
			 const struct cluster_partition *p)
{
	struct needs needs = needs_of(fields);
	struct count count = { .needs = &needs };
	json_t *list = json_array();

	check_time(list, fields, p);
	check_counts(list, &needs, p);
	each_node(c, p, count_node, &count);
	if (json_array_size(list) == 0 && count.nodes > 0 && count.nodes >= p->total_nodes)
		check_nodes(list, &needs, p, &count);
	json_decref(needs.excluded);
	return list;
}

/* --- nodes that are away ---------------------------------------------------------------------- */

struct absent {
	char *text;
	unsigned count, all;
};

const char *cluster_absence(const char *state)
{
	static const struct {
		const char *word, *how;
	} rows[] = {
		{ "DOWN", "down" },
		{ "DRAIN", "drained" },
		{ "FAIL", "failing" },
		{ "NOT_RESPONDING", "does not answer" },
		{ "MAINT", "in maintenance" },
	};

	/* one that boots does not answer yet */
	if (strstr(state, "POWERING_UP") && !text_begins_with(state, "DOWN"))
		return "being started";
	for (const char *at = state; *at; at += strcspn(at, "+"), at += *at == '+') {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			if (text_begins_with(at, rows[i].word))
				return rows[i].how;
		}
	}
	return strchr(state, '*') ? "does not answer" : NULL;
}

static void see_absent(const struct cluster_node *node, void *arg)
{
	struct absent *a = arg;
	const char *how = node->away;
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

char *cluster_absent_nodes(const struct cluster *c, const struct cluster_partition *p,
			   unsigned *count, unsigned *all)
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
	const struct cluster *cluster;
	const struct needs *needs;
	const json_t *taken;
	bool is_whole; /* the job has its nodes for itself */
	uint32_t count;
};

/* What runs there may be of a partition that lets no others in. */
static bool may_be_claimed(const struct cluster *c, const struct cluster_node *node)
{
	for (size_t i = 0; i < c->partition_count; i++) {
		const struct cluster_partition *p = &c->partitions[i];

		if (p->claims_nodes && list_has(node->partitions, p->name, strlen(p->name)))
			return true;
	}
	return false;
}

static void see_free(const struct cluster_node *node, void *arg)
{
	struct vacancy *v = arg;
	const struct needs *n = v->needs;

	if (node->away || is_excluded(node, n->excluded) || is_excluded(node, v->taken) ||
	    !has_features(node, n->features))
		return;
	v->count += node->cpus >= node->cpus_used + n->cpus &&
		    node->mem_mb >= node->mem_used_mb + n->mem_mb &&
		    gpus_of(node->gres, n->gpu_type) >=
			    gpus_of(node->gres_used, n->gpu_type) + n->gpus &&
		    (node->cpus_used == 0 || !(v->is_whole || may_be_claimed(v->cluster, node)));
}

unsigned cluster_free_nodes(const struct cluster *c, const json_t *fields,
			    const struct cluster_partition *p, const json_t *taken)
{
	struct needs needs = needs_of(fields);
	int64_t shared = js_int(fields, "shared", -1); /* 1: with anybody; 2, 3: with some */
	struct vacancy v = {
		.cluster = c,
		.needs = &needs,
		.taken = taken,
		.is_whole = p->gives_whole_nodes || shared == 0 || shared > 1,
	};

	each_node(c, p, see_free, &v);
	json_decref(needs.excluded);
	return v.count;
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* A job may start in any of its partitions: it never will if each of them has something against
 * it. */
struct verdict {
	const struct cluster *cluster;
	const json_t *fields;
	bool may_start;
	json_t *limits; /* of the first partition; owned */
};

static void see_partition(const struct cluster_partition *p, void *arg)
{
	struct verdict *v = arg;
	json_t *limits = cluster_exceeded(v->cluster, v->fields, p);

	v->may_start |= json_array_size(limits) == 0;
	if (v->limits == NULL)
		v->limits = json_incref(limits);
	json_decref(limits);
}

void cluster_judge(const struct cluster *c, const json_t *fields, struct answer *a)
{
	struct verdict v = { .cluster = c, .fields = fields };

	cluster_each(c, js_str(fields, "partition", NULL), see_partition, &v);
	if (v.limits && !v.may_start)
		answer_set(a, SCHEDULER_REFUSED, "%s; it could never start",
			   js_str(json_array_get(v.limits, 0), "text",
				  "the partition does not allow it"));
	json_decref(v.limits);
}

int cluster_refuse_partition(const struct cluster *c, const char *name, struct answer *a)
{
	char *names = xstrdup("");

	for (size_t i = 0; i < c->partition_count; i++) {
		char *longer = xasprintf("%s%s%s", names, i ? ", " : "; there are ",
					 c->partitions[i].name);

		free(names);
		names = longer;
	}
	answer_set(a, SCHEDULER_REFUSED, "slurm.partition: there is no partition \"%s\" here%.300s",
		   name, names);
	free(names);
	return -1;
}
