/* SPDX-License-Identifier: MIT */
/* log.h - one line per fact on stderr: `<level> <program>: text key=value …`.
 *
 * Under journald (JOURNAL_STREAM set) lines carry the sd-daemon prefix <N> instead of the level's
 * name; elsewhere an RFC 3339 UTC time stands in front. Control characters never reach the log.
 * errno is preserved by every call. */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_init(const char *program, enum log_level max_level);
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
