/* SPDX-License-Identifier: MIT */
/* poke.c - sends lbd the hint to read the spool.
 *
 * Connecting must not block either: a Unix socket's connect waits while the backlog of a frozen lbd
 * is full, unless the socket is non-blocking. A path too long for an address is reached through
 * /proc/self/fd. */
#include "worker/lbrun/trainer/poke.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"

static char *poke_line(const char *run)
{
	json_t *root = json_object();
	json_t *args = json_object();
	char *text;
	char *line;

	js_set_str(args, "run", run);
	js_set_int(root, "v", 1);
	js_set_str(root, "verb", "poke");
	json_object_set_new(root, "args", args);
	text = js_line(root);
	line = xasprintf("%s\n", text);
	free(text);
	json_decref(root);
	return line;
}

void poke_init(struct poke *p, const char *socket, const char *run)
{
	const char *slash = socket ? strrchr(socket, '/') : NULL;

	*p = (struct poke){ 0 };
	if (!slash || slash == socket)
		return;
	p->folder = xstrndup(socket, (size_t)(slash - socket));
	p->name = xstrdup(slash + 1);
	p->line = poke_line(run);
}

void poke_fini(struct poke *p)
{
	free(p->folder);
	free(p->name);
	free(p->line);
	*p = (struct poke){ 0 };
}

static int dial(const struct poke *p)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int folder = open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = -1;
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", folder,
			 p->name);

	if (folder >= 0 && (size_t)n < sizeof(address.sun_path))
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		fd = -1;
	}
	if (folder >= 0)
		close(folder);
	return fd;
}

void poke_wanted(struct poke *p)
{
	p->is_wanted = p->folder != NULL;
}

void poke_turn(struct poke *p, int64_t now_ms)
{
	int fd;

	if (!p->is_wanted || now_ms < p->not_before_ms)
		return;
	p->is_wanted = false;
	fd = dial(p);
	p->not_before_ms = now_ms + (fd < 0 ? POKE_BACKOFF_MS : POKE_EVERY_MS);
	if (fd < 0)
		return;
	send(fd, p->line, strlen(p->line), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int64_t poke_next_ms(const struct poke *p)
{
	return p->is_wanted ? p->not_before_ms : INT64_MAX;
}
