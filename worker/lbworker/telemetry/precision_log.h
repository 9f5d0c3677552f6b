/* SPDX-License-Identifier: MIT */
/* precision_log.h - what became of each operand of few bits, as lines of JSON and as charts.
 *
 * A line of precision.jsonl is one operand of one logged step:
 *   step, layer, module (qkv, out, up, down, output), slot (recipe.h), count
 *   saturated, zeroed   shares of the elements: beyond the largest number; not 0 before, 0 after
 *   amax, scale_min, scale_max
 *   binades             [first, counts...]: of elements with |x/s| from 2^first on, a binade each
 *   sqnr_db             10 log10(sum x^2 / sum (x - x')^2); 0/0 and beyond: left out */
#ifndef LBWORKER_PRECISION_LOG_H
#define LBWORKER_PRECISION_LOG_H

#include "worker/lbworker/recipes/precision.h"
#include "worker/lbworker/telemetry/tensorboard.h"

/* A step's operands: lines to `path` (appended), scalars to tb (may be NULL) under
 * precision/SLOT/WHAT/layers.L.MODULE. -1 with err when the file cannot be written. */
int precision_log(const struct precision *precision, int64_t step, const char *path,
		  struct tensorboard *tb, struct err *err);

#endif
