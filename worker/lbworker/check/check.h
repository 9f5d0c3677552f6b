/* SPDX-License-Identifier: MIT */
/* check.h - lbworker check, as a command. */
#ifndef LBWORKER_CHECK_CHECK_H
#define LBWORKER_CHECK_CHECK_H

/* argv[0] is the command's name. The exit status: 0, 1 when nothing could be checked, 2 for words
 * that are wrong, CHECK_EXIT_NODE (common/check/node_report.h): a node is broken. */
int check_command(int argc, char **argv);

#endif
