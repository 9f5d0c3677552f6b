/* SPDX-License-Identifier: MIT */
/* rules.h - one rule of precision.h from its words. */
#ifndef LBWORKER_RULES_H
#define LBWORKER_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/recipes/precision.h"

enum { RULE_RANGES = 8, RULE_WORD_BYTES = 256 };

struct range {
	int64_t first, last;
};

struct rule {
	struct range steps;
	struct range layers[RULE_RANGES];
	size_t layer_ranges;        /* 0: all */
	unsigned modules, products; /* bits of the enums; 0: all */
	char recipe[RULE_WORD_BYTES];
};

/* `layers`: how many there are, for those that count from the end. */
int rule_parse(struct rule *out, const char *text, size_t layers, struct err *err);
bool rule_holds(const struct rule *rule, int64_t step); /* somewhere */
bool rule_fits(const struct rule *rule, int64_t step, size_t layer, enum module module,
	       enum product product);

/* One of the names of a module, in torchtitan or Hugging Face, has `part` in it. */
bool module_is_called(enum module module, size_t layer, const char *part);

#endif
