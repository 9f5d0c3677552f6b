/* SPDX-License-Identifier: MIT */
/* stage.c - the shell around stage_plan.h. */
#include "worker/lbrun/checkpoint/stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/run/attempt.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/checkpoint/part.h"
#include "worker/lbrun/checkpoint/parts.h"
#include "worker/lbrun/checkpoint/pruning.h"
#include "worker/lbrun/trainer/trainer.h"

enum { AGAIN_MS = 2000, FAILURES_MAX = 5, NICE = 10 };

/* --- the folder ------------------------------------------------------------------------------- */

/* Of this run before a person sent it back: nothing there is ever wanted again. */
static void remove_others(const char *parent, const char *prefix, const char *keep)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		char *path = path_join("%s/%s", parent, entry->d_name);

		if (text_begins_with(entry->d_name, prefix) && strcmp(entry->d_name, keep) != 0)
			folder_remove(path, NULL);
		free(path);
	}
	if (dir)
		closedir(dir);
}

static int make_folder(struct stage *s, const struct stage_where *w, struct err *err)
{
	const struct attempt_params *p = s->params;
	uint64_t h = fnv_add_text(fnv_text(p->run_dir), p->checkpoint_dir);
	char *prefix = path_join("%s-%016" PRIx64 "%s%s.", p->run, h, w->task ? "-" : "",
				 w->task ? w->task : "");
	char *folder, *parent;
	int rc;

	s->stage = path_join("%s/lowbits-%u/%s%" PRId64, p->stage, (unsigned)geteuid(), prefix,
			     w->generation);
	folder = part_folder(s->stage, w->node);
	rc = part_make_folder(folder, err);
	if (rc == 0) {
		parent = xstrndup(folder, (size_t)(path_base(folder) - folder));
		remove_others(parent, prefix, path_base(folder));
		free(parent);
		s->folder = folder;
	} else {
		free(folder);
		free(s->stage);
		s->stage = NULL;
	}
	free(prefix);
	return rc;
}

int stage_open(struct stage *s, const struct attempt_params *p, const struct stage_where *where,
	       const struct checkpoint_rules *rules, struct err *err)
{
	*s = (struct stage){ .shared = p->checkpoint_dir,
			     .rules = rules,
			     .params = p,
			     .node = where->node,
			     .nodes = where->nodes,
			     .sealed_step = -1,
			     .run_dir = p->run_dir,
			     .number = p->number,
			     .rate = p->stage_rate,
			     .lock_fd = -1,
			     .fd = -1 };
	gethostname(s->host, sizeof(s->host) - 1);
	if (make_folder(s, where, err) < 0)
		return err_wrap(err, "checkpoint.stage");
	s->word = stage_has_parts(s) ? part_word(s->folder) : NULL;
	return 0;
}

bool stage_is_on(const struct stage *s)
{
	return s->folder != NULL;
}

char *stage_for_ranks(const struct stage *s)
{
	return stage_has_parts(s) && s->word ? path_join("%s:%s", s->word, s->stage) : NULL;
}

static struct stage_view view_of(const struct stage *s)
{
	struct stage_view v = {
		.items = s->items,
		.count = s->count,
		.draining = -1,
		.is_limited = s->is_limited,
		.rate = s->measured_rate,
		.left_ms = INT64_MAX,
		.free_bytes = INT64_MAX,
		.keeps_none = stage_has_parts(s),
	};

	for (size_t i = 0; s->pid > 0 && i < s->count; i++)
		if (strcmp(s->files[i].path, s->draining) == 0)
			v.draining = (int64_t)i;
	return v;
}

void stage_close(struct stage *s)
{
	struct stage_view v = view_of(s);
	int64_t back_to;

	if (!s->folder)
		return;
	if (stage_at_risk(&v, &back_to) < 0) {
		if (stage_has_parts(s) && s->word)
			parts_clear(s->stage, s->nodes);
		folder_remove(s->folder, NULL);
	}
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->fd >= 0)
		close(s->fd);
	stage_forget(s);
	free(s->draining);
	free(s->folder);
	free(s->stage);
	free(s->word);
	*s = (struct stage){ .fd = -1, .lock_fd = -1 };
}

