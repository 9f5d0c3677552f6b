/* SPDX-License-Identifier: MIT */
/* cron_state.c - what is known of each entry of cron beyond its line: kept in the ledger, and here
 * while lbd runs. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "daemon/cron/cron_internal.h"

static struct cron_state *add_state(struct cron *cron, const char *name, int64_t seen_s,
				    const char *disabled_by)
{
	struct cron_state *state = xcalloc(1, sizeof(*state));

	memcpy(state->name, name, strnlen(name, NAME_MAX_BYTES));
	state->seen_s = state->written_s = seen_s;
	state->disabled_by = xstrdup(disabled_by);
	cron->states = xrealloc(cron->states,
				(cron->state_count + 1) * sizeof(struct cron_state *));
	return cron->states[cron->state_count++] = state;
}

/* What lies there for the first time is not due for the time before it. */
struct cron_state *cron_state_of(struct cron *cron, const char *name)
{
	struct cron_state *state;

	for (size_t i = 0; i < cron->state_count; i++)
		if (strcmp(cron->states[i]->name, name) == 0)
			return cron->states[i];
	state = add_state(cron, name, clock_wall_ms() / 1000, "");
	cron_state_write(cron, state, NULL);
	return state;
}

int cron_state_write(struct cron *cron, struct cron_state *state, struct err *err)
{
	struct ledger_cron_entry row = { state->name, state->seen_s, state->disabled_by };

	if (ledger_cron_entry_put(cron->lbd->ledger, &row, err) < 0)
		return -1;
	state->written_s = state->seen_s;
	return 0;
}

static int read_state(const struct ledger_cron_entry *row, void *arg)
{
	add_state(arg, row->name, row->seen_s, row->disabled_by);
	return 0;
}

int cron_states_load(struct cron *cron, struct err *err)
{
	return ledger_cron_entry_each(cron->lbd->ledger, read_state, cron, err);
}

void cron_states_free(struct cron *cron)
{
	for (size_t i = 0; i < cron->state_count; i++) {
		free(cron->states[i]->disabled_by);
		free(cron->states[i]);
	}
	free(cron->states);
}
