/* SPDX-License-Identifier: MIT */
/* amounts.h - sizes, memory and time limits as people write them. */
#ifndef COMMON_CONFIG_AMOUNTS_H
#define COMMON_CONFIG_AMOUNTS_H

#include <stdint.h>

#include "common/base/err.h"

/* "200G", "512M", "1024" (bytes) → bytes; -1 with err. */
int64_t bytes_parse(const char *text, struct err *err);
/* "16G", "512M", "1024" (MB) → MB; -1 with err. */
int64_t mem_parse_mb(const char *text, struct err *err);
/* "20h", "2d", or Slurm's own forms, "D-HH:MM:SS" → ms, from one second to 52 weeks; -1 with
 * err. */
int time_limit_parse(const char *text, int64_t *out_ms, struct err *err);

#endif
