/* SPDX-License-Identifier: MIT */
/* base/ - what knows nothing of runs: errors, memory, files, JSON, text, processes.
 *
 * err.h - one way to say what went wrong, from the lowest function to the person's terminal.
 *
 * A function that can fail returns 0, or -1 with `err` set. `struct err` lives on the caller's
 * stack; {0} means "no error". The code travels to clients by name (err_code_name) and ends as
 * the exit status of the program (err_exit_status). */
#ifndef COMMON_BASE_ERR_H
#define COMMON_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

enum err_code {
	ERR_NONE,
	ERR_USAGE,     /* bad input: command line, config, spec, message */
	ERR_NOT_FOUND, /* no such run, file, checkpoint */
	ERR_LOCKED,    /* already running, name taken, or held by somebody else */
	ERR_DAEMON,    /* lbd cannot be reached */
	ERR_REFUSED,   /* the peer may not do this */
	ERR_SCHEDULER, /* Slurm cannot be reached, or said no */
	ERR_TIMEOUT,
	ERR_IO,       /* the system said no: disk full, no permission, … */
	ERR_INTERNAL, /* our own mistake */
	ERR_COUNT
};

enum { ERR_TEXT_BYTES = 504 };

struct err {
	enum err_code code;
	int sys;                   /* errno of err_errno, else 0 */
	char text[ERR_TEXT_BYTES]; /* one line, no newline; control characters become '?' */
};

/* Both return -1 always, so that a failure is one statement: `return err_set(err, …)`.
 * err_set keeps the FIRST error; err_wrap puts context in front of it: "cancel: run x: gone",
 * unless it stands there already.
 * A NULL err is allowed everywhere. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_set with ": <strerror(errno)>" appended; ERR_IO. */
int err_errno(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The machine is at the end of something (disk, descriptors, memory), its disk fails or is
 * read-only for a while, or a server of files does not answer: the same may succeed later, and says
 * nothing about what was asked for. */
bool err_is_passing(const struct err *err);

void err_clear(struct err *err);

/* "not_found" and back; an unknown name gives ERR_INTERNAL. */
const char *err_code_name(enum err_code code);
enum err_code err_code_from_name(const char *name);

/* 0 ok, 2 usage, 3 not found, 4 locked, 5 daemon, 6 refused, 7 scheduler, 8 timeout, 9 the rest.
 * (1 is left to "the run failed or was killed".) */
int err_exit_status(enum err_code code);

#endif
