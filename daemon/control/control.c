/* SPDX-License-Identifier: MIT */
/* control.c - the control socket opens and closes. */
#include "common/base/accounts.h"
#include "daemon/control/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/sock.h"
#include "daemon/base/lbd.h"
#include "daemon/process/lock.h"

/* The team reaches the socket through its group; without a team only the owner does. */
static int give_to_team(const struct control *control, struct err *err)
{
	const char *name = control->lbd->config.team_group;
	gid_t group;

	if (name == NULL)
		return 0;
	if (!group_id(name, &group))
		return err_set(err, ERR_USAGE, "lbd.toml: team.group: there is no group \"%s\"",
			       name);
	if (lchown(control->path, (uid_t)-1, group) < 0 || sock_set_mode(control->path, 0660) < 0)
		return err_errno(err, "%s: cannot give it to group %s", control->path, name);
	return 0;
}

/* sshfs, exFAT and others have files and folders, and nothing else. */
static bool has_no_sockets(const struct err *err)
{
	return err->sys == EPERM || err->sys == EOPNOTSUPP || err->sys == ENOSYS;
}

static int listen_there(const struct control *control, struct err *err)
{
	int fd = sock_listen(control->path, 0600, err);

	if (fd < 0 && has_no_sockets(err)) {
		err_clear(err);
		err_set(err, ERR_IO,
			"%s: this file system takes no sockets: set LB_HOME to a folder on "
			"another; what runs write may stay here (runs.folder in lbd.toml)",
			control->path);
	}
	if (fd < 0 || give_to_team(control, err) == 0)
		return fd;
	close(fd);
	return -1;
}

static void on_closed(uv_handle_t *handle)
{
	control_release(handle->data);
}

struct control *control_open(struct lbd *lbd, void (*handle)(struct request *), struct err *err)
{
	struct control *control = xcalloc(1, sizeof(*control));

	control->lbd = lbd;
	control->handle = handle;
	control->on_serving = control_on_serving;
	control->on_sweep = control_on_sweep;
	control->last = &control->conns;
	control->path = path_join("%s/lbd.sock", lbd->config.home);
	control->fd = listen_there(control, err);
	if (control->fd < 0) {
		free(control->path);
		free(control);
		return NULL;
	}
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uv_poll_init(lbd->loop, &control->listener, control->fd);
	uv_idle_init(lbd->loop, &control->serving);
	uv_timer_init(lbd->loop, &control->sweep);
	control->holders = 3;
	control->listener.data = control->serving.data = control->sweep.data = control;
	uv_poll_start(&control->listener, UV_READABLE, control_on_listener);
	return control;
}

void control_look(struct control *control)
{
	struct err err = { 0 };
	int fd;

	if (access(control->path, F_OK) == 0 || errno != ENOENT)
		return;
	fd = listen_there(control, &err);
	if (fd < 0) {
		log_warn("the socket is gone, and no other can be made: %s", err.text);
		return;
	}
	uv_poll_stop(&control->listener);
	dup3(fd, control->fd, O_CLOEXEC);
	close(fd);
	uv_poll_start(&control->listener, UV_READABLE, control_on_listener);
	log_info("%s was gone, and is there again", control->path);
}

void control_close(struct control *control)
{
	if (control == NULL)
		return;
	if (control->lbd->lock && lock_check(control->lbd->lock, NULL) == 0)
		unlink(control->path); /* else it may be another lbd's by now */
	while (control->conns)
		conn_close(control->conns);
	uv_close((uv_handle_t *)&control->listener, on_closed);
	uv_close((uv_handle_t *)&control->serving, on_closed);
	uv_close((uv_handle_t *)&control->sweep, on_closed);
}
