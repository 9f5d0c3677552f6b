/* SPDX-License-Identifier: MIT */
/* spare.c - a spare node of the job takes the place of one that is broken or lost; and that is
 * told. */
#include "common/base/err.h"
#include "worker/lbrun/shepherd/shepherd.h"

bool spare_take_place(struct shepherd *s, const char *node)
{
	struct err why = { 0 };

	if (!s->allocation.nodes)
		return false;
	if (allocation_drop(&s->allocation, node, s->folder, &why) < 0) {
		output_say(&s->output, "%s is not replaced: %s", node, why.text);
		return false;
	}
	s->facts.check = CHECK_NONE; /* nobody has looked at the spare */
	journal_note(&s->journal, s->facts.launch.number, "spare_node",
		     "a spare node takes the place of %s: the next launch is on %s; %zu left", node,
		     allocation_nodelist(),
		     json_array_size(s->allocation.nodes) - s->allocation.used);
	output_say(&s->output, "a spare node takes the place of %s: the next launch is on %s", node,
		   allocation_nodelist());
	return true;
}