void stage_break_off(struct stage *s)
{
	if (s->pid <= 0 || s->is_broken_off)
		return;
	s->is_broken_off = true; /* and begun again once it is reaped */
	kill(s->pid, SIGKILL);
}

static int begin_parts(struct stage *s, struct err *err)
{
	stage_break_off(s);
	free(s->word);
	s->word = part_draw_word(s->number, s->nodes);
	s->sealed_step = -1;
	s->failures = 0;
	stage_forget(s);
	return part_begin(s->folder, s->word, err);
}

/* Somebody may have removed the folder, and with it the file that the lock is on: logind does, once
 * a user has logged out of the node. */
static int make_again(struct stage *s, struct err *err)
{
	if (access(s->folder, F_OK) == 0)
		return 0;
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->lock_fd = -1;
	return part_make_folder(s->folder, err);
}

int stage_begin_launch(struct stage *s, struct err *err)
{
	if (stage_has_parts(s))
		return begin_parts(s, err);
	if (make_again(s, err) < 0)
		return -1;
	stage_tidy(s);
	return 0;
}

/* --- draining --------------------------------------------------------------------------------- */

/* A child of an lbrun that was killed may live for a moment. */
static bool has_lock(struct stage *s)
{
	char *path;

	if (s->lock_fd >= 0)
		return true;
	path = path_join("%s/%s", s->folder, STAGE_LOCK);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	free(path);
	if (s->lock_fd >= 0 && flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		close(s->lock_fd);
		s->lock_fd = -1;
	}
	return s->lock_fd >= 0;
}

static bool may_go_on(void *arg)
{
	const struct stage *s = arg;

	return attempt_newest_claim(s->run_dir) <= s->number;
}

static void __attribute__((noreturn)) child(struct stage *s, size_t index, int64_t rate, int fd)
{
	const struct parts_request parts = {
		.layout = s->params->layout,
		.pattern = s->params->pattern,
		.complete_when = s->params->complete_when,
		.stage = s->stage,
		.word = s->word,
		.head = s->node,
		.nodes = s->nodes,
		.sealed_step = s->sealed_step,
	};
	struct drain_request request = {
		.rules = s->rules,
		.parts = stage_has_parts(s) ? &parts : NULL,
		.stage = s->folder,
		.shared = s->shared,
		.path = s->files[index].path,
		.stamp = s->files[index].stamp,
		.host = s->host,
		.rate = rate,
		.may_go_on = may_go_on,
		.arg = s,
	};
	struct drained out;

	setpriority(PRIO_PROCESS, 0, NICE);
	drain_run(&request, &out);
	_exit(file_write_all(fd, &out, sizeof(out)) < 0);
}

static void begin(struct stage *s, size_t index, bool is_unlimited, int64_t now_ms)
{
	int64_t rate = is_unlimited ? 0 : s->rate;
	pid_t shepherd = getpid();
	int ends[2];

	s->again_ms = now_ms + AGAIN_MS;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	s->pid = fork();
	if (s->pid == 0) {
		child_begin(shepherd);
		child(s, index, rate, ends[1]);
	}
	close(ends[1]);
	if (s->pid < 0) {
		s->pid = 0;
		close(ends[0]);
		return;
	}
	s->fd = ends[0];
	free(s->draining);
	s->draining = xstrdup(s->files[index].path);
	s->is_limited = rate > 0;
	s->is_broken_off = false;
	s->begun_ms = now_ms;
}

static int64_t free_bytes(const char *folder)
{
	struct statvfs fs;

	return statvfs(folder, &fs) < 0 ? INT64_MAX
					: (int64_t)((double)fs.f_bavail * (double)fs.f_frsize);
}

/* True: something went. */
static bool drop(struct stage *s, const bool *drops)
{
	bool any = false;

	for (size_t i = 0; i < s->count; i++) {
		struct checkpoint_list list;
		struct look look = { 0 };

		if (!drops[i] || checkpoint_at(s->rules, s->files[i].path, &look, &list, NULL) < 0)
			continue;
		failpoint(FP_STAGE_DROP, NULL);
		any |= pruning_remove(list.items, NULL) == 0;
		checkpoint_list_clear(&list);
	}
	return any;
}

