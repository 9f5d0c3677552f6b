/* SPDX-License-Identifier: MIT */
/* cancelled.c - the waiting tasks of this poll beside those of the last one. */
#include "slurm/pipe/cancelled.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/batch/sbatch_values.h"
#include "slurm/job_result.h"

struct tasks {
	int64_t *items;
	size_t count, cap;
};

/* A task that is sent back into the queue is submitted anew, and stays one of its array. */
struct array {
	int64_t job_id;
	char token[TOKEN_HEX + 1];
	char *waiting;       /* tasks that wait, as Slurm prints them; owned */
	struct tasks others; /* that have a record of their own */
	struct tasks gone;   /* that waited once, and were cancelled */
};

struct poll {
	struct array *arrays;
	size_t count, cap;
	int64_t made_ms;
};

static struct poll last, next;
static json_t *told; /* token → [task, …] and [[task, had nodes, start, end, controller], …] */
static int64_t min_job_age_ms = -1;

void cancelled_min_job_age(int64_t seconds)
{
	min_job_age_ms = seconds > 0 ? seconds * 1000 : INT64_MAX;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void add(struct tasks *to, int64_t task)
{
	if (to->count == to->cap) {
		to->cap = to->cap ? 2 * to->cap : 16;
		to->items = xrealloc(to->items, to->cap * sizeof(to->items[0]));
	}
	to->items[to->count++] = task;
}

/* "3,5-9,12-20:4%2" */
static void add_all(struct tasks *to, const char *text)
{
	struct sbatch_indices all = { 0 };

	if (sbatch_array(text, SBATCH_ARRAY_MAX, &all, NULL) < 0)
		return;
	for (size_t i = 0; i < all.count; i++)
		add(to, all.items[i]);
	free(all.items);
}

static bool is_cut(const char *text)
{
	return strstr(text, "...") != NULL;
}

static void sort(struct tasks *tasks)
{
	if (tasks->count > 1)
		qsort(tasks->items, tasks->count, sizeof(int64_t), compare_int64);
}

/* --- the arrays of a poll --------------------------------------------------------------------- */

static struct array *find(const struct poll *poll, int64_t job_id, const char *token)
{
	for (size_t i = poll->count; i-- > 0;) /* records of one array stand together, mostly */
		if (poll->arrays[i].job_id == job_id && strcmp(poll->arrays[i].token, token) == 0)
			return &poll->arrays[i];
	return NULL;
}

static struct array *find_or_add(struct poll *poll, const struct wire_row *row)
{
	struct array *array = find(poll, row->job_id, row->token);

	if (array)
		return array;
	if (poll->count == poll->cap) {
		poll->cap = poll->cap ? 2 * poll->cap : 16;
		poll->arrays = xrealloc(poll->arrays, poll->cap * sizeof(poll->arrays[0]));
	}
	array = &poll->arrays[poll->count++];
	*array = (struct array){ .job_id = row->job_id };
	memcpy(array->token, row->token, sizeof(array->token));
	return array;
}

void cancelled_turn(void)
{
	struct poll spare = last;

	for (size_t i = 0; i < last.count; i++) {
		free(last.arrays[i].waiting);
		free(last.arrays[i].others.items);
		free(last.arrays[i].gone.items);
	}
	last = next;
	next = spare;
	next.count = 0;
	next.made_ms = clock_mono_ms();
	json_decref(told);
	told = json_object();
}

void cancelled_same(void)
{
	next.made_ms = clock_mono_ms();
}

static json_t *list_of(const char *token)
{
	json_t *list = json_object_get(told, token);

	if (!list) {
		list = json_array();
		json_object_set_new(told, token, list);
	}
	return list;
}

static void add_waiting(struct array *array, const char *tasks)
{
	int len = (int)(is_cut(tasks) ? strlen(tasks) : strcspn(tasks, "%"));
	char *all = xasprintf("%s%s%.*s", array->waiting ? array->waiting : "",
			      array->waiting ? "," : "", len, tasks);

	free(array->waiting);
	array->waiting = all;
}

/* What Slurm does not start because of others that failed it may cancel itself. */
static bool is_cancelled(const struct wire_row *row)
{
	return (row->state & SJ_MASK) == SJ_CANCELLED && row->reason != SR_DEPENDENCY_NEVER;
}

void cancelled_note(const struct wire_row *row, const char *tasks)
{
	struct array *array = find_or_add(&next, row);
	bool is_one = text_is_digits(tasks);

	if ((row->state & SJ_MASK) == SJ_PENDING || is_cut(tasks)) {
		add_waiting(array, tasks);
		return;
	}
	add_all(&array->others, tasks);
	if (is_one && is_cancelled(row))
		json_array_append_new(list_of(row->token),
				      json_pack("[IbIII]", (json_int_t)strtoll(tasks, NULL, 10),
						row->nodes[0] != '\0', (json_int_t)row->start_time,
						(json_int_t)row->end_time,
						(json_int_t)row->controller_start));
}

/* --- what is gone ----------------------------------------------------------------------------- */

static void compare(const struct array *before, struct array *now)
{
	const char *waits = now->waiting ? now->waiting : "";
	struct tasks old = { 0 }, present = { 0 };

	if (!before->waiting || strcmp(before->waiting, waits) == 0 || is_cut(before->waiting) ||
	    is_cut(waits))
		return;
	add_all(&old, before->waiting);
	add_all(&present, waits);
	for (size_t i = 0; i < now->others.count; i++)
		add(&present, now->others.items[i]);
	sort(&present);
	for (size_t i = 0; i < old.count; i++)
		if (!is_among_int64(present.items, present.count, old.items[i]))
			add(&now->gone, old.items[i]);
	free(old.items);
	free(present.items);
}

void cancelled_tell(struct answer *a)
{
	bool is_watched = next.made_ms - last.made_ms < min_job_age_ms;

	for (size_t i = 0; i < next.count; i++) {
		struct array *now = &next.arrays[i];
		struct array *before = find(&last, now->job_id, now->token);

		if (!before)
			continue;
		now->gone = before->gone;
		before->gone = (struct tasks){ 0 };
		if (is_watched)
			compare(before, now);
		for (size_t k = 0; k < now->gone.count; k++)
			json_array_append_new(list_of(now->token),
					      json_pack("[I]", (json_int_t)now->gone.items[k]));
	}
	if (json_object_size(told) > 0)
		json_object_set(a->body, "cancelled", told);
}
