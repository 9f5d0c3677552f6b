/* SPDX-License-Identifier: MIT */
/* confirm.c - asks the person at the terminal. */
#include <stdio.h>
#include <unistd.h>

#include "common/base/err.h"
#include "ctl/act/confirm.h"

bool can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* The end of the input (Ctrl-D) is a no, too. */
int says_yes(struct err *err)
{
	char answer[8];

	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		fputc('\n', stderr);
	else if (answer[0] == 'y' || answer[0] == 'Y')
		return 0;
	return err_set(err, ERR_USAGE, "nothing was done");
}
