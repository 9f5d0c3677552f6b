/* SPDX-License-Identifier: MIT */
/* caught.h - does a batch script look itself at how what it starts ends, and then start something
 * else: "while ! srun ...", "srun ... || srun ...", "for i in 1 2 3; do srun ... && break"? A reader
 * of words, no shell. */
#ifndef LBRUN_END_CAUGHT_H
#define LBRUN_END_CAUGHT_H

#include <stdbool.h>

bool failures_are_caught(const char *text);

#endif
