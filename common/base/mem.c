/* SPDX-License-Identifier: MIT */
/* mem.c - malloc, strdup and printf that end the program when there is no memory.
 *
 * Programs of this size cannot do anything sensible without memory, and a path that is never tested
 * would only pretend to. So we end loudly; systemd or lbd starts us again. */
#include "common/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void __attribute__((noreturn)) die(size_t bytes)
{
	fprintf(stderr, "out of memory: %zu bytes\n", bytes);
	abort();
}

void *xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		die(bytes);
	return p;
}

void *xcalloc(size_t count, size_t bytes)
{
	void *p = calloc(count ? count : 1, bytes ? bytes : 1);

	if (!p)
		die(bytes);
	return p;
}

void *xrealloc(void *old, size_t bytes)
{
	void *p = realloc(old, bytes ? bytes : 1);

	if (!p)
		die(bytes);
	return p;
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t bytes)
{
	size_t len = strnlen(text, bytes);
	char *copy = xmalloc(len + 1);

	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *xvasprintf(const char *fmt, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		die(0);
	return text;
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = xvasprintf(fmt, args);
	va_end(args);
	return text;
}

void buf_init(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){ .max = max_bytes };
}

void buf_fini(struct buf *buf)
{
	free(buf->data);
	buf->data = NULL;
	buf->len = 0;
	buf->cap = 0;
}

/* Room for `more` bytes and the NUL. Doubling keeps appends cheap; the maximum keeps a peer from
 * making us eat memory. */
static int reserve(struct buf *buf, size_t more)
{
	size_t need;
	size_t cap = buf->cap ? buf->cap : 64;

	if (buf->len > buf->max || more > buf->max - buf->len)
		return -1;
	if (buf->max == SIZE_MAX && more >= SIZE_MAX - buf->len)
		die(more);
	need = buf->len + more + 1;
	if (need <= buf->cap)
		return 0;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	buf->data = xrealloc(buf->data, cap);
	buf->cap = cap;
	return 0;
}

int buf_add(struct buf *buf, const void *data, size_t len)
{
	if (reserve(buf, len) < 0)
		return -1;
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0 || reserve(buf, (size_t)n) < 0)
		return -1;
	va_start(args, fmt);
	vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, args);
	va_end(args);
	buf->len += (size_t)n;
	return 0;
}

void buf_drop(struct buf *buf, size_t len)
{
	if (len > buf->len)
		len = buf->len;
	if (len == 0)
		return;
	memmove(buf->data, buf->data + len, buf->len - len);
	buf->len -= len;
	buf->data[buf->len] = '\0';
}

char *buf_take(struct buf *buf)
{
	char *data = buf->data ? buf->data : xstrdup("");

	buf->data = NULL;
	buf->len = 0;
	buf->cap = 0;
	return data;
}
