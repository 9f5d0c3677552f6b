/* SPDX-License-Identifier: MIT */
/* batch_counts.h - counts as options write them. Slurm's have 32 bits: what no cluster has stops at
 * the largest, UINT32_MAX. */
#ifndef SLURM_BATCH_BATCH_COUNTS_H
#define SLURM_BATCH_BATCH_COUNTS_H

#include <stdint.h>

/* The product; both are counts already. */
int64_t batch_times(int64_t a, int64_t b);

/* What a word begins with: digits, with a factor as Slurm has them (2k is 2048); a type alone is
 * one of it. */
int64_t batch_count_of(const char *word);
/* "a100:4,2" -> 6; "a100" -> 1; "2k" -> 2048; NULL -> 0. */
int64_t batch_sum_counts(const char *list);

/* "gpu:a100:4,tmp:1,gpu" -> 5; with or without "gres:" or "gres/" in front. NULL -> 0. */
int64_t batch_gpus_of_gres(const char *list);

#endif
