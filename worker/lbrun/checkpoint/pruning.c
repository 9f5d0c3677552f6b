/* SPDX-License-Identifier: MIT */
/* pruning.c - a child that looks, renames and removes, and its deadline. */
#include "worker/lbrun/checkpoint/pruning.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "worker/lbrun/trainer/trainer.h"

/* Hidden: no layout takes it for a checkpoint, nor for a part of one. */
static const char mark[] = ".lb-removed-";

/* --- removing --------------------------------------------------------------------------------- */

static void note_trouble(struct pruned *out, const struct err *why)
{
	if (why->code != ERR_NONE && !out->text[0])
		snprintf(out->text, sizeof(out->text), "%s", why->text);
}

static char *doomed_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return path_join("%.*s/%s%s", (int)(slash - path), path, mark, slash + 1);
}

static int remove_path(const char *path, struct err *err)
{
	char *doomed = doomed_name(path);
	int rc = 0;

	failpoint(FP_PRUNE_BEFORE, NULL);
	if (rename(path, doomed) < 0 && errno != ENOENT)
		rc = err_errno(err, "%s: cannot be removed", path);
	failpoint(FP_PRUNE_RENAMED, NULL);
	if (rc == 0)
		rc = folder_remove(doomed, err);
	free(doomed);
	return rc;
}

int pruning_remove(const struct checkpoint *c, struct err *err)
{
	char *base = c->is_file ? checkpoint_base(c) : NULL;
	int rc = remove_path(c->path, err);

	for (size_t i = 0; rc == 0 && base && i < c->part_count; i++) {
		char *path = path_join("%s/%s", base, c->parts[i].name);

		if (strcmp(path, c->path) != 0)
			rc = remove_path(path, err);
		free(path);
	}
	free(base);
	return rc;
}

/* What a crash left. */
static void remove_doomed(const char *folder, struct pruned *out)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct err why = { 0 };
		char *path;

		if (!text_begins_with(entry->d_name, mark))
			continue;
		path = path_join("%s/%s", folder, entry->d_name);
		folder_remove(path, &why);
		note_trouble(out, &why);
		free(path);
	}
	if (dir)
		closedir(dir);
}

static bool is_needed(void *arg, const struct checkpoint *c)
{
	const struct search *search = arg;

	return search->found == 1 && strcmp(search->path, c->path) == 0;
}

/* What was passed over before this launch. A cheap look may have found it whole. */
static void mark_doubtful(struct checkpoint_list *list, const struct search *search,
			  const struct handed *handed)
{
	handed_mark(handed, list);
	for (size_t i = 0; i < list->count; i++)
		list->items[i].is_valid &= !search_was_bad(search, &list->items[i]);
}

static void tell_step(struct pruned *out, int64_t step)
{
	size_t len = strlen(out->steps);

	if (step >= 0)
		snprintf(out->steps + len, sizeof(out->steps) - len, "%s%lld", len ? ", " : "",
			 (long long)step);
}

static void remove_chosen(const struct checkpoint_list *list, const bool *goes, struct pruned *out)
{
	for (size_t i = list->count; i-- > 0;) {
		const struct checkpoint *c = &list->items[i];
		struct err why = { 0 };

		if (goes[i] && pruning_remove(c, &why) == 0) {
			out->count++;
			out->bytes += c->bytes;
			tell_step(out, c->step);
		} else {
			out->total_bytes += c->bytes;
		}
		note_trouble(out, &why);
	}
}

void pruning_apply(const struct retention *rule, const struct checkpoint_rules *rules,
		   const char *folder, const struct search *search, const struct handed *handed,
		   struct pruned *out)
{
	struct checkpoint_list list;
	struct look look = { 0 };
	struct err why = { 0 };
	struct search last = *search; /* only read */
	bool *goes;

	*out = (struct pruned){ 0 };
	if (retention_is_on(rule))
		remove_doomed(folder, out);
	if (checkpoints_list(rules, folder, &look, &list, &why) == 0) {
		goes = xcalloc(list.count + 1, sizeof(*goes));
		mark_doubtful(&list, search, handed);
		retention_choose(rule, &list, is_needed, &last, goes);
		remove_chosen(&list, goes, out);
		checkpoint_list_clear(&list);
		free(goes);
	}
	note_trouble(out, &why);
}

/* --- the child -------------------------------------------------------------------------------- */

void pruning_open(struct pruning *p, const struct attempt_params *params)
{
	*p = (struct pruning){ .rule = params->retention,
			       .note_bytes = params->note_bytes,
			       .fd = -1 };
	p->rules = checkpoint_rules_create(params->layout, params->pattern, params->complete_when,
					   NULL);
}

void pruning_close(struct pruning *p)
{
	checkpoint_rules_destroy(p->rules);
	p->rules = NULL;
}

bool pruning_is_due(const struct pruning *p)
{
	return p->is_due && p->pid == 0 && p->rules && !checkpoint_rules_is_own(p->rules) &&
	       (retention_is_on(&p->rule) || p->note_bytes > 0);
}

int pruning_start(struct pruning *p, const char *folder, const struct search *search,
		  const struct handed *handed, struct err *err)
{
	pid_t shepherd = getpid();
	int ends[2];

	p->is_due = false;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(err, "pipe");
	p->pid = fork();
	if (p->pid == 0) {
		struct pruned out;

		child_begin(shepherd);
		pruning_apply(&p->rule, p->rules, folder, search, handed, &out);
		_exit(file_write_all(ends[1], &out, sizeof(out)) < 0);
	}
	close(ends[1]);
	p->fd = ends[0];
	if (p->pid > 0)
		return 0;
	p->pid = 0;
	close(ends[0]);
	return err_errno(err, "fork");
}

/* Less than a pipe holds: it is all there, or the child died. */
bool pruning_end(struct pruning *p, struct pruned *out)
{
	ssize_t n = read(p->fd, out, sizeof(*out));

	close(p->fd);
	p->pid = 0;
	return n == (ssize_t)sizeof(*out);
}

bool pruning_is_large(struct pruning *p, int64_t total_bytes)
{
	int64_t bound = p->told_bytes > 0 ? 2 * p->told_bytes : p->note_bytes;

	if (p->note_bytes == 0 || retention_is_on(&p->rule) || total_bytes < bound)
		return false;
	p->told_bytes = total_bytes;
	return true;
}
