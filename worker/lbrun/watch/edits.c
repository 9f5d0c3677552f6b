/* SPDX-License-Identifier: MIT */
/* edits.c - sizes and times of the files beside those at submit. */
#include "worker/lbrun/watch/edits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/run/code_files.h"
#include "worker/lbrun/trainer/trainer.h"

enum {
	LIST_MAX_BYTES = 1024 * 1024,
	CODE_MAX_BYTES = 4 * 1024 * 1024,
	NAMED = 3, /* so many are named */
};

/* "BYTES SECONDS.NANOSECONDS NAME" */
static bool is_changed(const char *root, const char *line, const char **name)
{
	long long bytes, seconds;
	long nanoseconds;
	int length = 0;
	struct stat st;
	char *path;
	bool is;

	/* NOLINTNEXTLINE(cert-err34-c): lbctl wrote it; a number too large is a change */
	if (sscanf(line, "%lld %lld.%9ld %n", &bytes, &seconds, &nanoseconds, &length) < 3 ||
	    length == 0)
		return false;
	*name = line + length;
	path = path_join("%s/%s", root, *name);
	is = stat(path, &st) < 0 || st.st_size != bytes || st.st_mtim.tv_sec != seconds ||
	     st.st_mtim.tv_nsec != nanoseconds;
	free(path);
	return is;
}

static void describe(const char *root, char *list, char text[EDITS_TEXT_BYTES])
{
	char names[EDITS_TEXT_BYTES / 2] = "", *line;
	const char *name = NULL;
	size_t count = 0;

	while ((line = strsep(&list, "\n"))) {
		size_t len = strlen(names);

		if (!is_changed(root, line, &name))
			continue;
		if (++count <= NAMED)
			snprintf(names + len, sizeof(names) - len, "%s%.50s", len ? ", " : "",
				 name);
	}
	if (count > 0)
		snprintf(text, EDITS_TEXT_BYTES,
			 "%zu file%s of the code changed since the submission: %s%s", count,
			 count == 1 ? "" : "s", names, count > NAMED ? ", …" : "");
}

static bool is_new(const char *run_dir, const char *text)
{
	char *path = path_join("%s/" CODE_CHANGED, run_dir);
	char *before = file_read(path, EDITS_TEXT_BYTES, NULL, NULL);
	bool is = strcmp(before ? before : "", text) != 0;

	if (is && text[0])
		file_write_visible(path, text, strlen(text), 0640, NULL);
	else if (is) /* as it was again */
		unlink(path);
	free(before);
	free(path);
	return is && text[0];
}

/* What the child does; "" when nothing is changed. */
static void look(const char *run_dir, char text[EDITS_TEXT_BYTES])
{
	char *path = path_join("%s/" CODE_FILES, run_dir);
	char *code_path = path_join("%s/" CODE_JSON, run_dir);
	char *list = file_read(path, LIST_MAX_BYTES, NULL, NULL);
	json_t *code = js_load(code_path, CODE_MAX_BYTES, NULL);
	char *root = js_bytes_take(json_object_get(code, "root"));

	text[0] = '\0';
	if (list && root)
		describe(root, list, text);
	free(root);
	json_decref(code);
	free(list);
	free(code_path);
	free(path);
}

int edits_start(struct edits *e, const char *run_dir, struct err *err)
{
	char *path = path_join("%s/" CODE_FILES, run_dir), text[EDITS_TEXT_BYTES];
	bool is_known = file_exists(path);
	pid_t shepherd = getpid();
	int ends[2];

	free(path);
	if (!is_known || e->pid > 0)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(err, "pipe");
	e->run_dir = run_dir;
	e->pid = fork();
	if (e->pid == 0) {
		child_begin(shepherd);
		look(run_dir, text);
		_exit(file_write_all(ends[1], text, sizeof(text)) < 0);
	}
	close(ends[1]);
	e->fd = ends[0];
	if (e->pid > 0)
		return 0;
	e->pid = 0;
	close(ends[0]);
	return err_errno(err, "fork");
}

/* Less than a pipe holds: it is all there, or the child died. */
bool edits_end(struct edits *e, char text[EDITS_TEXT_BYTES])
{
	ssize_t n = read(e->fd, text, EDITS_TEXT_BYTES);

	close(e->fd);
	e->pid = 0;
	return n == EDITS_TEXT_BYTES && is_new(e->run_dir, text);
}
