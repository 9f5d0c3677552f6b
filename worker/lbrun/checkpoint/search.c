/* SPDX-License-Identifier: MIT */
/* search.c - a child looks for the newest good checkpoint, and tells what it finds.
 *
 * The child answers in JSON lines: {"bad":PATH,"step":S,"stamp":H,"suspect":B,"text":T}… and at
 * last {"found":N,"path":P,"step":S,"stamp":H,"newest":S,"unread":B,"text":T}. Paths may be any
 * bytes (bytes.h). */
#include "worker/lbrun/checkpoint/search.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/checkpoint/steps.h"
#include "worker/lbrun/checkpoint/choice.h"
#include "worker/lbrun/checkpoint/place.h"
#include "worker/lbrun/checkpoint/seals.h"
#include "worker/lbrun/trainer/trainer.h"

enum { ANSWER_MAX_BYTES = 64 * 1024, STILL_MS = 3000, GROWS_MS = 300 };

/* --- the child -------------------------------------------------------------------------------- */

struct child {
	const struct search_request *request;
	struct checkpoint_list list;
	struct look look;
	int fd;
	int64_t newest_step; /* of those that are valid */
};

static void answer(int fd, json_t *line)
{
	char *text = js_line(line);
	char *whole = xasprintf("%s\n", text);
	size_t len = strlen(whole);
	size_t done = 0;
	ssize_t n = 0;

	while (done < len && ((n = write(fd, whole + done, len - done)) > 0 || errno == EINTR))
		done += n > 0 ? (size_t)n : 0;
	free(whole);
	free(text);
	json_decref(line);
}

static void set_stamp(json_t *line, uint64_t stamp)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, stamp);
	js_set_str(line, "stamp", text);
}

static void tell(const struct child *child, const struct checkpoint *c, bool is_suspect,
		 const char *text)
{
	json_t *line = json_object();

	json_object_set_new(line, "bad", js_bytes(c->path));
	js_set_int(line, "step", c->step);
	set_stamp(line, c->stamp);
	js_set_bool(line, "suspect", is_suspect);
	js_set_str(line, "text", text);
	answer(child->fd, line);
}

static void tell_bad(void *arg, const struct checkpoint *c)
{
	tell(arg, c, false, c->why);
}

/* Written a moment ago, perhaps by a rank on another node that does not know yet that all is over.
 */
static bool still_grows(const struct child *child, size_t index)
{
	struct checkpoint *c = &child->list.items[index];
	struct checkpoint_list again;
	struct look look = { 0 };
	bool grows;

	if (clock_wall_ms() - c->time_ms > STILL_MS || c->time_ms - clock_wall_ms() > STILL_MS)
		return false;
	poll(NULL, 0, GROWS_MS);
	if (checkpoint_again(child->request->rules, c, &look, &again) < 0)
		return true;
	grows = again.items[0].stamp != c->stamp;
	checkpoint_list_clear(&again);
	return grows;
}

/* Why the one at hand is not to be taken though its files are whole: by `text`. */
static bool is_passed_over(struct child *child, struct checkpoint *c)
{
	char *text = handed_why(child->request->handed, c);

	if (c->step > child->newest_step)
		child->newest_step = c->step;
	if (!text)
		return false;
	c->is_suspect = true;
	tell(child, c, true, text);
	free(text);
	return true;
}

static bool is_out(void *arg, const struct checkpoint *c)
{
	struct child *child = arg;
	struct err why = { 0 };
	size_t index = (size_t)(c - child->list.items);
	struct checkpoint *mine = &child->list.items[index];

	if (still_grows(child, index))
		err_set(&why, ERR_IO, "%s: is still being written", c->path);
	else
		seals_check(child->request->seals, mine, &child->look, &why);
	if (why.code == ERR_NONE)
		return is_passed_over(child, mine);
	mine->is_valid = false; /* and told as all bad ones are */
	mine->why = xstrdup(why.text);
	return true;
}

static int look_for_newest(struct child *child, int64_t *index, struct err *err)
{
	checkpoints_newest(child->request->rules, &child->list, &child->look, is_out, tell_bad,
			   child);
	*index = checkpoint_choose(&child->list, child->request->handed);
	if (*index >= 0)
		return 1;
	if (*index == CHOICE_REFUSED)
		return err_set(err, ERR_IO, "%s: none of the %zu checkpoints is valid",
			       child->request->folder, child->list.count);
	if (child->list.count > 0)
		err_set(err, ERR_NONE, "the first checkpoint was never finished");
	return 0;
}

/* The one that a person chose, and no other. */
static int look_at_chosen(struct child *child, int64_t *index, struct err *err)
{
	const struct search_request *w = child->request;
	int64_t i = 0;

	if (checkpoints_find(w->rules, w->folder, &child->list, err) < 0)
		return SEARCH_UNKNOWN;
	while (i < (int64_t)child->list.count && strcmp(child->list.items[i].path, w->choice) != 0)
		i++;
	if (i < (int64_t)child->list.count) {
		checkpoint_check(w->rules, &child->list, (size_t)i, &child->look);
	} else {
		checkpoint_list_clear(&child->list);
		i = 0;
		if (checkpoint_at(w->rules, w->choice, &child->look, &child->list, err) < 0)
			return -1;
	}
	*index = i;
	child->newest_step = child->list.items[i].step;
	if (child->list.items[i].is_valid)
		return 1;
	tell_bad(child, &child->list.items[i]);
	return err_set(err, ERR_IO, "%s", child->list.items[i].why);
}

