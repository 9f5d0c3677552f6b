/* SPDX-License-Identifier: MIT */
/* metrics/ - runs as numbers for Prometheus.
 *
 * metrics.h - the answer of verb `top` in its text format (version 0.0.4). Pure. */
#ifndef CTL_METRICS_METRICS_H
#define CTL_METRICS_METRICS_H

#include <jansson.h>

/* `answer` NULL: lbd did not answer, and that is all there is to tell. Owned by the caller. */
char *metrics_text(const json_t *answer);

#endif
