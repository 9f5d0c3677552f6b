/* SPDX-License-Identifier: MIT */
/* ls_team.c - lbctl ls --team: the runs of everybody, as their lbds tell the team. */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_row.h"
#include "ctl/team/team.h"

static size_t print_list(const struct ctl *ctl)
{
	json_t *list = json_array(), *run;
	size_t i, count;

	for (size_t n = 0; n < ctl->team.count; n++) {
		const struct team_export *export = &ctl->team.exports[n];

		json_array_foreach(export->runs, i, run) {
			if (!run_is_listed(ctl, run, export->user))
				continue;
			js_set_str(run, "user", export->user);
			js_set_time(run, "exported", export->written_ms);
			js_set_bool(run, "stale", team_is_stale(export));
			json_array_append(list, run);
		}
	}
	count = json_array_size(list);
	print_json(list);
	return count;
}

static void add_runs(const struct ctl *ctl, struct table *table, size_t n)
{
	json_t *run;
	size_t i;

	json_array_foreach(ctl->team.exports[n].runs, i, run) {
		struct cell *row;

		if (!run_is_listed(ctl, run, ctl->team.exports[n].user))
			continue;
		row = table_row(table);
		row[0].text = clean_copy(ctl->team.exports[n].user, &ctl->out);
		fill_run(row + 1, run, &ctl->out);
	}
}

/* The columns of `ls`, and whose the run is in front of them. */
static size_t print_runs(const struct ctl *ctl)
{
	struct column columns[1 + RUN_COLUMNS] = { { .title = "OWNER", .rank = 0 } };
	struct table table;
	size_t count;

	memcpy(columns + 1, run_columns, sizeof(run_columns));
	table_init(&table, columns, 1 + RUN_COLUMNS);
	for (size_t n = 0; n < ctl->team.count; n++)
		add_runs(ctl, &table, n);
	count = (size_t)table.row_count;
	if (count > 0)
		table_print(&table, &ctl->out, stdout);
	table_fini(&table);
	return count;
}

int ls_team(struct ctl *ctl, struct err *err)
{
	size_t count;

	if (ctl->options.all)
		return err_set(err, ERR_USAGE,
			       "ls: --all and --team do not go together: of colleagues' runs only "
			       "those of the last 7 days are known");
	if (team_load(ctl, err) < 0)
		return -1;
	for (size_t n = 0; n < ctl->team.count; n++) {
		team_tell_stale(ctl, &ctl->team.exports[n]);
		team_tell_left_out(ctl, &ctl->team.exports[n]);
	}
	count = ctl->options.json ? print_list(ctl) : print_runs(ctl);
	if (count > 0)
		return 0;
	complain(ctl, "nobody of the team tells of any such run");
	return ls_is_of_some(ctl) ? err_exit_status(ERR_NOT_FOUND) : 0;
}
