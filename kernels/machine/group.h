/* SPDX-License-Identifier: MIT */
/* group.h - limits of the control group that we run in, a batch job's or a container's, and of all
 * groups above it: what they leave is what the narrowest of them leaves. */
#ifndef KERNELS_MACHINE_GROUP_H
#define KERNELS_MACHINE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* folder: of one group, where the files of its controllers lie. */
typedef void group_see(void *arg, const char *folder);

/* Shows our group and each above it. controller: one of version 1, like "memory"; NULL: version 2. */
void group_each(const char *controller, group_see *see, void *arg);

/* The number behind `key` in a file of lines, or the first number when key is "". */
bool group_number(const char *folder, const char *file, const char *key, uint64_t *value);

#endif
