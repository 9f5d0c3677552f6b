/* SPDX-License-Identifier: MIT */
/* log.c - writes lines to stderr, as journald or a person reads them.
 *
 * A line is one write(2), so that lines of several processes on one stderr never interleave.
 *
 * JOURNAL_STREAM is inherited by children whose stderr goes elsewhere (a job's out.log), so it
 * counts only when it names the very file that our stderr is: device and inode, as systemd.exec(5)
 * tells programs to check. */
#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/text.h"

enum { LOG_LINE_MAX = 2048 };

static const struct {
	const char *name;
	int syslog;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", 3 },
	[LOG_LEVEL_WARN] = { "warn", 4 },
	[LOG_LEVEL_INFO] = { "info", 6 },
	[LOG_LEVEL_DEBUG] = { "debug", 7 },
};

static char program_name[32] = "lb";
static enum log_level max_shown = LOG_LEVEL_INFO;
static bool to_journal;

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, ours) == 0;
}

void log_init(const char *program, enum log_level max_level)
{
	int saved = errno;

	snprintf(program_name, sizeof(program_name), "%s", program);
	max_shown = max_level;
	to_journal = stderr_is_journal();
	errno = saved;
}

static size_t put_prefix(char *line, size_t size, enum log_level level)
{
	struct timespec now;
	struct tm tm;
	char stamp[32];
	int n;

	if (to_journal) {
		n = snprintf(line, size, "<%d>%s: ", levels[level].syslog, program_name);
		return n < 0 ? 0 : (size_t)n;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	n = snprintf(line, size, "%s.%03ldZ %s %s: ", stamp, now.tv_nsec / 1000000,
		     levels[level].name, program_name);
	return n < 0 ? 0 : (size_t)n;
}

static void log_line(enum log_level level, const char *fmt, va_list args)
{
	char line[LOG_LINE_MAX + 2];
	int saved = errno;
	size_t len;
	ssize_t n;

	if (level > max_shown)
		return;
	len = put_prefix(line, LOG_LINE_MAX, level);
	errno = saved; /* for %m */
	vsnprintf(line + len, LOG_LINE_MAX - len, fmt, args);
	text_clean(line);
	len = strlen(line);
	line[len++] = '\n';
	do
		n = write(STDERR_FILENO, line, len);
	while (n < 0 && errno == EINTR);
	errno = saved;
}

void log_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line(LOG_LEVEL_ERROR, fmt, args);
	va_end(args);
}

void log_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line(LOG_LEVEL_WARN, fmt, args);
	va_end(args);
}

void log_info(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line(LOG_LEVEL_INFO, fmt, args);
	va_end(args);
}

void log_debug(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line(LOG_LEVEL_DEBUG, fmt, args);
	va_end(args);
}
