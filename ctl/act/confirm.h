/* SPDX-License-Identifier: MIT */
/* confirm.h - asks the person at the terminal. */
#ifndef CTL_ACT_CONFIRM_H
#define CTL_ACT_CONFIRM_H

#include <stdbool.h>

struct err;

/* Is there a person at the terminal to be asked? */
bool can_ask(void);
/* Reads the answer to what was just asked: 0 for "y", else -1 with err. */
int says_yes(struct err *err);

#endif
