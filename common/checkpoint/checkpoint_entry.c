/* SPDX-License-Identifier: MIT */
/* checkpoint_entry.c - is a file or folder a checkpoint, by its name and by where it lies? */
#include "common/checkpoint/checkpoint_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/contents.h"
#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/siblings.h"
#include "common/checkpoint/steps.h"
#include "common/checkpoint/whole.h"

static int64_t step_in_file(const char *folder, const char *name)
{
	char *path = path_join("%s/%s", folder, name);
	int64_t step = file_step_inside(path);

	free(path);
	return step;
}

/* --- files ------------------------------------------------------------------------------------ */

bool checkpoint_is_best(const char *name)
{
	return strcasestr(name, "best");
}

bool checkpoint_is_copy(const char *name)
{
	return checkpoint_is_best(name) || text_ends_with(name, ".bkp") || name_is_previous(name);
}

static const struct layout *file_row(const struct checkpoint_rules *rules, const char *name,
				     int64_t *step)
{
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind == LAYOUT_FILE && (!rules->row || rules->row == row) &&
		    layout_matches(row, name, step))
			return row;
	}
	return NULL;
}

/* llm.c's "model_00000010.bin" has its step where its row says; all others where names tell it. */
bool checkpoint_is_file(const struct checkpoint_rules *rules, const struct checkpoint_place *at,
			const char *name, int64_t *step, bool *is_alone)
{
	const struct layout *row = file_row(rules, name, step);
	bool has_step, is_in_epoch = false;

	if (!row || name_is_shard(name) || (!rules->row && name_is_other_file(name)))
		return false;
	if (!rules->row && !at->is_for_checkpoints)
		return false;
	has_step = name_has_number(name) || row->has_step_inside;
	if (name_is_data(name) ? !has_step && !name_is_single(name) && !name_tells_fraction(name)
			       : !name_has_word(name))
		return false;
	if (*step < 0)
		*step = step_beside_siblings(at->path, name, &is_in_epoch);
	*is_alone = row->has_step_inside || *step < 0 || is_in_epoch || checkpoint_is_copy(name);
	if (*step < 0 || name_tells_slot(name) || (row->has_step_inside && !strstr(name, "step"))) {
		int64_t inside = step_in_file(at->path, name);

		*step = inside >= 0 ? inside : *step;
	}
	return true;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Called as only checkpoints are. *step: -1 = the row does not say which number it is. */
static bool has_special_row(const struct checkpoint_rules *rules, const char *name, int64_t *step)
{
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind != LAYOUT_FOLDER || (rules->row && rules->row != row))
			continue;
		for (size_t n = 0; row->names[n]; n++) {
			bool is_any = strncmp(row->names[n], "*#", 2) == 0;

			if ((is_any && !rules->row) || !strchr(row->names[n], '#') ||
			    strcmp(row->names[n], "*_#") == 0 ||
			    !layout_name_matches(row->names[n], name, step))
				continue;
			*step = is_any ? -1 : *step;
			return true;
		}
	}
	return false;
}

/* Lightning's, in parts of the ranks: "last.ckpt/", "epoch=1-val_loss=0.3.ckpt/". A name without the
 * word does not tell the step, a file in it does. */
static bool is_in_parts(const struct checkpoint_rules *rules, const char *name, const char *path,
			int64_t *step)
{
	static const char *const signs[] = { "meta.pt", ".metadata", "__0_0.distcp", "checkpoint" };
	static const char *const tellers[] = {
		"meta.pt",
		"checkpoint/mp_rank_00_model_states.pt",
		"checkpoint/zero_pp_rank_0_mp_rank_00_model_states.pt",
	};
	bool is = false;

	if (!layout_name_matches("*.ckpt", name, NULL) ||
	    (rules->row && !layout_matches(rules->row, name, NULL)))
		return false;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		is |= folder_holds(path, signs[i]);
	*step = strstr(name, "step") ? step_in_name(name) : -1;
	for (size_t i = 0; is && *step < 0 && i < sizeof(tellers) / sizeof(tellers[0]); i++)
		*step = step_in_file(path, tellers[i]);
	*step = *step < 0 ? step_in_name(name) : *step;
	return is;
}

/* Hydra's "multirun/2026-11-27/10-15-00/3/checkpoints": a job of a sweep. */
static bool is_for_a_job(const char *name, const char *path)
{
	return text_is_digits(name) &&
	       (folder_holds(path, "checkpoints") || folder_holds(path, ".hydra"));
}

/* A name that ends in a number, and says no more. Further down only dates are looked at: Dreamer's
 * "ckpt/20261128T101500F123456-000000000020". */
static bool is_by_contents(const struct checkpoint_place *at, const char *name, const char *path)
{
	if (at->depth > 0)
		return name_begins_with_time(name) && name_has_checkpoint(path_base(at->path)) &&
		       contents_are_unnumbered_data(path);
	return !contents_are_checkpoints(path) && !contents_are_settings(path);
}

/* Lightning's version_0, dates and the like hold checkpoints, but are none. */
bool checkpoint_is_folder(const struct checkpoint_rules *rules, const struct checkpoint_place *at,
			  const char *name, const char *path, int64_t *step)
{
	static const char *const unnumbered[] = { "last",       "latest", "current", "final",
						  "checkpoint", "ckpt",   "state" };

	if (is_in_parts(rules, name, path, step))
		return true;
	if (!rules->row && is_for_a_job(name, path))
		return false;
	*step = -1;
	if (has_special_row(rules, name, step)) {
		*step = *step >= 0 ? *step : step_beside_siblings(at->path, name, NULL);
		return true;
	}
	if (rules->row &&
	    (rules->row->kind == LAYOUT_FILE || !layout_matches(rules->row, name, step)))
		return false;
	/* Ray's "checkpoint_2026-11-28_10-15-00.123456" lies in a folder of any name, but for one
	 * below others: that is a copy of these */
	if (!rules->row && !at->is_for_checkpoints &&
	    (at->is_under || !(name_has_checkpoint(name) && name_tells_time(name))))
		return false;
	for (size_t i = 0; i < sizeof(unnumbered) / sizeof(unnumbered[0]); i++) {
		if (strcmp(name, unnumbered[i]) == 0)
			return contents_are_unnumbered_data(path);
	}
	if (!name_ends_in_number(name) || strncmp(name, "version_", 8) == 0 ||
	    name_tells_type(name) ||
	    (name_tells_time(name) && (contents_have_state(path) || contents_have_run(path))))
		return false;
	*step = step_beside_siblings(at->path, name, NULL);
	return *step >= 0 && ((name_has_word(name) && !name_is_of_a_rank(name)) ||
			      is_by_contents(at, name, path));
}
