/* SPDX-License-Identifier: MIT */
/* unicode_table.h - what unicode_table.c holds; unicode.h is the way to ask. */
#ifndef LBWORKER_UNICODE_TABLE_H
#define LBWORKER_UNICODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Code points from first to last, both included, in order; what is in no run has 0. */
struct unicode_run {
	uint32_t first, last;
	uint32_t value;
};

/* `whole` is canonically `first`, `second`; second 0: first alone. */
struct unicode_pair {
	uint32_t whole, first, second;
};

extern const struct unicode_run unicode_kinds[]; /* enum unicode_kind */
extern const size_t unicode_kind_count;
extern const struct unicode_run unicode_combining[]; /* combining classes */
extern const size_t unicode_combining_count;
extern const struct unicode_pair unicode_decompositions[]; /* by whole */
extern const size_t unicode_decomposition_count;
extern const struct unicode_pair unicode_compositions[]; /* by first, second */
extern const size_t unicode_composition_count;
extern const struct unicode_run
	unicode_young_runs[]; /* since Unicode 14: the two letters of a category */
extern const size_t unicode_young_count;

#endif
