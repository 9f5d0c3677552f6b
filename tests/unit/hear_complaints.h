/* SPDX-License-Identifier: MIT */
/* hear_complaints.h - what is made of a trainer's complaints, for tests of several subjects. */
#ifndef TESTS_UNIT_HEAR_COMPLAINTS_H
#define TESTS_UNIT_HEAR_COMPLAINTS_H

#include "tests/unit/unit.h"

#include "worker/lbrun/complaints/complaints.h"
#include "worker/lbrun/trainer/prefixes.h"

static struct complaints c;
static int64_t now_ms;

/* Line by line, as of that rank; -1: of the one that launchers put in front. */
static inline void hear(const char *text, const char *node, int64_t rank)
{
	struct prefixes *prefixes = prefixes_create(false, 1000);

	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[1000];
		struct prefix prefix;
		struct heard heard = {
			.node = node, .rank = rank, .is_stderr = true, .now_ms = now_ms
		};

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		heard.text = prefixes_skip(prefixes, line, &prefix);
		heard.len = strlen(heard.text);
		if (rank < 0)
			heard.rank = prefix.rank;
		complaints_hear(&c, &heard);
		text += len + (text[len] == '\n');
	}
	prefixes_destroy(prefixes);
}

static inline const char *best(void)
{
	const struct complaint *b = complaints_best(&c, now_ms);

	return b ? b->text : "";
}

#define TRACE \
	"Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in <module>\n    main()\n"

#endif