static int look(struct child *child, int64_t *index, struct err *err)
{
	const struct search_request *w = child->request;
	const char *const folders[] = { w->stage ? w->stage : w->folder,
					w->stage ? w->folder : NULL, NULL };

	if (failpoint(FP_SEARCH_LOOK, err) < 0 || place_all(w->folder, err) < 0)
		return SEARCH_UNKNOWN;
	if (strcmp(w->choice, "scratch") == 0 || checkpoint_rules_is_own(w->rules))
		return 0;
	if (w->choice[0] == '/')
		return look_at_chosen(child, index, err);
	if (checkpoints_find_in(w->rules, folders, &child->list, err) < 0)
		return SEARCH_UNKNOWN;
	return look_for_newest(child, index, err);
}

static void __attribute__((noreturn))
search_child(const struct search_request *request, int fd, pid_t shepherd)
{
	struct child child = { .request = request,
			       .fd = fd,
			       .newest_step = -1,
			       .look = { .is_deep = true,
					 .deadline_ms = clock_mono_ms() + request->check_ms } };
	const struct checkpoint *c = NULL;
	json_t *line = json_object();
	struct err why = { 0 };
	int64_t index = -1;
	int rc;

	child_begin(shepherd);
	rc = look(&child, &index, &why);
	if (rc == 1)
		c = &child.list.items[index];
	js_set_int(line, "found", rc);
	json_object_set_new(line, "path", js_bytes(c ? c->path : ""));
	js_set_int(line, "step", c ? c->step : -1);
	set_stamp(line, c ? c->stamp : 0);
	js_set_int(line, "newest", child.newest_step);
	js_set_bool(line, "unread", c && c->is_unread);
	js_set_str(line, "text", why.text);
	answer(fd, line);
	_exit(0);
}

/* --- the parent ------------------------------------------------------------------------------- */

void search_init(struct search *s)
{
	*s = (struct search){ .state = SEARCH_IDLE, .fd = -1, .step = -1, .newest_step = -1 };
}

static void forget_bad(struct search *s)
{
	for (size_t i = 0; i < s->bad_count; i++)
		free(s->bad[i].path);
	free(s->bad);
	s->bad = NULL;
	s->bad_count = 0;
}

int search_start(struct search *s, const struct search_request *request, struct err *err)
{
	pid_t shepherd = getpid();
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(err, "pipe");
	fcntl(p[1], F_SETFL, 0);
	s->pid = fork();
	if (s->pid == 0)
		search_child(request, p[1], shepherd);
	close(p[1]);
	if (s->pid < 0) {
		close(p[0]);
		return err_errno(err, "fork");
	}
	forget_bad(s);
	free(s->path);
	s->path = NULL;
	s->fd = p[0];
	s->state = SEARCH_RUNNING;
	s->found = SEARCH_UNKNOWN;
	s->step = s->newest_step = -1;
	snprintf(s->text, sizeof(s->text), "the search for a checkpoint in %s died",
		 request->folder);
	buf_init(&s->in, ANSWER_MAX_BYTES);
	return 0;
}

int64_t search_told_step(const struct search *s)
{
	return name_step_is_time(path_base(s->path), s->step) ? -1 : s->step;
}

static uint64_t stamp_of(const json_t *line)
{
	return strtoull(js_str(line, "stamp", ""), NULL, 16);
}

/* Takes `path`. */
static void take_bad(struct search *s, char *path, const json_t *line)
{
	bool is_suspect = js_bool(line, "suspect", false);

	s->on_bad(s->arg, path, js_int(line, "step", -1), is_suspect, js_str(line, "text", ""));
	if (is_suspect) {
		free(path);
		return;
	}
	s->bad = xrealloc(s->bad, (s->bad_count + 1) * sizeof(s->bad[0]));
	s->bad[s->bad_count++] = (struct bad_checkpoint){ path, stamp_of(line) };
}

static void take_answer(struct search *s, const char *text, size_t len)
{
	json_t *line = js_parse(text, len, NULL);
	char *bad = js_bytes_take(json_object_get(line, "bad"));

	if (bad) {
		take_bad(s, bad, line);
	} else if (line) {
		s->found = (int)js_int(line, "found", SEARCH_UNKNOWN);
		s->path = js_bytes_take(json_object_get(line, "path"));
		s->step = js_int(line, "step", -1);
		s->stamp = stamp_of(line);
		s->newest_step = js_int(line, "newest", -1);
		s->is_unread = js_bool(line, "unread", false);
		snprintf(s->text, sizeof(s->text), "%s", js_str(line, "text", ""));
		if (s->found == 1 && !s->path)
			s->found = SEARCH_UNKNOWN;
	}
	json_decref(line);
}

static void close_search(struct search *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	buf_fini(&s->in);
}

void search_turn(struct search *s)
{
	char chunk[4096];
	const char *newline;
	ssize_t n;

	if (s->state != SEARCH_RUNNING)
		return;
	n = read(s->fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || buf_add(&s->in, chunk, (size_t)n) < 0) {
		close_search(s);
		s->state = SEARCH_DONE;
		return;
	}
	while ((newline = memchr(s->in.data, '\n', s->in.len))) {
		take_answer(s, s->in.data, (size_t)(newline - s->in.data));
		buf_drop(&s->in, (size_t)(newline - s->in.data) + 1);
	}
}

void search_stop(struct search *s)
{
	if (s->state == SEARCH_RUNNING)
		kill(s->pid, SIGKILL);
	close_search(s);
	s->state = SEARCH_IDLE;
	forget_bad(s);
	free(s->path);
	s->path = NULL;
}

/* --- cheap looks ------------------------------------------------------------------------------ */

bool search_was_bad(const struct search *s, const struct checkpoint *c)
{
	for (size_t i = 0; i < s->bad_count; i++) {
		if (s->bad[i].stamp == c->stamp && strcmp(s->bad[i].path, c->path) == 0)
			return true;
	}
	return false;
}
