/* SPDX-License-Identifier: MIT */
/* ls.c - lbctl ls: a table of runs. */
#include <string.h>

#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_row.h"
#include "ctl/team/team.h"

/* Takes `runs`. */
static json_t *ls_named(const struct ctl *ctl, json_t *runs)
{
	json_t *named = json_array(), *run;
	size_t i;

	json_array_foreach(runs, i, run) {
		if (run_is_named(ctl, run, NULL))
			json_array_append(named, run);
	}
	json_decref(runs);
	return named;
}

static const char *ls_nothing(const struct ctl *ctl)
{
	const struct options *o = &ctl->options;

	if (ls_is_of_some(ctl) && o->all)
		return o->group ? "no runs of this group" : "no such runs";
	if (ls_is_of_some(ctl))
		return o->group ? "no runs of this group in the last 7 days; --all shows older ones"
				: "no such runs in the last 7 days; --all shows older ones";
	if (o->all)
		return "no runs yet; start one with: lbctl submit FILE.toml";
	return "no runs in the last 7 days; lbctl ls --all shows older ones, lbctl submit starts "
	       "one";
}

int ls_run(struct ctl *ctl, struct err *err)
{
	json_t *args, *runs;
	bool with_periodic;
	size_t count;

	if (team_is_meant(ctl))
		return ls_team(ctl, err);
	/* a table for people leaves the periodic ones out, programs see all */
	with_periodic = ctl->options.cron || ctl->options.json || ctl->operands.count > 0;
	args = json_pack("{s:b, s:b}", "all", ctl->options.all, "cron", with_periodic);
	if (ctl->options.group)
		json_object_set_new(args, "group", json_string(ctl->options.group));
	runs = client_ask(&ctl->client, VERB_LS, args, err);
	if (!runs)
		return -1;
	runs = ls_named(ctl, runs);
	count = json_array_size(runs);
	if (count > 0 && !ctl->options.json)
		print_rows(ctl, run_columns, RUN_COLUMNS, runs, fill_run);
	if (ctl->options.json)
		print_json(json_incref(runs));
	if (count == 0 && (ls_is_of_some(ctl) || !ctl->options.json))
		complain(ctl, ls_nothing(ctl));
	if (!ctl->options.json)
		complain_of_ledger(ctl);
	json_decref(runs);
	return count == 0 && ls_is_of_some(ctl) ? err_exit_status(ERR_NOT_FOUND) : 0;
}
