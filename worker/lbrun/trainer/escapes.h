/* SPDX-License-Identifier: MIT */
/* escapes.h - what a terminal takes for colours and cursors, out of a line. */
#ifndef LBRUN_TRAINER_ESCAPES_H
#define LBRUN_TRAINER_ESCAPES_H

#include <stddef.h>

/* Drops the escape sequences of terminals, in place; the new length. The line ends in NUL. */
size_t escapes_strip(char *line, size_t len);

#endif
