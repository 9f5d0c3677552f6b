/* SPDX-License-Identifier: MIT */
/* disk.c - files that survive a crash as far as they were synced. */
#include "tests/sim/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "tests/sim/sim.h"
#include "worker/lbrun/checkpoint/choice.h"

char saved_path[] = "step"; /* a checkpoint has a path that could be freed: never changed */

static const struct handed no_handed = { .is_first = true, .first_told = -1, .best_told = -1 };

void disk_init(struct disk *disk)
{
	*disk = (struct disk){ 0 };
	for (size_t i = 0; i < sizeof(disk->runs) / sizeof(disk->runs[0]); i++) {
		disk->runs[i].checkpoint_step = -1;
		disk->runs[i].handed = no_handed;
	}
}

void disk_fini(struct disk *disk)
{
	for (size_t i = 0; i < sizeof(disk->runs) / sizeof(disk->runs[0]); i++) {
		struct run_files *run = &disk->runs[i];

		for (size_t n = 0; n < run->count; n++) {
			if (run->attempts[n])
				free(run->attempts[n]->records);
			free(run->attempts[n]);
		}
		free(run->attempts);
		handed_clear(&run->handed);
	}
	*disk = (struct disk){ 0 };
}

struct folder *disk_folder(const struct disk *disk, int run, int64_t number)
{
	const struct run_files *files = &disk->runs[run];

	return number >= 1 && (size_t)number <= files->count ? files->attempts[number - 1] : NULL;
}

static void make_room(struct run_files *files, int64_t number)
{
	if ((size_t)number <= files->count)
		return;
	files->attempts = xrealloc(files->attempts, (size_t)number * sizeof(struct folder *));
	while (files->count < (size_t)number)
		files->attempts[files->count++] = NULL;
}

struct folder *disk_make_folder(struct disk *disk, int run, int64_t number, const char *token,
				int64_t delay_ms)
{
	struct run_files *files = &disk->runs[run];
	struct folder *folder;

	make_room(files, number);
	folder = files->attempts[number - 1];
	if (folder == NULL) {
		folder = files->attempts[number - 1] = xcalloc(1, sizeof(*folder));
		folder->run = run;
		folder->number = number;
		folder->delay_ms = delay_ms;
	}
	snprintf(folder->token, sizeof(folder->token), "%s", token);
	return folder;
}

