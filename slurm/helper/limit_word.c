/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_word.c - finds the word of a limit in a refusal of the scheduler, and says what it means. */
#include "slurm/helper/limit_word.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slurm/reasons.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

enum { WORD_BYTES = 64, SAID_BYTES = 4096 };

/* Names of other reasons (Priority, Resources) are words of everyday use. */
static bool is_limit(const char *word)
{
	bool is_of_accounts = strncmp(word, "Assoc", 5) == 0 || strncmp(word, "QOS", 3) == 0 ||
			      strncmp(word, "Max", 3) == 0;

	return is_of_accounts && slurm_reason_from_word(word) != 0;
}

void limit_word(const char *said, char limit[LIMIT_WORD_BYTES])
{
	limit[0] = '\0';
	for (const char *at = said + strcspn(said, LETTERS); *at && !limit[0];) {
		size_t len = strspn(at, LETTERS);
		char word[WORD_BYTES], sentence[SLURM_REASON_TEXT_BYTES];

		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		if (is_limit(word)) {
			slurm_reason_text(word, sentence);
			snprintf(limit, LIMIT_WORD_BYTES, "%s: %s", word, sentence);
		}
		at += len;
		at += strcspn(at, LETTERS);
	}
}

bool limit_word_is_qos(const char *limit)
{
	return strncmp(limit, "Assoc", 5) != 0; /* MaxJobsPerAccount is one of a QOS, too */
}

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
