/* SPDX-License-Identifier: MIT */
/* strv.c - lists of strings that grow by doubling. */
#include "common/base/strv.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static void wipe(char *text)
{
	explicit_bzero(text, strlen(text));
	free(text);
}

void strv_add(struct strv *v, char *text)
{
	v->items = xrealloc(v->items, (v->count + 2) * sizeof(char *));
	v->items[v->count++] = text;
	v->items[v->count] = NULL;
}

void strv_add_all(struct strv *v, char *const *list)
{
	for (; list && *list; list++)
		strv_add(v, xstrdup(*list));
}

char **strv_copy(char *const *list)
{
	struct strv v = { 0 };

	strv_add_all(&v, list);
	return v.items;
}

void strv_set(struct strv *env, char *entry)
{
	size_t name = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], entry, name) != 0)
			continue;
		wipe(env->items[i]);
		env->items[i] = entry;
		return;
	}
	strv_add(env, entry);
}

const char *strv_get(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

int env_number(const char *name)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : 0;
}

void strv_free(char **items)
{
	for (char **item = items; item && *item; item++)
		wipe(*item);
	free(items);
}
