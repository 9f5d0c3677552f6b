/* SPDX-License-Identifier: MIT */
/* systemd.c - writes to systemd's socket, and to the descriptor of --ready-fd. */
#include "daemon/process/systemd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_systemd(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (path == NULL || strlen(path) >= sizeof(addr.sun_path) || strlen(path) < 2)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	memcpy(addr.sun_path, path, strlen(path));
	if (path[0] == '@') /* an abstract socket */
		addr.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr, len);
	close(fd);
}

int64_t notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (usec == NULL || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoll(usec, NULL, 10) / 2000;
}

void notify_ready_fd(int fd)
{
	if (fd < 0)
		return;
	if (write(fd, "\n", 1) < 0) {
		/* whoever waited has gone: nobody is left to be told */
	}
	close(fd);
}
