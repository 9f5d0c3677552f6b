/* SPDX-License-Identifier: MIT */
/* The child answers in JSON lines: {"bad":PATH,"text":T}… and at last {"found":N,"path":P,"step":S,
 * "text":T}. Paths may be any bytes (bytes.h). */
#include "worker/lbrun/checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/json.h"
#include "common/manifest.h"
#include "common/paths.h"
#include "worker/lbrun/trainer.h"

enum { ANSWER_MAX_BYTES = 64 * 1024 };

int64_t checkpoint_step_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *end;
	long long step;

	if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
		return -1;
	errno = 0;
	step = strtoll(name + 5, &end, 10);
	return *end == '\0' && errno == 0 ? step : -1;
}

/* --- the child -------------------------------------------------------------------------------- */

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

static void tell_bad(const char *path, const struct err *why, void *arg)
{
	json_t *line = json_object();

	json_object_set_new(line, "bad", js_bytes(path));
	js_set_str(line, "text", why->text);
	answer(*(int *)arg, line);
}

/* The one that a person chose, and no other: as checkpoint_newest_valid tells it. */
static int verify_chosen(const char *path, const char *parent, struct foreign *foreign,
			 struct checkpoint_found *found, int fd, struct err *err)
{
	const char *name = strrchr(path, '/') + 1;
	struct err why = {0};
	int rc;

	if (strlen(path) >= sizeof(found->path))
		return err_set(err, ERR_IO, "%.200s…: path too long", path);
	rc = foreign ? foreign_verify(foreign, parent, name, true, &why)
		     : manifest_verify(path, MANIFEST_DIGESTS, NULL, &why);
	if (rc < 0) {
		tell_bad(path, &why, &fd);
		return err_set(err, why.code, "%s", why.text);
	}
	snprintf(found->path, sizeof(found->path), "%s", path);
	found->step = foreign ? foreign_step(foreign, name) : checkpoint_step_of(path);
	return 1;
}

static int look(const char *parent, const char *choice, struct foreign *foreign,
		struct checkpoint_found *found, int fd, struct err *err)
{
	if (strcmp(choice, "scratch") == 0)
		return 0;
	if (choice[0] == '/')
		return verify_chosen(choice, parent, foreign, found, fd, err);
	return foreign ? foreign_newest(foreign, parent, true, found, tell_bad, &fd, err)
		       : checkpoint_newest_valid(parent, found, tell_bad, &fd, err);
}

static void __attribute__((noreturn)) search_child(const char *parent, const char *choice,
						   struct foreign *foreign, int fd,
						   pid_t shepherd)
{
	struct checkpoint_found found = {.step = -1};
	struct err why = {0};
	json_t *line = json_object();
	int rc;

	child_begin(shepherd);
	rc = look(parent, choice, foreign, &found, fd, &why);
	js_set_int(line, "found", rc);
	json_object_set_new(line, "path", js_bytes(rc == 1 ? found.path : ""));
	js_set_int(line, "step", rc == 1 ? found.step : -1);
	js_set_str(line, "text", why.text);
	answer(fd, line);
	_exit(0);
}

/* --- the parent ------------------------------------------------------------------------------- */

void search_init(struct search *s)
{
	*s = (struct search){.state = SEARCH_IDLE, .fd = -1};
}

int search_start(struct search *s, const char *parent, const char *choice, struct foreign *foreign,
		 struct err *err)
{
	pid_t shepherd = getpid();
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(err, "pipe");
	fcntl(p[1], F_SETFL, 0);
	s->pid = fork();
	if (s->pid == 0)
		search_child(parent, choice, foreign, p[1], shepherd);
	close(p[1]);
	if (s->pid < 0) {
		close(p[0]);
		return err_errno(err, "fork");
	}
	free(s->path);
	s->path = NULL;
	s->fd = p[0];
	s->state = SEARCH_RUNNING;
	s->foreign = foreign;
	s->found = -1;
	s->step = -1;
	snprintf(s->text, sizeof(s->text), "the search for a checkpoint in %s died", parent);
	buf_init(&s->in, ANSWER_MAX_BYTES);
	return 0;
}

static int64_t step_of(const struct search *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	return s->foreign ? foreign_step(s->foreign, slash ? slash + 1 : path)
			  : checkpoint_step_of(path);
}

static void take_answer(struct search *s, const char *text, size_t len)
{
	json_t *line = js_parse(text, len, NULL);
	char *bad = js_bytes_take(json_object_get(line, "bad"));

	if (bad) {
		s->on_bad(s->arg, bad, step_of(s, bad), js_str(line, "text", ""));
	} else if (line) {
		s->found = (int)js_int(line, "found", -1);
		s->path = js_bytes_take(json_object_get(line, "path"));
		s->step = js_int(line, "step", -1);
		snprintf(s->text, sizeof(s->text), "%s", js_str(line, "text", ""));
		if (s->found == 1 && !s->path)
			s->found = -1;
	}
	free(bad);
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
	free(s->path);
	s->path = NULL;
}

static int64_t newest_foreign(const char *parent, struct foreign *foreign, char **out)
{
	struct checkpoint_found found;

	if (foreign_newest(foreign, parent, false, &found, NULL, NULL, NULL) != 1)
		return -1;
	if (out)
		*out = path_join("%s", found.path);
	return found.step;
}

int64_t checkpoint_newest_by_size(const char *parent, struct foreign *foreign, char **out)
{
	const struct dirent *entry;
	int64_t newest = -1;
	DIR *dir;

	if (out)
		*out = NULL;
	if (foreign)
		return newest_foreign(parent, foreign, out);
	dir = opendir(parent);
	while (dir && (entry = readdir(dir))) {
		int64_t step = checkpoint_step_of(entry->d_name);
		char *path;

		if (step <= newest)
			continue;
		path = path_join("%s/%s", parent, entry->d_name);
		if (manifest_verify(path, MANIFEST_SIZES, NULL, NULL) == 0)
			newest = step;
		free(path);
	}
	if (dir)
		closedir(dir);
	return newest;
}
