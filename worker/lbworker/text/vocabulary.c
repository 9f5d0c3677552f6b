/* SPDX-License-Identifier: MIT */
/* vocabulary.c - an array by number, and a hash table of numbers by bytes. */
#include "worker/lbworker/text/vocabulary.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/mem.h"

void vocabulary_fini(struct vocabulary *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->word[i].bytes);
	free(v->word);
	free(v->slot);
	*v = (struct vocabulary){ 0 };
}

static uint32_t *slot_of(const struct vocabulary *v, const char *bytes, size_t len)
{
	size_t i = XXH3_64bits(bytes, len) & (v->slots - 1);

	while (v->slot[i] != NO_TOKEN) {
		const struct word *w = &v->word[v->slot[i]];
		if (w->len == len && memcmp(w->bytes, bytes, len) == 0)
			break;
		i = (i + 1) & (v->slots - 1);
	}
	return &v->slot[i];
}

static void grow_table(struct vocabulary *v)
{
	uint32_t *old = v->slot;
	size_t count = v->slots;

	v->slots = count ? 2 * count : 1024;
	v->slot = xmalloc(v->slots * sizeof(*v->slot));
	memset(v->slot, 0xFF, v->slots * sizeof(*v->slot));
	for (size_t i = 0; i < count; i++)
		if (old[i] != NO_TOKEN)
			*slot_of(v, v->word[old[i]].bytes, v->word[old[i]].len) = old[i];
	free(old);
}

static void reserve(struct vocabulary *v, uint32_t token)
{
	size_t room = v->room ? v->room : 256;

	while (room <= token)
		room *= 2;
	if (room > v->room) {
		v->word = xrealloc(v->word, room * sizeof(*v->word));
		memset(v->word + v->room, 0, (room - v->room) * sizeof(*v->word));
		v->room = room;
	}
	if (token >= v->count)
		v->count = (size_t)token + 1;
}

bool vocabulary_add_name(struct vocabulary *v, uint32_t token, const char *bytes, size_t len)
{
	if (token >= VOCABULARY_MAX)
		return false;
	reserve(v, token);
	struct word *w = &v->word[token];
	if (w->bytes)
		return false;
	w->bytes = xmalloc(len + 1);
	if (len > 0)
		memcpy(w->bytes, bytes, len);
	w->bytes[len] = '\0';
	w->len = len;
	return true;
}

bool vocabulary_add(struct vocabulary *v, uint32_t token, const char *bytes, size_t len)
{
	if (!vocabulary_add_name(v, token, bytes, len))
		return false;
	if (2 * (v->used + 1) > v->slots)
		grow_table(v);
	uint32_t *slot = slot_of(v, bytes, len);
	if (*slot == NO_TOKEN) {
		*slot = token;
		v->used++;
	}
	return true;
}

uint32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t len)
{
	return v->slots ? *slot_of(v, bytes, len) : NO_TOKEN;
}

const char *vocabulary_bytes(const struct vocabulary *v, uint32_t token, size_t *len)
{
	if (token >= v->count || !v->word[token].bytes)
		return NULL;
	*len = v->word[token].len;
	return v->word[token].bytes;
}
