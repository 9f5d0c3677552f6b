/* SPDX-License-Identifier: MIT */
/* last_output.c - the newest line of a run's output: a sign of life of one that tells no steps
 * yet. */
#include "ctl/look/last_output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/look/log_lines.h"
#include "ctl/team/ask.h"

enum { TAIL_BYTES = 8 * 1024 };

/* The last line of the trainer's in `text`, which it changes; NULL = there is none. */
static const char *last_line(char *text)
{
	const char *last = NULL;

	for (char *line, *next = text; (line = strsep(&next, "\r\n"));) {
		const char *words = log_line_words(line);

		if (words[strspn(words, " \t")] && strncmp(words, "lbrun: ", 7) != 0)
			last = words;
	}
	return last;
}

static char *read_tail(const char *path, int64_t *changed_ms)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text = NULL;
	ssize_t n = -1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;

		text = xcalloc(1, TAIL_BYTES + 1);
		n = pread(fd, text, TAIL_BYTES, from);
		*changed_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	}
	close(fd);
	for (ssize_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : '?';
	return text;
}

char *last_output(struct ctl *ctl, const char *run, int64_t *age_ms)
{
	struct err quiet = { 0 };
	json_t *list = ask_about(ctl, VERB_LOGS, run, NULL, &quiet);
	const json_t *newest = json_array_get(list, json_array_size(list) - 1);
	char *path = newest ? js_bytes_take(json_object_get(newest, "path")) : NULL;
	int64_t changed_ms = 0;
	char *text = path ? read_tail(path, &changed_ms) : NULL;
	const char *line = text ? last_line(text) : NULL;
	char *shown = line ? clean_copy(line, &ctl->out) : NULL;

	*age_ms = clock_wall_ms() - changed_ms;
	if (*age_ms < 0)
		*age_ms = 0;
	free(text);
	free(path);
	json_decref(list);
	return shown;
}
