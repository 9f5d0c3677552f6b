/* SPDX-License-Identifier: MIT */
/* unicode.c - the table's runs as one byte for each code point; normal form C by the standard's
 * steps. */
#include "worker/lbworker/unicode/unicode.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/lbworker/unicode/unicode_table.h"

uint8_t unicode_kinds_of[UNI_LIMIT + 1];

static void fill(void)
{
	for (size_t i = 0; i < unicode_kind_count; i++)
		for (uint32_t c = unicode_kinds[i].first; c <= unicode_kinds[i].last; c++)
			unicode_kinds_of[c] = (uint8_t)unicode_kinds[i].value;
}

void unicode_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill);
}

/* --- UTF-8 ---------------------------------------------------------------------------------- */

static bool continues(const unsigned char *at, const unsigned char *end, unsigned count)
{
	if ((size_t)(end - at) <= count)
		return false;
	for (unsigned i = 1; i <= count; i++)
		if ((at[i] & 0xC0) != 0x80)
			return false;
	return true;
}

uint32_t unicode_decode_long(const unsigned char *at, const unsigned char *end, unsigned *width)
{
	uint32_t c = UNI_BAD;

	*width = 1;
	if (*at < 0x80)
		return *at;
	if (*at >= 0xC2 && *at < 0xE0 && continues(at, end, 1)) {
		*width = 2;
		return (*at & 0x1FU) << 6 | (at[1] & 0x3FU);
	}
	if (*at >= 0xE0 && *at < 0xF0 && continues(at, end, 2)) {
		c = (*at & 0xFU) << 12 | (at[1] & 0x3FU) << 6 | (at[2] & 0x3FU);
		if (c < 0x800 || (c >= 0xD800 && c < 0xE000))
			return UNI_BAD;
		*width = 3;
	} else if (*at >= 0xF0 && *at < 0xF5 && continues(at, end, 3)) {
		c = (*at & 7U) << 18 | (at[1] & 0x3FU) << 12 | (at[2] & 0x3FU) << 6 |
		    (at[3] & 0x3FU);
		if (c < 0x10000 || c >= UNI_LIMIT)
			return UNI_BAD;
		*width = 4;
	}
	return c;
}

unsigned unicode_encode(uint32_t c, unsigned char *out)
{
	if (c < 0x80) {
		out[0] = (unsigned char)c;
		return 1;
	}
	unsigned width = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (unsigned i = width - 1; i > 0; i--, c >>= 6)
		out[i] = (unsigned char)(0x80 | (c & 0x3F));
	out[0] = (unsigned char)((0xF00 >> width) | c);
	return width;
}

/* --- NFC ------------------------------------------------------------------------------------ */

enum {
	HANGUL = 0xAC00,
	LEAD = 0x1100,
	VOWEL = 0x1161,
	TRAIL = 0x11A7,
	LEADS = 19,
	VOWELS = 21,
	TRAILS = 28,
	SYLLABLES = LEADS * VOWELS * TRAILS
};

/* One character and what stirs behind it, while it is taken apart and put together again. */
struct cluster {
	struct part {
		uint32_t c, class; /* below UNI_CLASSES */
	} * part;
	size_t count, room;
};
enum { UNI_CLASSES = 256 };

