/* SPDX-License-Identifier: MIT */
/* saves.c - the checkpoints that a launch writes: seen, told, sealed; and what a launch says of the
 * one that it was started from. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/checkpoint/steps.h"
#include "worker/lbrun/end/task_end.h"
#include "worker/lbrun/checkpoint/seals.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/watch/space.h"

enum {
	ROOM_LOOK_MS = 1000,
	QUIET_MS = 2000,     /* unchanged for so long: nobody writes it any more */
	LOOKED_AT_AGAIN = 3, /* of those known already: they may be written again */
};

static void remember(struct shepherd *s)
{
	struct err why = { 0 };

	if (!shepherd_may_remember(&s->facts, &s->policy))
		return;
	if (handed_save(&s->handed, &why) < 0)
		output_say(&s->output, "what came of earlier launches is not remembered: %s",
			   why.text);
}

const char *saves_task(const struct shepherd *s)
{
	return s->params.is_script ? task_end_number() : NULL;
}

void saves_open(struct shepherd *s)
{
	const char *task = saves_task(s);
	char *name = task ? path_join("resumes-%s.json", task) : xstrdup(HANDED_FILE);

	handed_load(&s->handed, s->params.run_dir, name);
	if (strcmp(s->params.resume, "latest") != 0) {
		handed_forget(&s->handed);
		if (strcmp(s->params.resume, "scratch") == 0)
			s->handed.launches = 0;
		remember(s);
	}
	s->seals = path_join("%s/seals", s->params.run_dir);
	free(name);
}

void saves_close(struct shepherd *s)
{
	for (size_t i = 0; i < s->seen_count; i++)
		free(s->seen[i].path);
	free(s->seen);
	s->seen = NULL;
	s->seen_count = 0;
	handed_clear(&s->handed);
	free(s->seals);
	s->seals = NULL;
	checkpoint_list_clear(&s->seal_next);
	checkpoint_rules_destroy(s->rules);
	s->rules = NULL;
}

/* --- what is known already -------------------------------------------------------------------- */

static struct seen *find_seen(struct shepherd *s, const char *path)
{
	for (size_t i = s->seen_count; i-- > 0;) {
		if (strcmp(s->seen[i].path, path) == 0)
			return &s->seen[i];
	}
	return NULL;
}

static struct seen *add_seen(struct shepherd *s, const struct checkpoint *c, bool is_recorded)
{
	struct seen *seen = find_seen(s, c->path);

	if (!seen) {
		s->seen = xrealloc(s->seen, (s->seen_count + 1) * sizeof(s->seen[0]));
		seen = &s->seen[s->seen_count++];
		*seen = (struct seen){ .path = xstrdup(c->path) };
	}
	seen->stamp = c->stamp;
	seen->is_recorded = is_recorded;
	return seen;
}

/* --- before a launch -------------------------------------------------------------------------- */

/* Those that are shared, and those that are in the stage alone, too; but parts of some are no match
 * for the whole ones. */
static int find_all(const struct shepherd *s, struct checkpoint_list *list)
{
	bool is_in_both = stage_is_on(&s->stage) && !stage_has_parts(&s->stage);
	const char *const folders[] = { is_in_both ? s->stage.folder : s->params.checkpoint_dir,
					is_in_both ? s->params.checkpoint_dir : NULL, NULL };

	return checkpoints_find_in(s->rules, folders, list, NULL);
}

static void see_all(struct shepherd *s)
{
	struct checkpoint_list list;
	struct look look = { 0 };

	if (find_all(s, &list) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		if (i < LOOKED_AT_AGAIN)
			checkpoint_check(s->rules, &list, i, &look);
		if (i < LOOKED_AT_AGAIN || !find_seen(s, list.items[i].path))
			add_seen(s, &list.items[i], true);
	}
	checkpoint_list_clear(&list);
}

/* Scripts write below it without making it first. One that cannot be made is theirs to meet. */
static void make_folder(struct shepherd *s)
{
	struct err why = { 0 };

	if (folder_make(s->params.checkpoint_dir, 0750, &why) < 0)
		output_say(&s->output, "no folder for checkpoints: %s", why.text);
}

void saves_begin(struct shepherd *s)
{
	make_folder(s);
	if (s->search.found == 1) {
		s->handed.has_had = true;
		handed_begin(&s->handed, s->search.path, s->search.stamp, s->search.step);
	}
	see_all(s);
	s->handed.is_first = false;
	s->handed.launches++;
	remember(s);
}

/* --- while it runs ---------------------------------------------------------------------------- */

void saves_trust(struct shepherd *s)
{
	handed_good(&s->handed, s->search.path, s->search.stamp);
	remember(s);
}

/* When something of the launch ended last, as far as is known: a rank, or what a script itself
 * starts again. */