/* After some went; what the trainer may be loading is the same as before. */
static void look_again(struct stage *s)
{
	char *needed = NULL;

	for (size_t i = 0; i < s->count && !needed; i++)
		needed = s->items[i].is_needed ? xstrdup(s->files[i].path) : NULL;
	stage_look(s, needed);
	free(needed);
}

void stage_turn(struct stage *s, int64_t left_ms, int64_t now_ms)
{
	struct stage_view v = view_of(s);
	struct stage_step step;
	bool *drops;

	if (s->count == 0)
		return;
	drops = xcalloc(s->count, sizeof(*drops));
	v.left_ms = left_ms;
	v.free_bytes = free_bytes(s->folder);
	if (v.draining >= 0 && v.rate > 0)
		v.copied_bytes = (int64_t)((double)(now_ms - s->begun_ms) / 1000 * (double)v.rate);
	step = stage_decide(&v, drops);
	if (step.breaks_off)
		stage_break_off(s);
	if (s->pid == 0 && step.drain >= 0 && now_ms >= s->again_ms && has_lock(s))
		begin(s, (size_t)step.drain, step.is_unlimited, now_ms);
	if (drop(s, drops))
		look_again(s);
	free(drops);
}

int64_t stage_next_ms(const struct stage *s)
{
	struct stage_view v = view_of(s);
	int64_t back_to;

	return s->folder && s->pid == 0 && stage_at_risk(&v, &back_to) >= 0 ? s->again_ms
									    : INT64_MAX;
}

static void measure(struct stage *s, const struct drained *out)
{
	if (out->is_done && out->written > 0 && out->ms > 0)
		s->measured_rate = (int64_t)((double)out->written / (double)out->ms * 1000);
}

bool stage_reaped(struct stage *s, struct drained *out, char **path, int64_t now_ms)
{
	ssize_t n = read(s->fd, out, sizeof(*out));
	bool was_broken_off = s->is_broken_off;

	close(s->fd);
	s->fd = -1;
	s->pid = 0;
	if (n != (ssize_t)sizeof(*out)) {
		*out = (struct drained){ .ms = now_ms - s->begun_ms };
		snprintf(out->text, sizeof(out->text), "the process that copied it died");
	}
	measure(s, out);
	for (size_t i = 0; i < s->count; i++)
		if (out->is_done && strcmp(s->files[i].path, s->draining) == 0) {
			s->items[i].is_sealed = true;
			s->sealed_step = s->items[i].step;
		}
	*path = out->is_done ? path_join("%s%s", s->shared, s->draining + strlen(s->folder))
			     : xstrdup(s->draining);
	s->again_ms = out->is_done || was_broken_off ? now_ms : now_ms + AGAIN_MS;
	s->failures = out->is_done || was_broken_off || out->is_gone ? 0 : s->failures + 1;
	return out->is_done || (!was_broken_off && !out->is_gone);
}

bool stage_is_draining(const struct stage *s)
{
	struct stage_view v;
	int64_t back_to;

	if (!s->folder || s->failures >= FAILURES_MAX)
		return false;
	v = view_of(s);
	return s->pid > 0 || stage_at_risk(&v, &back_to) >= 0;
}

void stage_risk_text(const struct stage *s, char *text, size_t size, int64_t *needs_ms)
{
	struct stage_view v = view_of(s);
	int64_t back_to, index = stage_at_risk(&v, &back_to);

	text[0] = '\0';
	if (needs_ms)
		*needs_ms = index < 0 ? 0 : stage_needs_ms(&v, index);
	if (index >= 0)
		snprintf(text, size,
			 "the checkpoint of step %" PRId64 " (%.2f GB) lies on %s alone, in %s",
			 s->items[index].step, (double)s->items[index].bytes / 1e9, s->host,
			 s->folder);
}
