/* SPDX-License-Identifier: MIT */
/* obstacle.h - what on the way to a file keeps us from it: the system's error names the whole
 * path. */
#ifndef LBRUN_TRAINER_OBSTACLE_H
#define LBRUN_TRAINER_OBSTACLE_H

/* "the folder /home/bob is closed to ada (mode 0700, of bob)": why this path cannot be entered, or,
 * where it is a file, be run. Owned; NULL: nothing is in the way as far as can be seen. */
char *obstacle_to_folder(const char *path);
/* A name without a slash is looked for along `search` (PATH; NULL: nowhere). */
char *obstacle_to_program(const char *name, const char *search);

#endif
