/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_catch.c - what libslurm says on stderr while it refuses a job is caught, and read. */
#include "slurm/helper/limit_catch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"

enum { CAUGHT_BYTES = 4096 };

void limit_catch_begin(struct limit_catch *c)
{
	fflush(stderr);
	c->caught_fd = file_in_memory("stderr");
	c->saved_fd = c->caught_fd < 0 ? -1
				       : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (c->saved_fd >= 0)
		dup2(c->caught_fd, STDERR_FILENO);
}

/* "lbd-slurm: error: jobs need a time limit", any number of lines. */
static void errors_of(char *text, char said[COMMAND_SAID_BYTES])
{
	static const char head[] = "error: ";
	char *rest = text, *line;
	size_t len = 0;

	while ((line = strsep(&rest, "\n")) && len < COMMAND_SAID_BYTES) {
		const char *at = strstr(line, head);

		if (at && at[sizeof(head) - 1])
			len += (size_t)snprintf(said + len, COMMAND_SAID_BYTES - len, "%s%s",
						len ? "; " : "", at + sizeof(head) - 1);
	}
}

void limit_catch_end(struct limit_catch *c, char limit[LIMIT_WORD_BYTES],
		     char said[COMMAND_SAID_BYTES])
{
	char text[CAUGHT_BYTES];
	ssize_t len = 0;

	limit[0] = said[0] = '\0';
	fflush(stderr);
	if (c->saved_fd >= 0) {
		dup2(c->saved_fd, STDERR_FILENO);
		close(c->saved_fd);
		len = pread(c->caught_fd, text, sizeof(text) - 1, 0);
	}
	if (c->caught_fd >= 0)
		close(c->caught_fd);
	if (len <= 0)
		return;
	text[len] = '\0';
	fputs(text, stderr);
	limit_word(text, limit);
	errors_of(text, said);
}
