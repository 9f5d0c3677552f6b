/* SPDX-License-Identifier: MIT */
/* door.c - who is let in: a member of the team or the owner, while there is room; everybody else is
 * told why not, at no cost to those inside. */
#include "daemon/control/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "daemon/base/lbd.h"

/* The more there are, the fewer may one user have: whoever comes finds room, however many others
 * press. (Dynamic thresholds, as switches share their buffers: Choudhury and Hahne 1998.) */
static int check_room(const struct control *control, int conns, struct err *err)
{
	int room = MAX_CONNS - control->conn_count;

	if (conns < room && conns < MAX_CONNS_PER_USER)
		return 0;
	return err_set(err, ERR_REFUSED, "too many connections; close some and try again");
}

static int admit(struct control *control, int fd, struct peer *peer, struct err *err)
{
	const struct config *config = &control->lbd->config;
	const struct user *user;
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return err_errno(err, "cannot tell who is asking");
	user = user_find(control, cred.uid);
	/* first what costs nothing: names and groups may be asked of a distant directory */
	if (check_room(control, user ? user->conns : 0, err) < 0 ||
	    peer_of(fd, config->team_group, config->may_submit, peer, err) < 0)
		return -1;
	if (peer->role == ROLE_NONE)
		return err_set(err, ERR_REFUSED,
			       "these runs belong to somebody else, and %s is not in "
			       "their team (lbd.toml: team.group)",
			       peer->user);
	return 0;
}

/* Whom we cannot serve is told so, if the line fits into the socket, and costs us nothing more. */
static void refuse(int fd, const struct err *err)
{
	json_t *object = control_error(err);
	char *text = js_line(object), *line = xasprintf("%s\n", text);

	if (send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("a refusal could not be told");
	close(fd);
	free(line);
	free(text);
	json_decref(object);
}

/* The last ones are not for visitors: the ledger, switches, spools and helpers need them. (The
 * kernel gives the lowest number that is free.) */
static bool is_reserved(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd + OWN_FILES >= limit.rlim_cur;
}

int control_check_room(struct err *err)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool has_room = fd >= 0 && fd < LEAST_FILES && !is_reserved(LEAST_FILES - OWN_FILES - 1);
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (fd >= 0)
		close(fd);
	if (has_room)
		return 0;
	return err_set(err, ERR_IO,
		       "%llu file descriptors are too few: lbd needs %d, and more to serve many "
		       "people (ulimit -n)",
		       (unsigned long long)limit.rlim_cur, LEAST_FILES);
}

static void refuse_for_want_of_files(int fd)
{
	struct err err = { 0 };

	err_set(&err, ERR_REFUSED, "lbd has no file descriptor left; try again");
	refuse(fd, &err);
}

static void refuse_with_spare(struct control *control)
{
	int fd;

	if (control->spare_fd < 0)
		return;
	close(control->spare_fd);
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse_for_want_of_files(fd);
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Only so many at once: a flood of connections must not keep those who are connected waiting. */
void control_on_listener(uv_poll_t *listener, int status, int events)
{
	struct control *control = listener->data;
	int64_t until_ms = clock_mono_ms() + TURN_MS;

	(void)events;
	for (int i = 0; status == 0 && i < ACCEPTS && clock_mono_ms() < until_ms; i++) {
		int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct peer peer = { 0 };
		struct err err = { 0 };

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			refuse_with_spare(control);
		if (fd < 0)
			return;
		if (is_reserved(fd))
			refuse_for_want_of_files(fd);
		else if (admit(control, fd, &peer, &err) < 0)
			refuse(fd, &err);
		else
			conn_create(control, fd, &peer);
	}
}
