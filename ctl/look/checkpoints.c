/* SPDX-License-Identifier: MIT */
/* checkpoints.c - lbctl checkpoints: those of a run that lie on disk, whatever trainer wrote them:
 * which are whole, and of the others why not. lbctl looks itself, so that a slow disk keeps nobody
 * but who asks waiting. */
#include <dirent.h>
#include <stdlib.h>

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/handed.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_space.h"
#include "ctl/team/ask.h"

enum { SHOWN = 20, SET_ASIDE_MAX = 1000 };
static const char set_aside[] = "set-aside-";

/* --- looking ---------------------------------------------------------------------------------- */

struct place {
	const struct ctl *ctl;
	const char *run_dir;
	struct checkpoint_rules *rules;
	struct handed handed; /* what launches from those in the folder at hand came to */
	json_t *list;         /* what was found; owned */
	struct err *err;
};

static json_t *view(const struct checkpoint *c, const struct handed *handed)
{
	char *suspicion = c->is_valid ? handed_why(handed, c) : NULL;
	json_t *o = json_object();

	js_set_int(o, "step", c->step < 0 ? JS_NONE : c->step);
	json_object_set_new(o, "path", js_bytes(c->path));
	js_set_str(o, "layout", c->layout);
	js_set_int(o, "bytes", c->bytes);
	js_set_time(o, "time", c->time_ms);
	js_set_bool(o, "valid", c->is_valid);
	js_set_bool(o, "suspect", suspicion != NULL);
	js_set_str(o, "why", c->is_valid ? suspicion : c->why);
	free(suspicion);
	return o;
}

/* A folder that is not there has none. */
static int add_folder(const struct place *place, const char *folder)
{
	struct look look = { .is_deep = place->ctl->options.deep };
	struct checkpoint_list found;

	if (checkpoints_list(place->rules, folder, &look, &found, place->err) < 0)
		return -1;
	for (size_t i = 0; i < found.count; i++)
		json_array_append_new(place->list, view(&found.items[i], &place->handed));
	checkpoint_list_clear(&found);
	return 0;
}

/* Those that a restart from an earlier one left behind. */
static int add_set_aside(const struct place *place, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int rc = 0;

	for (int n = 0; dir && rc == 0 && n < SET_ASIDE_MAX && (entry = readdir(dir));) {
		char *path;

		if (!text_begins_with(entry->d_name, set_aside))
			continue;
		n++;
		path = path_join("%s/%s", folder, entry->d_name);
		rc = add_folder(place, path);
		free(path);
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int look_in(const char *folder, const char *handed, void *arg)
{
	struct place *place = arg;
	int rc;

	handed_load(&place->handed, place->run_dir, handed);
	rc = add_folder(place, folder);
	if (rc == 0 && place->ctl->options.all)
		rc = add_set_aside(place, folder);
	handed_clear(&place->handed);
	return rc;
}

static json_t *look_at(const struct ctl *ctl, const char *run_dir, const char *folder,
		       const json_t *attempt, struct err *err)
{
	struct place place = {
		.ctl = ctl,
		.run_dir = run_dir,
		.rules = run_checkpoint_rules(attempt, err),
		.list = json_array(),
		.err = err,
	};
	int rc = -1;

	if (place.rules)
		rc = run_checkpoint_folders(folder, look_in, &place);
	checkpoint_rules_destroy(place.rules);
	if (rc == 0)
		return place.list;
	json_decref(place.list);
	return NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

enum { CP_STEP, CP_SIZE, CP_AGE, CP_LAYOUT, CP_VALID, CP_PATH, CP_COUNT };
static const struct column columns[CP_COUNT] = {
	[CP_STEP] = { .title = "STEP", .right = true, .rank = 0 },
	[CP_SIZE] = { .title = "SIZE", .right = true, .rank = 3 },
	[CP_AGE] = { .title = "AGE", .right = true, .rank = 2 },
	[CP_LAYOUT] = { .title = "LAYOUT", .rank = 4 },
	[CP_VALID] = { .title = "VALID", .rank = 1 },
	[CP_PATH] = { .title = "PATH, OR WHY NOT", .runs_on = true, .rank = 0 },
};

static void fill_row(struct cell *row, const json_t *c, const struct style *style)
{
	bool is_valid = js_bool(c, "valid", false), is_suspect = js_bool(c, "suspect", false);
	int64_t written_ms = time_ms(c, "time");
	char text[2 * NUMBER_TEXT_MAX], age[CLOCK_TEXT_MAX];
	char *path = js_bytes_take(json_object_get(c, "path"));

	row[CP_STEP].text = xstrdup(step_text(js_int(c, "step", -1), -1, text));
	row[CP_SIZE].text = xstrdup(size_text(js_int(c, "bytes", 0), text));
	row[CP_AGE].text = xstrdup(
		duration_text(written_ms ? clock_wall_ms() - written_ms : -1, age));
	row[CP_LAYOUT].text = clean_copy(js_str(c, "layout", NULL), style);
	row[CP_VALID].text = xstrdup(is_suspect ? "suspect" : is_valid ? "yes" : "no");
	row[CP_VALID].color = is_valid && !is_suspect ? COLOR_GOOD : COLOR_BAD;
	row[CP_PATH].text = clean_copy(js_str(c, "why", path), style);
	free(path);
}

static void print_table(struct ctl *ctl, json_t *list)
{
	size_t count = json_array_size(list);

	if (!ctl->options.all) {
		while (json_array_size(list) > SHOWN)
			json_array_remove(list, json_array_size(list) - 1);
	}
	print_rows(ctl, columns, CP_COUNT, list, fill_row);
	if (json_array_size(list) < count)
		hint(ctl, "%zu older ones: lbctl checkpoints --all %s",
		     count - json_array_size(list), ctl->operands.words[0]);
}

static void say_none(const struct ctl *ctl, const char *folder)
{
	char *text = xasprintf(
		"no checkpoints in %s%s", folder,
		ctl->options.all ? "" : "; --all shows those that a restart set aside, too");

	complain(ctl, text);
	free(text);
}

int checkpoints_run(struct ctl *ctl, struct err *err)
{
	json_t *run = ask_about(ctl, VERB_STATUS, ctl->operands.words[0], NULL, err), *attempt,
	       *list;
	const char *run_dir = js_str(run, "dir", "");
	char *folder;

	if (!run)
		return -1;
	attempt = run_space_attempt(run_dir);
	folder = run_checkpoint_folder(attempt, run_dir);
	list = look_at(ctl, run_dir, folder, attempt, err);
	if (list && ctl->options.json)
		print_json(json_incref(list));
	else if (list && json_array_size(list) > 0)
		print_table(ctl, list);
	else if (list)
		say_none(ctl, folder);
	free(folder);
	json_decref(attempt);
	json_decref(run);
	json_decref(list);
	return list ? 0 : -1;
}
