/* SPDX-License-Identifier: MIT */
/* slurm_releases.h - the releases of Slurm that lowbits knows, in order: each has a libslurm of its
 * own, whose number grows by one. */
#ifndef CTL_BASE_SLURM_RELEASES_H
#define CTL_BASE_SLURM_RELEASES_H

/* The place of "24.11.5" among them, -1 = none of them, or NULL. */
int slurm_release_index(const char *version);
/* "24.11" for libslurm.so.42; NULL = none of them. */
const char *slurm_release_of_library(int number);

#endif
