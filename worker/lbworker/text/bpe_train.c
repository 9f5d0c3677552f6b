/* SPDX-License-Identifier: MIT */
/* bpe_train.c - the most frequent pair becomes a token, again and again. Counts are kept up to date
 * where a merge changes them; a heap holds pairs by counts that may be too high, and are looked up
 * when they come to the top. */
#include "worker/lbworker/text/bpe_train.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/text/tokenizer_parts.h"

struct pair {
	uint32_t left, right;
	int64_t count;
	uint32_t *word; /* in which it may be; each once or more */
	size_t words, room;
	bool is_touched;
};

struct ranked {
	int64_t count;
	uint32_t pair;
};

struct cut_word {
	uint32_t *symbol;
	uint32_t length;
	int64_t count;
};

struct training {
	struct bpe_trained *out;
	struct cut_word *word;
	size_t words;
	uint32_t *symbols; /* of all words */
	struct pair *pair;
	size_t pairs, pair_room;
	uint32_t *slot; /* hash table of pairs: index and one */
	size_t slots;
	struct ranked *heap;
	size_t ranked, heap_room;
	uint32_t *touched; /* pairs that became more frequent */
	size_t touches, touch_room;
};

/* --- pairs ------------------------------------------------------------------------------------ */

static uint32_t *slot_of(const struct training *t, uint32_t left, uint32_t right)
{
	uint64_t key = (uint64_t)left << 32 | right;
	size_t i = (size_t)((key ^ key >> 29) * 0x9E3779B97F4A7C15ULL >> 20) & (t->slots - 1);

	for (; t->slot[i]; i = (i + 1) & (t->slots - 1)) {
		const struct pair *p = &t->pair[t->slot[i] - 1];
		if (p->left == left && p->right == right)
			break;
	}
	return &t->slot[i];
}

static uint32_t pair_of(struct training *t, uint32_t left, uint32_t right)
{
	if (2 * (t->pairs + 1) > t->slots) {
		t->slots = t->slots ? 2 * t->slots : 1 << 16;
		free(t->slot);
		t->slot = xcalloc(t->slots, sizeof(*t->slot));
		for (size_t i = 0; i < t->pairs; i++)
			*slot_of(t, t->pair[i].left, t->pair[i].right) = (uint32_t)i + 1;
	}
	uint32_t *slot = slot_of(t, left, right);
	if (!*slot) {
		if (t->pairs == t->pair_room) {
			t->pair_room *= 2;
			t->pair = xrealloc(t->pair, t->pair_room * sizeof(*t->pair));
		}
		t->pair[t->pairs++] = (struct pair){ .left = left, .right = right };
		*slot = (uint32_t)t->pairs;
	}
	return *slot - 1;
}

static void note_word(struct pair *p, uint32_t word)
{
	if (p->words > 0 && p->word[p->words - 1] == word)
		return;
	if (p->words == p->room) {
		p->room = p->room ? 2 * p->room : 4;
		p->word = xrealloc(p->word, p->room * sizeof(*p->word));
	}
	p->word[p->words++] = word;
}

/* --- the heap: the highest count, then the lower pair ----------------------------------------- */

