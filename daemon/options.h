/* SPDX-License-Identifier: MIT */
/* options.h - lbd's command line. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct daemon_options {
	char *home; /* owned; NULL: as path_lb_home says */
	bool foreground, check_config, print_job, recover, verbose;
	int ready_fd;
	int64_t until_ms; /* wall clock; 0 = never */
};

/* Ends the program where there is nothing more to do (--help), or with a line on stderr. */
void daemon_options_read(int argc, char **argv, struct daemon_options *o);

#endif
