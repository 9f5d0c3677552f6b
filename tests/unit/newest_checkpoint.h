/* SPDX-License-Identifier: MIT */
/* newest_checkpoint.h - the newest valid checkpoint of a folder, and what is said of those that are
 * not. */
#ifndef TESTS_UNIT_NEWEST_CHECKPOINT_H
#define TESTS_UNIT_NEWEST_CHECKPOINT_H

#include "tests/unit/unit.h"

#include "common/checkpoint/checkpoints.h"

static char told[1024];

static inline void on_bad(void *arg, const struct checkpoint *c)
{
	size_t len = strlen(told);

	(void)arg;
	snprintf(told + len, sizeof(told) - len, "%s\n", c->why);
}

static char found[256], found_layout[32];

/* The newest valid one of a folder: its step, -1 = it tells none, -2 = there is none. */
static inline int64_t newest_by(const char *layout, const char *pattern, const char *complete_when,
				const char *folder)
{
	struct err err = { 0 };
	struct checkpoint_rules *rules = checkpoint_rules_create(layout, pattern, complete_when,
								 &err);
	struct look look = { .is_deep = true };
	struct checkpoint_list list;
	int64_t i, step = -2;

	if (!rules)
		fail_msg("%s", err.text);
	told[0] = found[0] = '\0';
	assert_int_equal(checkpoints_find(rules, folder, &list, NULL), 0);
	i = checkpoints_newest(rules, &list, &look, NULL, on_bad, NULL);
	if (i >= 0) {
		step = list.items[i].step;
		snprintf(found, sizeof(found), "%s", list.items[i].path);
		snprintf(found_layout, sizeof(found_layout), "%s", list.items[i].layout);
	}
	checkpoint_list_clear(&list);
	checkpoint_rules_destroy(rules);
	return step;
}

static inline int64_t newest(const char *folder)
{
	return newest_by(NULL, NULL, NULL, folder);
}

#endif