static bool comes_first(const struct training *t, const struct ranked *a, const struct ranked *b)
{
	const struct pair *x = &t->pair[a->pair], *y = &t->pair[b->pair];

	if (a->count != b->count)
		return a->count > b->count;
	return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static void push(struct training *t, uint32_t pair)
{
	const struct ranked r = { t->pair[pair].count, pair };

	if (t->ranked == t->heap_room) {
		t->heap_room = t->heap_room ? 2 * t->heap_room : 1024;
		t->heap = xrealloc(t->heap, t->heap_room * sizeof(*t->heap));
	}
	size_t i = t->ranked++;
	while (i > 0 && comes_first(t, &r, &t->heap[(i - 1) / 2])) {
		t->heap[i] = t->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	t->heap[i] = r;
}

static struct ranked pop(struct training *t)
{
	struct ranked top = t->heap[0], last = t->heap[--t->ranked];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < t->ranked; i = child) {
		if (child + 1 < t->ranked && comes_first(t, &t->heap[child + 1], &t->heap[child]))
			child++;
		if (!comes_first(t, &t->heap[child], &last))
			break;
		t->heap[i] = t->heap[child];
	}
	t->heap[i] = last;
	return top;
}

/* --- merging ---------------------------------------------------------------------------------- */

static void change(struct training *t, uint32_t left, uint32_t right, uint32_t word, int64_t by)
{
	uint32_t index = pair_of(t, left, right);
	struct pair *p = &t->pair[index];

	p->count += by * t->word[word].count;
	if (by < 0)
		return;
	if (!p->is_touched) {
		p->is_touched = true;
		if (t->touches == t->touch_room) {
			t->touch_room = t->touch_room ? 2 * t->touch_room : 1024;
			t->touched = xrealloc(t->touched, t->touch_room * sizeof(*t->touched));
		}
		t->touched[t->touches++] = index;
	}
	note_word(p, word);
}

static void merge_in_word(struct training *t, uint32_t word, uint32_t left, uint32_t right,
			  uint32_t token)
{
	uint32_t *s = t->word[word].symbol, length = t->word[word].length, kept = 0;

	for (uint32_t i = 0; i < length; kept++) {
		if (s[i] != left || i + 1 == length || s[i + 1] != right) {
			s[kept] = s[i++];
			continue;
		}
		if (kept > 0) {
			change(t, s[kept - 1], left, word, -1);
			change(t, s[kept - 1], token, word, 1);
		}
		i += 2;
		if (i < length) {
			change(t, right, s[i], word, -1);
			change(t, token, s[i], word, 1);
		}
		s[kept] = token;
	}
	t->word[word].length = kept;
}

/* The token that two make, new or not. */
static uint32_t token_of(struct training *t, uint32_t left, uint32_t right)
{
	struct vocabulary *v = &t->out->vocabulary;
	size_t a, b;
	const char *first = vocabulary_bytes(v, left, &a), *second = vocabulary_bytes(v, right, &b);
	char *both = xmalloc(a + b);

	memcpy(both, first, a);
	memcpy(both + a, second, b);
	uint32_t token = vocabulary_find(v, both, a + b);
	if (token == NO_TOKEN) {
		token = (uint32_t)v->count;
		vocabulary_add(v, token, both, a + b);
	}
	free(both);
	return token;
}

static void merge(struct training *t, uint32_t index)
{
	uint32_t left = t->pair[index].left, right = t->pair[index].right;
	uint32_t token = token_of(t, left, right), *word = t->pair[index].word;
	size_t words = t->pair[index].words;
	struct bpe_trained *out = t->out;

	if (out->merges == out->room) {
		out->room = out->room ? 2 * out->room : 1024;
		out->merge = xrealloc(out->merge, out->room * sizeof(*out->merge));
	}
	out->merge[out->merges++] = (struct bpe_merge){ left, right };
	t->pair[index].word = NULL;
	t->pair[index].words = t->pair[index].room = 0;
	t->pair[index].count = 0;
	t->touches = 0;
	for (size_t i = 0; i < words; i++)
		merge_in_word(t, word[i], left, right, token);
	free(word);
	for (size_t i = 0; i < t->touches; i++) {
		t->pair[t->touched[i]].is_touched = false;
		push(t, t->touched[i]);
	}
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* Bytes in the order of the characters that they are written as. */
static void number_bytes(struct bpe_trained *out, const char *const *specials, size_t count,
			 uint32_t token[256])
{
	uint16_t character[256];
	uint32_t next = 0;

	for (size_t i = 0; i < count; i++)
		vocabulary_add(&out->vocabulary, next++, specials[i], strlen(specials[i]));
	tokenizer_alphabet(character);
	for (unsigned c = 0; c < 0x180; c++)
		for (unsigned b = 0; b < 256; b++)
			if (character[b] == c) {
				char byte = (char)b;
				vocabulary_add(&out->vocabulary, next, &byte, 1);
				token[b] = next++;
			}
}

static void take_words(struct training *t, const struct word_counts *words,
		       const uint32_t token[256])
{
	uint32_t *at = t->symbols = xcalloc(words->used + 1, sizeof(*at));

	t->pair_room = 1024;
	t->pair = xcalloc(t->pair_room, sizeof(*t->pair));
	t->words = words->count;
	t->word = xcalloc(t->words + 1, sizeof(*t->word));
	for (size_t i = 0; i < t->words; i++) {
		const struct word_count *w = &words->word[i];
		t->word[i] = (struct cut_word){ at, w->len, (int64_t)w->count };
		for (uint32_t k = 0; k < w->len; k++)
			*at++ = token[(unsigned char)words->bytes[w->at + k]];
		for (uint32_t k = 0; k + 1 < w->len; k++) {
			const uint32_t *s = t->word[i].symbol;
			uint32_t index = pair_of(t, s[k], s[k + 1]); /* which may move them */
			struct pair *p = &t->pair[index];

			p->count += (int64_t)w->count;
			note_word(p, (uint32_t)i);
		}
	}
	for (size_t i = 0; i < t->pairs; i++)
		push(t, (uint32_t)i);
}

void bpe_train(struct bpe_trained *out, const struct word_counts *words, size_t size,
	       const char *const *specials, size_t special_count)
{
	struct training t = { .out = out };
	uint32_t token[256];

	number_bytes(out, specials, special_count, token);
	take_words(&t, words, token);
	while (out->vocabulary.count < size && t.ranked > 0) {
		struct ranked top = pop(&t);
		int64_t count = t.pair[top.pair].count;
		if (count < 1)
			continue;
		if (count == top.count)
			merge(&t, top.pair);
		else
			push(&t, top.pair);
	}
	for (size_t i = 0; i < t.pairs; i++)
		free(t.pair[i].word);
	free(t.pair);
	free(t.slot);
	free(t.heap);
	free(t.touched);
	free(t.word);
	free(t.symbols);
}

void bpe_trained_fini(struct bpe_trained *t)
{
	vocabulary_fini(&t->vocabulary);
	free(t->merge);
	*t = (struct bpe_trained){ 0 };
}
