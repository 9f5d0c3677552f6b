/* SPDX-License-Identifier: MIT */
/* strv.h - a growing list of strings, as execve takes it: NULL-terminated, each owned. All zero is
 * the empty one, whose `items` is NULL. */
#ifndef COMMON_BASE_STRV_H
#define COMMON_BASE_STRV_H

#include <stddef.h>

struct strv {
	char **items;
	size_t count;
};

/* Takes `text`. */
void strv_add(struct strv *v, char *text);
/* Copies each; NULL: nothing to add. */
void strv_add_all(struct strv *v, char *const *list);
/* A list of copies, owned; NULL for none. */
char **strv_copy(char *const *list);
/* Takes "NAME=value", in the place of an earlier one of that name. */
void strv_set(struct strv *env, char *entry);
/* The value of NAME in such a list, which may be NULL; borrowed, NULL when there is none. */
const char *strv_get(char *const *env, const char *name);
/* The number that a variable of our own environment has; 0 when there is none. */
int env_number(const char *name);
/* Releases a list, which may be NULL; nothing of it stays in freed memory, as it may hold
 * secrets. */
void strv_free(char **items);

#endif
