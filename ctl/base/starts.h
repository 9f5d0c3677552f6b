/* SPDX-License-Identifier: MIT */
/* starts.h - what starts took, phase by phase, in words: of one launch, or summed by goodput. */
#ifndef CTL_BASE_STARTS_H
#define CTL_BASE_STARTS_H

#include <jansson.h>

#include "common/base/clock.h"
#include "ctl/base/text.h"

/* Of lbrun's phases; those that a trainer tells are their own words (docs/PROTOCOL.md). */
const char *starts_words(const char *phase);

/* Of {PHASE: number …}. */
double starts_sum(json_t *phases);

/* "imports 20s, compile 15s": the longest first, each `each` seconds for one of the object's
 * numbers; what is less than a fiftieth of all is left out. Cleaned for that stream, owned by the
 * caller. */
char *starts_text(json_t *phases, double each, const struct style *style);

/* Tenths below ten seconds, which duration_text leaves out. */
const char *span_text(double seconds, char out[CLOCK_TEXT_MAX]);

#endif
