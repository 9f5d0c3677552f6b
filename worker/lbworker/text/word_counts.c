/* SPDX-License-Identifier: MIT */
/* word_counts.c - a hash table of words; their bytes lie in one piece. */
#include "worker/lbworker/text/word_counts.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/mem.h"

void word_counts_fini(struct word_counts *w)
{
	free(w->word);
	free(w->bytes);
	free(w->slot);
	*w = (struct word_counts){ 0 };
}

static uint32_t *slot_of(const struct word_counts *w, const char *text, uint32_t len)
{
	size_t i = XXH3_64bits(text, len) & (w->slots - 1);

	for (; w->slot[i]; i = (i + 1) & (w->slots - 1)) {
		const struct word_count *found = &w->word[w->slot[i] - 1];
		if (found->len == len && memcmp(w->bytes + found->at, text, len) == 0)
			break;
	}
	return &w->slot[i];
}

static void grow(struct word_counts *w)
{
	w->slots = w->slots ? 2 * w->slots : 1 << 16;
	free(w->slot);
	w->slot = xcalloc(w->slots, sizeof(*w->slot));
	for (size_t i = 0; i < w->count; i++)
		*slot_of(w, w->bytes + w->word[i].at, w->word[i].len) = (uint32_t)i + 1;
}

static void keep(struct word_counts *w, const char *text, uint32_t len)
{
	if (w->count == w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->word = xrealloc(w->word, w->room * sizeof(*w->word));
	}
	if (w->used + len > w->bytes_room) {
		w->bytes_room = 2 * (w->used + len);
		w->bytes = xrealloc(w->bytes, w->bytes_room);
	}
	memcpy(w->bytes + w->used, text, len);
	w->word[w->count++] = (struct word_count){ .at = w->used, .len = len, .count = 1 };
	w->used += len;
}

void word_counts_add(struct word_counts *w, const char *text, uint32_t len)
{
	if (2 * (w->count + 1) > w->slots)
		grow(w);
	uint32_t *slot = slot_of(w, text, len);
	if (*slot) {
		w->word[*slot - 1].count++;
		return;
	}
	keep(w, text, len);
	*slot = (uint32_t)w->count;
}
