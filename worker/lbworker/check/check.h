/* SPDX-License-Identifier: MIT */
/* check.h - lbworker check, as a command. */
#ifndef LBWORKER_CHECK_CHECK_H
#define LBWORKER_CHECK_CHECK_H

enum { CHECK_EXIT_NODE = 5 }; /* a node is broken */

/* argv[0] is the command's name. The exit status: 0, 2 for words that are wrong, CHECK_EXIT_NODE. */
int check_command(int argc, char **argv);

#endif
