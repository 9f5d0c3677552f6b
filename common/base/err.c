/* SPDX-License-Identifier: MIT */
/* err.c - makes an error's one line, and puts context in front of it.
 *
 * Every text is made in a local buffer first: callers may pass err->text itself as an argument, and
 * err_wrap must not lose the old text before the new one stands. */
#include "common/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static const struct {
	const char *name;
	int exit_status;
} codes[ERR_COUNT] = {
	[ERR_NONE] = { "none", 0 },
	[ERR_USAGE] = { "usage", 2 },
	[ERR_NOT_FOUND] = { "not_found", 3 },
	[ERR_LOCKED] = { "locked", 4 },
	[ERR_DAEMON] = { "daemon", 5 },
	[ERR_REFUSED] = { "refused", 6 },
	[ERR_SCHEDULER] = { "scheduler", 7 },
	[ERR_TIMEOUT] = { "timeout", 8 },
	[ERR_IO] = { "io", 9 },
	[ERR_INTERNAL] = { "internal", 9 },
};

/* Where a text of `len` bytes may end so that at most `max` bytes remain and no UTF-8 character
 * is torn: half a character would show as noise behind a message that was fine. */
static size_t cut_at(const char *text, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

/* Joins "a" "b" "c" into err->text, cut to its size and cleaned. */
static void put_text(struct err *err, const char *a, const char *b, const char *c)
{
	char line[3 * ERR_TEXT_BYTES];
	size_t len;

	snprintf(line, sizeof(line), "%s%s%s", a, b, c);
	len = cut_at(line, strlen(line), ERR_TEXT_BYTES - 1);
	memcpy(err->text, line, len);
	err->text[len] = '\0';
	text_clean(err->text);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES + 4];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (err && err->code == ERR_NONE) { /* the first one stays */
		err->code = code;
		put_text(err, text, "", "");
	}
	return -1;
}

/* A message names a path once. */
static bool begins_with_words(const char *text, const char *words)
{
	size_t len = strlen(words);

	return len > 0 && strncmp(text, words, len) == 0 && (text[len] == ':' || text[len] == ' ');
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	char old[ERR_TEXT_BYTES];
	va_list args;

	if (!err)
		return -1;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (err->code == ERR_NONE) {
		err->code = ERR_INTERNAL;
		put_text(err, text, "", "");
		return -1;
	}
	memcpy(old, err->text, sizeof(old));
	if (!begins_with_words(old, text))
		put_text(err, text, ": ", old);
	return -1;
}

int err_errno(struct err *err, const char *fmt, ...)
{
	int sys = errno;
	char text[ERR_TEXT_BYTES];
	char reason_buf[128];
	const char *reason = strerror_r(sys, reason_buf, sizeof(reason_buf));
	size_t room = ERR_TEXT_BYTES - 1 - strlen(": ");
	size_t reason_len = strlen(reason);
	va_list args;

	if (!err || err->code != ERR_NONE)
		return -1;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* A long path must not push out the one word that explains it. */
	room -= reason_len < room ? reason_len : room;
	text[cut_at(text, strlen(text), room)] = '\0';
	err->code = ERR_IO;
	err->sys = sys;
	put_text(err, text, ": ", reason);
	return -1;
}

bool err_is_passing(const struct err *err)
{
	static const int passing[] = { ENOSPC,   EDQUOT,    EIO,       EROFS,     ESTALE,
				       ENOTCONN, ESHUTDOWN, ETIMEDOUT, EHOSTDOWN, EMFILE,
				       ENFILE,   ENOMEM,    EAGAIN };

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (err->code == ERR_IO && err->sys == passing[i])
			return true;
	return false;
}

void err_clear(struct err *err)
{
	if (err)
		*err = (struct err){ 0 };
}

const char *err_code_name(enum err_code code)
{
	if ((unsigned)code >= ERR_COUNT)
		code = ERR_INTERNAL;
	return codes[code].name;
}

enum err_code err_code_from_name(const char *name)
{
	for (int i = 0; name && i < ERR_COUNT; i++) {
		if (strcmp(codes[i].name, name) == 0)
			return (enum err_code)i;
	}
	return ERR_INTERNAL;
}

int err_exit_status(enum err_code code)
{
	if ((unsigned)code >= ERR_COUNT)
		code = ERR_INTERNAL;
	return codes[code].exit_status;
}