int64_t folder_append(struct folder *folder, const struct spool_record *record)
{
	if (folder->count == folder->cap) {
		folder->cap = folder->cap ? 2 * folder->cap : 16;
		folder->records = xrealloc(folder->records, folder->cap * sizeof(*folder->records));
	}
	folder->records[folder->count++] = *record;
	return (int64_t)folder->count;
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static void drop_oldest(struct sim *sim, int run, struct run_files *files)
{
	const struct saved *last = &files->saved[--files->saved_count];

	if (last->is_whole)
		sim_fact(sim, FACT_DROPPED, run, 0, (int64_t)last->stamp, last->step);
}

void disk_save(struct sim *sim, int run, int64_t step, bool is_whole, bool is_bad)
{
	struct run_files *files = &sim->disk.runs[run];
	struct saved new = {
		.step = step, .stamp = ++sim->disk.stamps, .is_whole = is_whole, .is_bad = is_bad
	};
	int at = 0;

	if (files->saved_count == SAVED_MAX)
		drop_oldest(sim, run, files);
	while (at < files->saved_count && files->saved[at].step > step)
		at++;
	memmove(&files->saved[at + 1], &files->saved[at],
		(size_t)(files->saved_count - at) * sizeof(new));
	files->saved[at] = new;
	files->saved_count++;
	if (is_whole && step > files->checkpoint_step)
		files->checkpoint_step = step;
	if (is_whole)
		sim_fact(sim, FACT_SAVED, run, 0, (int64_t) new.stamp, step);
}

int disk_search(const struct run_files *files, const struct handed *handed,
		const struct saved **found, int64_t *newest_step)
{
	struct checkpoint items[SAVED_MAX] = { 0 };
	struct checkpoint_list list = { .items = items, .count = (size_t)files->saved_count };
	int64_t index;

	*newest_step = -1;
	for (int i = 0; i < files->saved_count; i++) {
		const struct saved *saved = &files->saved[i];

		items[i] = (struct checkpoint){ .path = saved_path,
						.step = saved->step,
						.stamp = saved->stamp,
						.is_checked = true,
						.is_valid = saved->is_whole,
						.is_unfinished = !saved->is_whole };
		if (saved->is_whole && saved->step > *newest_step)
			*newest_step = saved->step;
	}
	handed_mark(handed, &list);
	index = checkpoint_choose(&list, handed);
	*found = index >= 0 ? &files->saved[index] : NULL;
	return index >= 0 ? 1 : index == CHOICE_SCRATCH ? 0 : -1;
}

static void copy_handed(const struct handed *from, struct handed *to)
{
	*to = *from;
	for (int i = 0; i < to->count; i++)
		to->items[i].path = xstrdup(from->items[i].path);
}

void disk_load_handed(const struct run_files *files, struct handed *out)
{
	copy_handed(&files->handed, out);
}

void disk_save_handed(struct run_files *files, const struct handed *handed)
{
	handed_clear(&files->handed);
	copy_handed(handed, &files->handed);
}

/* --- the spool as lbd reads it ---------------------------------------------------------------- */

static json_t *nodes_of(const struct spool_record *r)
{
	json_t *nodes = json_pack("[o]", json_sprintf("n%d", (int)r->step));

	for (int i = 0; r->others && i < FAR_RANKS; i++)
		json_array_append_new(nodes, json_sprintf("n%d", r->others[i]));
	return nodes;
}

static json_t *line_of(const struct spool_record *r)
{
	switch (r->kind) {
	case SPOOL_ATTEMPT_START:
		return json_pack("{s:s, s:o, s:o}", "type", "attempt_start", "host",
				 json_sprintf("n%d", (int)r->step), "nodes", nodes_of(r));
	case SPOOL_NODE_BROKEN:
		return json_pack("{s:s, s:s, s:o}", "type", "note", "kind", "preflight_node",
				 "text", json_sprintf("n%d: slow product", (int)r->step));
	case SPOOL_LAUNCH_START:
		return json_pack("{s:s, s:I, s:i, s:I}", "type", "launch_start", "number",
				 (json_int_t)r->launch, "pid", 7, "resumed_from_step",
				 (json_int_t)r->step);
	case SPOOL_STEP:
		return json_pack("{s:s, s:I, s:f}", "type", "step", "step", (json_int_t)r->step,
				 "loss", 2.5);
	case SPOOL_CHECKPOINT:
		return json_pack("{s:s, s:I, s:o, s:b, s:b, s:s}", "type", "checkpoint_valid",
				 "step", (json_int_t)r->step, "path",
				 json_sprintf("step-%d", (int)r->step), "valid", 1, "progress",
				 r->has_progress, "text", "");
	case SPOOL_LAUNCH_END:
		return json_pack("{s:s, s:I, s:s, s:i, s:b, s:b, s:s, s:o}", "type", "launch_end",
				 "number", (json_int_t)r->launch, "cause", cause_name(r->cause),
				 "exit_code", r->exit_code, "progress", r->has_progress, "counts",
				 r->counts, "text", "", "node",
				 r->node < 0 ? json_string("") : json_sprintf("n%d", r->node));
	case SPOOL_ATTEMPT_END:
		break;
	}
	return json_pack("{s:s, s:s}", "type", "attempt_end", "cause", cause_name(r->cause));
}

static int deliver(const struct folder *folder, size_t i,
		   int (*on_line)(const struct spool_line *line, void *arg), void *arg)
{
	const struct spool_record *r = &folder->records[i];
	struct spool_line line = {
		.seq = (int64_t)i + 1,
		.time_ms = (int64_t)EPOCH_S * 1000 + r->at_ms,
		.launch = r->launch,
		.from_trainer = r->kind == SPOOL_STEP,
		.line = line_of(r),
	};
	int rc = on_line(&line, arg);

	json_decref(line.line);
	return rc;
}

int64_t folder_read(const struct folder *folder, int64_t now_ms, int64_t *offset, int64_t max_bytes,
		    int (*on_line)(const struct spool_line *line, void *arg), void *arg,
		    struct err *err)
{
	int64_t start = *offset;

	for (size_t i = (size_t)(start / SPOOL_RECORD_BYTES); i < folder->count; i++) {
		if (folder->records[i].seen_ms + folder->delay_ms > now_ms ||
		    (*offset > start && *offset + SPOOL_RECORD_BYTES > start + max_bytes))
			break;
		if (deliver(folder, i, on_line, arg) != 0)
			return err_set(err, ERR_INTERNAL, "the reader stopped");
		*offset += SPOOL_RECORD_BYTES;
	}
	return *offset - start;
}
