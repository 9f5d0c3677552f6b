/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_catch.c - what libslurm says on stderr while it refuses a job is caught, and read. */
#include "slurm/helper/limit_catch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_BYTES = 4096 };

void limit_catch_begin(struct limit_catch *c)
{
	fflush(stderr);
	c->caught_fd = memfd_create("stderr", MFD_CLOEXEC);
	c->saved_fd = c->caught_fd < 0 ? -1
				       : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (c->saved_fd >= 0)
		dup2(c->caught_fd, STDERR_FILENO);
}

void limit_catch_end(struct limit_catch *c, char limit[LIMIT_WORD_BYTES])
{
	char said[SAID_BYTES];
	ssize_t len = 0;

	limit[0] = '\0';
	fflush(stderr);
	if (c->saved_fd >= 0) {
		dup2(c->saved_fd, STDERR_FILENO);
		close(c->saved_fd);
		len = pread(c->caught_fd, said, sizeof(said) - 1, 0);
	}
	if (c->caught_fd >= 0)
		close(c->caught_fd);
	if (len <= 0)
		return;
	said[len] = '\0';
	fputs(said, stderr);
	limit_word(said, limit);
}
