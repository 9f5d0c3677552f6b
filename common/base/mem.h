/* SPDX-License-Identifier: MIT */
/* mem.h - allocation that cannot fail: out of memory ends the program with one line (abort).
 * Everything returned is owned by the caller and released with free(). */
#ifndef COMMON_BASE_MEM_H
#define COMMON_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes);
void *xrealloc(void *old, size_t bytes);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t bytes);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

/* A growing byte buffer with a maximum. `data` is always NUL-terminated once anything was
 * added. init/fini: embedded; the memory is released by buf_fini. */
struct buf {
	char *data;
	size_t len, cap, max;
};
void buf_init(struct buf *buf, size_t max_bytes);
void buf_fini(struct buf *buf);
/* 0, or -1 when it would grow past max (the buffer is then unchanged). */
int buf_add(struct buf *buf, const void *data, size_t len);
int buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drops the first `len` bytes. */
void buf_drop(struct buf *buf, size_t len);
/* The caller takes the memory; the buffer is empty again. */
char *buf_take(struct buf *buf);

#endif
