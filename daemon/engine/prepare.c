/* SPDX-License-Identifier: MIT */
/* prepare.c - what an attempt's job is to find on disk when it begins. */
#include "common/base/log.h"
#include "daemon/engine/state.h"

int engine_prepare(struct engine *e, struct run *run, const struct attempt *a, struct err *err)
{
	struct run shadow = a == run->prequeued ? run_with_prequeued(run) : *run;

	if (e->world->prepare == NULL)
		return 0;
	return e->world->prepare(e->world->self, &shadow, err);
}

void engine_prepare_early(struct engine *e, struct run *run, const struct attempt *a)
{
	struct err err = { 0 };

	if (engine_prepare(e, run, a, &err) < 0)
		log_warn("%s: %s", run->name, err.text);
}
