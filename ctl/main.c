/* SPDX-License-Identifier: MIT */
/* ctl/ - lbctl. Here are the program and its table of commands.
 *
 * main.c - lbctl: what a person types to submit runs, to see them and to end them. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "ctl/base/command.h"
#include "ctl/commands.h"

int main(int argc, char **argv)
{
	int fd;

	/* A file or socket that we open must not become somebody's stdout. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	/* A parent may have left it ignored; `lbctl ls | head -1` is to end silently. */
	signal(SIGPIPE, SIG_DFL);
	setlocale(LC_CTYPE, "");
	return ctl_main(argc, argv);
}
