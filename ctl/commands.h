/* SPDX-License-Identifier: MIT */
/* commands.h - the table of commands. */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include <stddef.h>

#include "ctl/base/command.h"

extern const struct command commands[];
extern const size_t command_count;
/* The command that a word of other tools ("cancel", "squeue") stands for; NULL: none. */
const char *other_word(const char *word);

/* Everything that main does; returns the exit status. */
int ctl_main(int argc, char **argv);

#endif
