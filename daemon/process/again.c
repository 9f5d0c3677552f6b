/* SPDX-License-Identifier: MIT */
/* again.c - a process that starts lbd until it serves. */
#include "daemon/process/again.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/files.h"
#include "common/base/paths.h"

enum { FIRST_PAUSE_S = 2, LONGEST_PAUSE_S = 60 };

/* lbd serves; or, as in etc/lbd.service, another start would not help. */
static bool is_settled(int status)
{
	static const enum err_code settled[] = { ERR_NONE, ERR_USAGE, ERR_LOCKED, ERR_REFUSED };
	bool is = WIFSIGNALED(status);

	for (size_t i = 0; !is && i < sizeof(settled) / sizeof(settled[0]); i++)
		is = WEXITSTATUS(status) == err_exit_status(settled[i]);
	return is;
}

/* The log has what it says; our stdout is /dev/null. */
static bool start_once(char **argv)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		char *lbd = path_sibling("lbd", NULL);

		dup2(STDOUT_FILENO, STDERR_FILENO);
		if (lbd)
			execv(lbd, argv);
		_exit(err_exit_status(ERR_IO));
	}
	return child > 0 && waitpid(child, &status, 0) == child && is_settled(status);
}

/* Without its ledger a start would begin an empty one, below a file system that is away. */
void begin_again(char **argv, const char *ledger)
{
	unsigned pause_s = FIRST_PAUSE_S;

	if (fork() != 0)
		return;
	do {
		sleep(pause_s);
		if (pause_s < LONGEST_PAUSE_S)
			pause_s *= 2;
	} while (!file_exists(ledger) || !start_once(argv));
	_exit(0);
}
