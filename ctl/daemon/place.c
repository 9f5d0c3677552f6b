/* SPDX-License-Identifier: MIT */
/* place.c - where lbd is, and whether it lives. */
#include "ctl/daemon/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/paths.h"

bool lbd_is_locked(const char *home)
{
	char *path = path_join("%s/lbd.lock", home);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	free(path);
	return locked;
}

static enum place place_of(const struct lease *l, const char *home)
{
	if (l->generation == 0)
		return lbd_is_locked(home) ? HERE : NOWHERE;
	if (l->ended_ms != 0)
		return ENDED;
	if (lease_is_here(l))
		return lease_is_alive_here(l) ? HERE : DIED;
	return lease_is_silent(l) ? SILENT : ELSEWHERE;
}

void lbd_find(struct ctl *ctl, bool ask, struct found *out)
{
	char *path = lease_path(ctl->client.home, 0);
	struct err why = { 0 };

	*out = (struct found){ .place = NOWHERE };
	lease_read(path, &out->lease, &out->unseen);
	free(path);
	if (out->unseen.code == ERR_NOT_FOUND)
		err_clear(&out->unseen);
	out->place = place_of(&out->lease, ctl->client.home);
	if (ask && (out->version = client_ask(&ctl->client, VERB_VERSION, NULL, &why))) {
		out->place = SERVES;
		out->pid = client_peer_pid(&ctl->client);
	}
}

bool lbd_is_over(enum place place)
{
	return place <= DIED;
}
