/* SPDX-License-Identifier: MIT */
/* tokenizer_parts.c - what follows from a vocabulary: bytes, pairs, where words may end. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <stdio.h>
#include <string.h>

void tokenizer_alphabet(uint16_t character[256])
{
	uint16_t next = 0x100;

	for (unsigned b = 0; b < 256; b++) {
		bool is_seen = (b > 32 && b < 127) || (b > 160 && b != 173);
		character[b] = is_seen ? (uint16_t)b : next++;
	}
}

void tokenizer_find_bytes(struct tokenizer *t)
{
	for (unsigned i = 0; i < 256; i++) {
		char byte = (char)i, name[8];
		int len = snprintf(name, sizeof(name), "<0x%02X>", i);
		t->byte[i] = t->by_bytes ? vocabulary_find(&t->vocabulary, &byte, 1)
					 : vocabulary_find(&t->vocabulary, name, (size_t)len);
	}
}

void tokenizer_pair_all(struct tokenizer *t, const uint32_t *rank)
{
	const struct vocabulary *v = &t->vocabulary;

	for (size_t i = 0; i < v->count; i++) {
		size_t len;
		const char *bytes = vocabulary_bytes(v, (uint32_t)i, &len);
		if (!bytes || vocabulary_find(v, bytes, len) != i)
			continue;
		for (size_t cut = 1; cut < len; cut++) {
			uint32_t left = vocabulary_find(v, bytes, cut);
			uint32_t right = left == NO_TOKEN
						 ? NO_TOKEN
						 : vocabulary_find(v, bytes + cut, len - cut);
			if (right != NO_TOKEN)
				bpe_add(t->bpe, left, right, rank ? rank[i] : (uint32_t)i,
					(uint32_t)i);
		}
	}
}

void tokenizer_cut_at_blanks(struct tokenizer *t)
{
	static const char meta[] = "\xE2\x96\x81";

	if (!t->meta || t->splits > 0)
		return;
	for (size_t i = 0; i < t->vocabulary.count; i++) {
		size_t len, at = 0;
		const char *bytes = vocabulary_bytes(&t->vocabulary, (uint32_t)i, &len);
		while (bytes && len - at >= 3 && memcmp(bytes + at, meta, 3) == 0)
			at += 3;
		if (bytes && memmem(bytes + at, len - at, meta, 3))
			return;
	}
	t->split[t->splits++] = (struct split){ .kind = SPLIT_META_RUNS };
}
