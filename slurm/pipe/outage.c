/* SPDX-License-Identifier: MIT */
/* outage.c - nodes that are going away, in words for people and as a program reads them. */
#include "slurm/pipe/outage.h"

#include <stdlib.h>
#include <time.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"

void outages_begin(struct answer *a)
{
	json_object_set_new(a->body, "outages", json_array());
}

/* Takes the text, which may hold any bytes. */
static json_t *add(struct answer *a, const char *nodes, char *text)
{
	json_t *o = json_object();

	js_set_str(o, "nodes", nodes);
	json_object_set_new(o, "text", js_bytes(text));
	json_array_append_new(json_object_get(a->body, "outages"), o);
	free(text);
	return o;
}

void outages_drain(struct answer *a, const char *node, const char *reason)
{
	bool has_reason = reason && reason[0];

	add(a, node,
	    xasprintf("%s is set to drain%s%s", node, has_reason ? ": " : "",
		      has_reason ? reason : ""));
}

void outages_reservation(struct answer *a, const char *name, const char *nodes, int64_t start,
			 int64_t end)
{
	int64_t now = time(NULL);
	char when[CLOCK_TEXT_MAX];
	json_t *o;

	if (!name || !nodes || !nodes[0] || end <= now)
		return;
	o = add(a, nodes,
		xasprintf("the maintenance reservation %s %s on %s at %s", name,
			  start <= now ? "began" : "begins", nodes,
			  clock_text(start * 1000, when)));
	js_set_int(o, "begins", start);
	json_object_set_new(o, "name", js_bytes(name));
}