static int64_t last_end_ms(const struct shepherd *s)
{
	const struct complaints *c = &s->complaints;

	return s->facts.launch.is_caught && c->raised_ms > c->ends.last_ms ? c->raised_ms
									   : c->ends.last_ms;
}

void saves_step(struct shepherd *s, int64_t rank, const json_t *line)
{
	int64_t step = js_int(line, "step", -1);

	s->handed.has_steps |= step >= 0;
	/* other ranks tell their times alone */
	if (rank <= 0 || json_object_get(line, "target_step"))
		s->facts.launch.target_told = js_int(line, "target_step", -1);
	launch_told_step(&s->facts.launch, step, last_end_ms(s), clock_mono_ms());
}

/* Is there room for another one like it? */
static void check_space(struct shepherd *s, const char *checkpoint)
{
	struct space need = space_used(checkpoint);
	struct space have = space_free(checkpoint);
	char text[120];
	bool is_short = space_is_short(&need, &have, text, sizeof(text));

	if (is_short && !s->is_space_reported) {
		journal_note(&s->journal, s->facts.launch.number, "no_space", "%s: %s",
			     s->params.checkpoint_dir, text);
		output_say(&s->output, "the next checkpoint may not fit: %s", text);
	}
	s->is_space_reported = is_short;
}

/* Of a trainer that died; while it waits, again and again. */
void saves_try_room(struct shepherd *s)
{
	bool was_out = s->is_out_of_room;
	struct err why = { 0 };

	s->room_look_ms = clock_mono_ms() + ROOM_LOOK_MS;
	s->is_out_of_room = space_try(s->params.checkpoint_dir, &why) < 0 && err_is_passing(&why);
	if (s->is_out_of_room && !was_out) {
		journal_note(&s->journal, s->facts.launch.number, "no_space", "%s: %s",
			     s->params.checkpoint_dir, strerror(why.sys));
		output_say(&s->output, "no checkpoint can be written: %s", strerror(why.sys));
	}
	if (was_out && !s->is_out_of_room)
		output_say(&s->output, "checkpoints can be written again");
}

/* What the trainer was started from, until it shows that it has loaded it; NULL = nothing. */
static const char *loading(const struct shepherd *s)
{
	return s->search.found == 1 && !s->facts.launch.has_come_further ? s->search.path : NULL;
}

/* It is progress for the launch; for all others it counts once it is drained. */
static void record_staged(struct shepherd *s, int64_t step, bool is_time)
{
	asking_saved(&s->asking, step, clock_mono_ms());
	launch_saved(&s->facts.launch, step, is_time);
	stage_look(&s->stage, loading(s));
}

static void record(struct shepherd *s, const struct checkpoint *c, int64_t step)
{
	bool is_time = name_step_is_time(path_base(c->path), step);
	struct told_checkpoint told = {
		.path = c->path,
		.layout = c->layout,
		.step = step,
		.bytes = c->bytes,
		.is_valid = c->is_valid,
		.text = c->is_valid ? "" : c->why,
	};

	if (c->is_valid && stage_holds(&s->stage, c->path)) {
		record_staged(s, step, is_time);
		return;
	}
	told.is_progress = c->is_valid && launch_saved(&s->facts.launch, step, is_time);
	record_checkpoint(s, &told);
	if (!c->is_valid)
		return;
	asking_saved(&s->asking, step, clock_mono_ms());
	if (!s->handed.has_had) {
		s->handed.has_had = true;
		remember(s);
	}
	check_space(s, c->path);
}

/* Nobody writes it any more, as far as that can be seen. */
static bool is_quiet(const struct checkpoint *c, const struct seen *seen)
{
	return (seen && seen->stamp == c->stamp) || clock_wall_ms() - c->time_ms > QUIET_MS;
}

static void look_at(struct shepherd *s, struct checkpoint_list *list, size_t index, bool is_last)
{
	struct checkpoint *c = &list->items[index];
	struct seen *seen = find_seen(s, c->path);
	struct look look = { 0 };

	if (seen && seen->is_recorded && index >= LOOKED_AT_AGAIN)
		return;
	checkpoint_check(s->rules, list, index, &look);
	if (seen && seen->is_recorded && seen->stamp == c->stamp)
		return;
	if (!c->is_valid || !(is_last || is_quiet(c, seen))) {
		add_seen(s, c, false);
		return;
	}
	add_seen(s, c, true);
	record(s, c, c->step);
}

/* Takes the list. */
static void look_at_all(struct shepherd *s, struct checkpoint_list *list, bool is_last)
{
	for (size_t i = list->count; i-- > 0;)
		look_at(s, list, i, is_last);
	checkpoint_list_clear(list);
}

void saves_look(struct shepherd *s, bool is_last)
{
	struct checkpoint_list list;

	if (stage_has_parts(&s->stage) &&
	    checkpoints_find(s->rules, s->stage.folder, &list, NULL) == 0)
		look_at_all(s, &list, is_last);
	if (find_all(s, &list) == 0)
		look_at_all(s, &list, is_last);
}

