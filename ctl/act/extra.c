/* SPDX-License-Identifier: MIT */
/* extra.c - what lbctl audit and lbctl check are: a submission with settings of their own. */
#include "ctl/act/extra.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "ctl/base/command.h"

void extra_add(struct extra *extra, char *setting)
{
	extra->settings = xrealloc(extra->settings, (extra->count + 1) * sizeof(*extra->settings));
	extra->settings[extra->count++] = setting;
}

int extra_submit(struct ctl *ctl, const struct extra *extra, struct err *err)
{
	struct options *o = &ctl->options;
	const char **typed = o->set;
	size_t typed_count = o->set_count, count = typed_count + extra->count;

	o->set = xcalloc(count + 1, sizeof(*o->set));
	for (size_t i = 0; i < count; i++)
		o->set[i] = i < typed_count ? typed[i] : extra->settings[i - typed_count];
	o->set_count = count;
	int status = submit_run(ctl, err);
	free(o->set);
	o->set = typed;
	o->set_count = typed_count;
	return status;
}

void extra_clear(struct extra *extra)
{
	for (size_t i = 0; i < extra->count; i++)
		free(extra->settings[i]);
	free(extra->settings);
	*extra = (struct extra){ 0 };
}
