/* SPDX-License-Identifier: MIT */
/* script_words.h - what a batch script's words tell of how its launchers end. A reader of words, no
 * shell. */
#ifndef LBRUN_END_SCRIPT_WORDS_H
#define LBRUN_END_SCRIPT_WORDS_H

#include <stdbool.h>

/* Does it look itself at how what it starts ends, and then start something else: "while ! srun ...",
 * "srun ... || srun ...", "for i in 1 2 3; do srun ... && break"? */
bool failures_are_caught(const char *text);

/* Does it start something in the background, a server or a monitor, and then its trainer? How the
 * one ends when the other is done says nothing. */
bool has_background(const char *text);

/* Does it end with a status that it kept, "exit $rc", and not with that of a pipe's last command,
 * or of a "wait" for all? */
bool hands_status_on(const char *text);

#endif
