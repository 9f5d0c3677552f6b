/* SPDX-License-Identifier: MIT */
/* word_counts.h - how often each word occurs in texts. */
#ifndef LBWORKER_WORD_COUNTS_H
#define LBWORKER_WORD_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct word_count {
	size_t at; /* in bytes */
	uint32_t len;
	uint64_t count;
};

struct word_counts {             /* all zero: empty */
	struct word_count *word; /* in the order of their first occurrence */
	size_t count, room;
	char *bytes; /* of all words */
	size_t used, bytes_room;
	uint32_t *slot; /* hash table: index and one, 0 where free */
	size_t slots;
};

void word_counts_fini(struct word_counts *w);
/* One more of text[0..len). Words are at most 4 GiB, and fewer than 2^32. */
void word_counts_add(struct word_counts *w, const char *text, uint32_t len);

#endif
