/* SPDX-License-Identifier: MIT */
/* ctl/ - lbctl. Here are the program and its table of commands.
 *
 * main.c - lbctl: what a person types to submit runs, to see them and to end them. */
#include <locale.h>
#include <signal.h>

#include "common/base/files.h"
#include "common/base/procs.h"
#include "ctl/commands.h"

int main(int argc, char **argv)
{
	file_fill_stdio();
	proc_take_signals();
	/* A parent may have left it ignored; `lbctl ls | head -1` is to end silently. */
	signal(SIGPIPE, SIG_DFL);
	setlocale(LC_CTYPE, "");
	return ctl_main(argc, argv);
}