const char *saves_folder(const struct shepherd *s)
{
	return stage_is_on(&s->stage) ? s->stage.folder : s->params.checkpoint_dir;
}

/* Digests of the own trainer's are in its manifest. While one is read for its digests, the newest
 * told since then waits with the times that its files had: one changed before its turn gets none.
 * Takes the list. */
static void seal(struct shepherd *s, struct checkpoint_list *list)
{
	const struct checkpoint *c = list->items;
	bool must_wait = s->seal_pid > 0;
	struct err why = { 0 };

	if (strcmp(c->layout, "lbworker") != 0 && seals_put(s->seals, c, &s->seal_pid, &why) < 0) {
		journal_note(&s->journal, s->facts.launch.number, "no_seal", "%s", why.text);
		must_wait = false;
	}
	if (must_wait) {
		checkpoint_list_clear(&s->seal_next);
		s->seal_next = *list;
		*list = (struct checkpoint_list){ 0 };
	}
	checkpoint_list_clear(list);
}

void saves_sealed(struct shepherd *s)
{
	struct checkpoint_list next = s->seal_next;

	s->seal_pid = 0;
	s->seal_next = (struct checkpoint_list){ 0 };
	if (next.count > 0)
		seal(s, &next);
}

void saves_told(struct shepherd *s, const char *path, int64_t step)
{
	struct checkpoint_list list;
	struct look look = { 0 };
	struct err why = { 0 };
	struct told_checkpoint gone = {
		.path = path, .layout = "", .step = step, .bytes = -1, .text = why.text
	};

	if (checkpoint_at(s->rules, path, &look, &list, &why) < 0) {
		record_checkpoint(s, &gone);
		return;
	}
	add_seen(s, list.items, true);
	record(s, list.items, step);
	if (list.items->is_valid && !stage_holds(&s->stage, path))
		seal(s, &list);
	else
		checkpoint_list_clear(&list);
}

/* Its manifest showed that every byte arrived. */
void saves_drained(struct shepherd *s, const char *path)
{
	struct checkpoint_list list;
	struct look look = { 0 };

	if (find_all(s, &list) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		struct checkpoint *c = &list.items[i];

		if (strcmp(c->path, path) != 0)
			continue;
		checkpoint_check(s->rules, &list, i, &look);
		add_seen(s, c, true);
		record(s, c, c->step);
	}
	checkpoint_list_clear(&list);
	if (checkpoint_at(s->rules, path, &look, &list, NULL) == 0)
		seal(s, &list);
}

/* --- after it ended --------------------------------------------------------------------------- */

static void blame_checkpoint(struct shepherd *s)
{
	const struct handed_item *item;

	handed_failed(&s->handed, s->search.path, s->search.stamp, s->facts.ending.text);
	item = handed_suspect(&s->handed, s->search.path, s->search.stamp);
	if (!item || item->failures < 2)
		return;
	journal_note(&s->journal, s->facts.launch.number, "same_failure",
		     "%s: %lld launches from it failed before any new step, this one with: %s",
		     s->search.path, (long long)item->failures, s->facts.ending.text);
	output_say(&s->output, "%s: %lld launches from it failed before any new step",
		   s->search.path, (long long)item->failures);
}

/* The newest restart.rollback of them are held to be as bad as where they led. */
static void roll_back(struct shepherd *s)
{
	struct checkpoint_list list;
	struct look look = { 0 };
	int64_t left = s->params.rollback;

	s->handed.has_rolled_back = true;
	if (find_all(s, &list) < 0)
		return;
	for (size_t i = 0; i < list.count && left > 0; i++) {
		struct checkpoint *c = &list.items[i];

		checkpoint_check(s->rules, &list, i, &look);
		if (!c->is_valid || handed_suspect(&s->handed, c->path, c->stamp))
			continue;
		handed_begin(&s->handed, c->path, c->stamp, c->step);
		handed_failed(&s->handed, c->path, c->stamp, "training diverged after it");
		left--;
	}
	checkpoint_list_clear(&list);
	journal_note(&s->journal, s->facts.launch.number, "rollback",
		     "training diverged: %lld checkpoints back, once",
		     (long long)s->params.rollback);
}

void saves_judge(struct shepherd *s, const struct next *end)
{
	const struct launch *l = &s->facts.launch;

	if (end->blames)
		blame_checkpoint(s);
	if (end->rolls_back)
		roll_back(s);
	if (l->step_told > s->handed.best_told)
		s->handed.best_told = l->step_told;
	if (l->first_told >= 0 &&
	    (s->handed.first_told < 0 || l->first_told < s->handed.first_told))
		s->handed.first_told = l->first_told;
	remember(s);
}