static uint32_t combining_class(uint32_t c)
{
	size_t low = 0, high = unicode_combining_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (unicode_combining[middle].last < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < unicode_combining_count && unicode_combining[low].first <= c
		       ? unicode_combining[low].value
		       : 0;
}

static void add_part(struct cluster *k, uint32_t c)
{
	if (k->count == k->room) {
		k->room = k->room ? 2 * k->room : 16;
		k->part = xrealloc(k->part, k->room * sizeof(*k->part));
	}
	k->part[k->count++] = (struct part){ c, combining_class(c) };
}

static const struct unicode_pair *decomposition(uint32_t c)
{
	size_t low = 0, high = unicode_decomposition_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (unicode_decompositions[middle].whole < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < unicode_decomposition_count && unicode_decompositions[low].whole == c
		       ? &unicode_decompositions[low]
		       : NULL;
}

/* Only the first half is ever to be taken apart further. */
static void decompose(struct cluster *k, uint32_t c)
{
	uint32_t tail[8];
	size_t tails = 0;

	if (c >= HANGUL && c < HANGUL + SYLLABLES) {
		uint32_t s = c - HANGUL;
		add_part(k, LEAD + s / (VOWELS * TRAILS));
		add_part(k, VOWEL + s % (VOWELS * TRAILS) / TRAILS);
		if (s % TRAILS)
			add_part(k, TRAIL + s % TRAILS);
		return;
	}
	for (const struct unicode_pair *p; tails < 8 && (p = decomposition(c)) != NULL;
	     c = p->first)
		if (p->second)
			tail[tails++] = p->second;
	add_part(k, c);
	while (tails > 0)
		add_part(k, tail[--tails]);
}

/* count marks by their classes; those of one class stay in their order. */
static void sort_run(struct part *run, size_t count)
{
	size_t at[UNI_CLASSES + 1] = { 0 };
	struct part *sorted = xmalloc(count * sizeof(*sorted));

	for (size_t i = 0; i < count; i++)
		at[run[i].class + 1]++;
	for (size_t c = 1; c <= UNI_CLASSES; c++)
		at[c] += at[c - 1];
	for (size_t i = 0; i < count; i++)
		sorted[at[run[i].class]++] = run[i];
	memcpy(run, sorted, count * sizeof(*run));
	free(sorted);
}

static void sort_marks(struct cluster *k)
{
	for (size_t i = 0, end; i < k->count; i = end) {
		bool is_sorted = true;
		end = i + 1;
		if (k->part[i].class == 0)
			continue;
		for (; end < k->count && k->part[end].class != 0; end++)
			is_sorted = is_sorted && k->part[end - 1].class <= k->part[end].class;
		if (!is_sorted)
			sort_run(k->part + i, end - i);
	}
}

/* What two characters make, or 0. */
static uint32_t composition(uint32_t first, uint32_t second)
{
	size_t low = 0, high = unicode_composition_count;

	if (first >= LEAD && first < LEAD + LEADS && second >= VOWEL && second < VOWEL + VOWELS)
		return HANGUL + ((first - LEAD) * VOWELS + (second - VOWEL)) * TRAILS;
	if (first >= HANGUL && first < HANGUL + SYLLABLES && (first - HANGUL) % TRAILS == 0 &&
	    second > TRAIL && second < TRAIL + TRAILS)
		return first + second - TRAIL;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct unicode_pair *p = &unicode_compositions[middle];
		if (p->first < first || (p->first == first && p->second < second))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == unicode_composition_count)
		return 0;
	const struct unicode_pair *p = &unicode_compositions[low];
	return p->first == first && p->second == second ? p->whole : 0;
}

static void compose(struct cluster *k)
{
	size_t starter = SIZE_MAX, kept = 0;
	uint32_t before = 0; /* class of the last part kept since the starter */

	for (size_t i = 0; i < k->count; i++) {
		struct part p = k->part[i];
		bool is_next = starter != SIZE_MAX && kept == starter + 1;
		uint32_t whole = 0;
		if (starter != SIZE_MAX && (is_next || before < p.class))
			whole = composition(k->part[starter].c, p.c);
		if (whole) {
			k->part[starter].c = whole;
			continue;
		}
		if (p.class == 0)
			starter = kept;
		before = p.class;
		k->part[kept++] = p;
	}
	k->count = kept;
}

static int put_cluster(struct cluster *k, struct buf *out)
{
	unsigned char bytes[4];

	sort_marks(k);
	compose(k);
	for (size_t i = 0; i < k->count; i++)
		if (buf_add(out, bytes, unicode_encode(k->part[i].c, bytes)))
			return -1;
	k->count = 0;
	return 0;
}

/* From the character before one that stirs to the last one that does. Returns its end, or NULL. */
static const unsigned char *put_stirred(struct cluster *k, const unsigned char *at,
					const unsigned char *end, struct buf *out)
{
	unsigned width;
	bool is_first = true;

	for (; at < end; at += width, is_first = false) {
		uint32_t c = unicode_decode(at, end, &width);
		if (c == UNI_BAD || (!is_first && !(unicode_kinds_of[c] & UNI_STIRS)))
			break;
		decompose(k, c);
	}
	return put_cluster(k, out) ? NULL : at;
}

int unicode_nfc(const char *text, size_t len, struct buf *out)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + len;
	const unsigned char *copied = at, *last = at; /* last: the character before `at` */
	struct cluster k = { 0 };
	bool is_full = false;
	unsigned width;

	unicode_init();
	while (at < end && !is_full) {
		if (*at < 0xCC) { /* below U+0300 nothing stirs */
			last = at;
			at += *at < 0xC0 ? 1 : 2;
			if (at > end)
				at = end;
			continue;
		}
		uint32_t c = unicode_decode(at, end, &width);
		if (!(unicode_kinds_of[c] & UNI_STIRS)) {
			last = at;
			at += width;
			continue;
		}
		unsigned last_width;
		if (last < copied || last == at ||
		    unicode_decode(last, end, &last_width) == UNI_BAD || last + last_width != at)
			last = at; /* nothing before it that it could join */
		is_full = buf_add(out, copied, (size_t)(last - copied)) != 0;
		at = is_full ? at : put_stirred(&k, last, end, out);
		is_full = is_full || !at;
		copied = last = at;
	}
	free(k.part);
	return is_full || buf_add(out, copied, (size_t)(end - copied)) ? -1 : 0;
}

int unicode_young(const char *category, struct buf *out)
{
	int rc = 0;

	for (size_t i = 0; i < unicode_young_count && rc == 0; i++) {
		const struct unicode_run *r = &unicode_young_runs[i];
		if (r->value >> 8 == (unsigned char)category[0] &&
		    (category[1] == '\0' || (r->value & 0xFF) == (unsigned char)category[1]))
			rc = buf_addf(out, "\\x{%x}-\\x{%x}", r->first, r->last);
	}
	return rc;
}
