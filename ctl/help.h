/* SPDX-License-Identifier: MIT */
/* help.h - the table of commands, for people. It is reached by way of `ctl`, as help is in the
 * table. */
#ifndef CTL_HELP_H
#define CTL_HELP_H

#include <stdio.h>

struct command;
struct ctl;
struct err;

/* The row of this name, or NULL. */
const struct command *command_find(const struct ctl *ctl, const char *name);
/* Always -1 with err: what may have been meant. */
int unknown_command(const struct ctl *ctl, const char *name, struct err *err);
void print_overview(const struct ctl *ctl, FILE *to);
void print_help(const struct command *command, FILE *to);

#endif
