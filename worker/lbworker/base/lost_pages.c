/* SPDX-License-Identifier: MIT */
/* lost_pages.c - of which file an address is says the kernel; a handler may do nothing but read. */
#include "worker/lbworker/base/lost_pages.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 128 };

static int exit_status;

static uintptr_t read_hex(const char **text)
{
	uintptr_t value = 0;

	for (;; (*text)++) {
		char c = **text;
		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return value;
	}
}

/* "7f00-7f20 r--p 00000000 fd:01 1234    /path" */
static const char *path_in(const char *line, uintptr_t at)
{
	uintptr_t begin = read_hex(&line);

	if (*line++ != '-' || at < begin || at >= read_hex(&line))
		return NULL;
	return strchr(line, '/');
}

static const char *path_at(int maps, uintptr_t at, char line[LINE_BYTES])
{
	size_t length = 0;
	char c;

	while (read(maps, &c, 1) == 1) {
		if (c != '\n') {
			line[length] = c;
			length += length < LINE_BYTES - 1;
			continue;
		}
		line[length] = '\0';
		length = 0;
		const char *path = path_in(line, at);
		if (path)
			return path;
	}
	return NULL;
}

static void put(const char *text)
{
	ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

	(void)ignored;
}

/* Several threads may come here at once: the first one speaks. What is no lost page, such as a
 * signal from outside, ends the process as it would have. */
static void on_bus_error(int signo, siginfo_t *info, void *context)
{
	static atomic_flag is_taken = ATOMIC_FLAG_INIT;
	static char line[LINE_BYTES];

	(void)context;
	while (atomic_flag_test_and_set(&is_taken))
		pause();
	int maps = info->si_code == BUS_ADRERR ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
	const char *path = maps < 0 ? NULL : path_at(maps, (uintptr_t)info->si_addr, line);
	if (!path) {
		signal(signo, SIG_DFL);
		(void)raise(signo); /* comes as we return */
		return;
	}
	put("lbworker: ");
	put(path);
	put(": cannot be read any more: it was cut short while it was in use, or its disk fails, or "
	    "is full\n");
	_exit(exit_status);
}

void lost_pages_tell(int status)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	exit_status = status;
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
