/* SPDX-License-Identifier: MIT */
/* core.c - sets the limits of core files, and gives trainers theirs back.
 *
 * Not PR_SET_DUMPABLE: that would close /proc/PID/fd to lbd, which knows a local job by its lock. A
 * limit of 0 is enough for files; programs that the kernel pipes cores to get them in spite of it,
 * but nothing of memory is in there with an empty filter. */
#include "worker/lbrun/trainer/core.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char filter_path[] = "/proc/self/coredump_filter";

static struct {
	bool has_limit;
	struct rlimit limit;
	char filter[32]; /* "" = not known */
} before;

static void write_filter(const char *text)
{
	int fd = open(filter_path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	n = write(fd, text, strlen(text));
	(void)n; /* the limit holds in any case */
	close(fd);
}

void core_forbid(void)
{
	int fd = open(filter_path, O_RDONLY | O_CLOEXEC);
	struct rlimit none;
	ssize_t n = fd < 0 ? 0 : read(fd, before.filter + 2, sizeof(before.filter) - 3);

	if (fd >= 0)
		close(fd);
	if (n > 0) { /* it is told in hexadecimal without saying so */
		memcpy(before.filter, "0x", 2);
		write_filter("0");
	}
	before.has_limit = getrlimit(RLIMIT_CORE, &before.limit) == 0;
	none = before.limit;
	none.rlim_cur = 0;
	if (before.has_limit)
		setrlimit(RLIMIT_CORE, &none);
}

void core_allow_again(void)
{
	if (before.has_limit)
		setrlimit(RLIMIT_CORE, &before.limit);
	if (before.filter[0])
		write_filter(before.filter);
}
