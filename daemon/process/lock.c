/* SPDX-License-Identifier: MIT */
/* lock.c - takes the lock, then the lease, and renews it. */
#include "daemon/process/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/run/lease.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/procs.h"

enum {
	PATIENCE_MS = 500,
	SOON_MS = 20,    /* with a lock that is about to be free */
	LOOK_MS = 100,   /* at a lease that may run out */
	TORN_LOOKS = 20, /* a lease is written in place: a reader may meet half of it */
	CLAIM_TRIES = 100,
};

struct lock {
	char *home, *path; /* of the lease */
	int flock_fd;
	int fd; /* of our own lease, wherever its name leads by now */
	struct lease lease;
};

static void nap(int64_t ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
}

/* --- the lock --------------------------------------------------------------------------------- */

/* A child of an lbd that was killed holds the lock on until its exec: a moment's patience. */
static int take(int fd)
{
	int64_t give_up_ms = clock_mono_ms() + PATIENCE_MS;
	int rc;

	while ((rc = flock(fd, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK &&
	       clock_mono_ms() < give_up_ms)
		nap(SOON_MS);
	return rc;
}

static int refuse(const char *home, const char *holder, struct err *err)
{
	return err_set(err, ERR_LOCKED, "%s: another lbd is at work here (%s)", home,
		       holder && *holder ? holder : "it has not said who it is");
}

static int refuse_lock(const char *path, const char *home, struct err *err)
{
	char *holder = file_read(path, 512, NULL, NULL);

	if (holder)
		holder[strcspn(holder, "\n")] = '\0';
	refuse(home, holder, err);
	free(holder);
	return -1;
}

static int refuse_lease(const char *home, const struct lease *lease, struct err *err)
{
	char *holder = lease_holder(lease);

	refuse(home, holder, err);
	free(holder);
	return -1;
}

static int write_holder(int fd, const struct lease *lease)
{
	char *holder = lease_holder(lease), *line = xasprintf("%s\n", holder);
	size_t len = strlen(line);
	int rc = ftruncate(fd, 0) == 0 && pwrite(fd, line, len, 0) == (ssize_t)len ? 0 : -1;

	free(holder);
	free(line);
	return rc;
}

/* A lock that the file system does not know (ENOLCK, ENOTSUP …) is none: the lease decides. */
static int take_flock(const char *home, struct err *err)
{
	char *path = path_join("%s/lbd.lock", home);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	struct stat st;

	if (fd < 0) {
		err_errno(err, "%s", path);
	} else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		err_set(err, ERR_IO, "%s: not a regular file; remove it", path);
		close(fd);
		fd = -1;
	} else if (take(fd) < 0 && errno == EWOULDBLOCK) {
		refuse_lock(path, home, err);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

/* --- the lease -------------------------------------------------------------------------------- */

/* The newest lease, or claim to one that its maker has not yet put in place; generation 0 =
 * none. */
static int read_newest(const char *home, struct lease *out, struct err *err)
{
	int64_t claim = 0;

	memset(out, 0, sizeof(*out));
	for (int tries = 0;;) {
		char *path = lease_path(home, claim);
		struct lease found;
		struct err why = { 0 };
		int rc = lease_read(path, &found, &why);

		free(path);
		if (rc == 0) {
			*out = found;
			claim = found.generation + 1;
		} else if (why.code == ERR_NOT_FOUND && claim == 0) {
			claim = 1;
		} else if (why.code == ERR_NOT_FOUND) {
			return 0;
		} else if (++tries == TORN_LOOKS) {
			return err_set(err, why.code, "%s; when no other lbd runs, remove it",
				       why.text);
		} else {
			nap(LOOK_MS);
		}
	}
}

static bool is_same(const struct lease *a, const struct lease *b)
{
	return strcmp(a->nonce, b->nonce) == 0 && a->renewed_ms == b->renewed_ms &&
	       a->ended_ms == b->ended_ms;
}

/* By our own monotonic clock: that of its machine may be wrong. 0 = it has run out, or ended. */
static int outwait(const char *home, struct lease *lease, struct err *err)
{
	int64_t end_ms = clock_mono_ms() + lease->lease_ms;
	struct lease now;
	char *holder = lease_holder(lease);

	log_info("waits up to %lld s for the lease of another lbd to run out: %s",
		 (long long)(lease->lease_ms + 999) / 1000, holder);
	free(holder);
	while (clock_mono_ms() < end_ms) {
		nap(LOOK_MS);
		if (read_newest(home, &now, err) < 0)
			return -1;
		if (!is_same(&now, lease) && now.ended_ms == 0)
			return refuse_lease(home, &now, err);
		if (now.ended_ms != 0) {
			*lease = now;
			return 0;
		}
	}
	return 0;
}

static int judge(const char *home, struct lease *lease, struct err *err)
{
	if (lease->generation == 0 || lease->ended_ms != 0)
		return 0;
	if (!lease_is_here(lease))
		return outwait(home, lease, err);
	return lease_is_alive_here(lease) ? refuse_lease(home, lease, err) : 0;
}

/* Claims of generations that are over. */
static void forget_claims(const char *home, int64_t newest)
{
	for (int64_t g = newest - 1; g > 0 && g > newest - 4; g--) {
		char *path = lease_path(home, g);

		unlink(path);
		free(path);
	}
}

/* 1: somebody else was faster. */
static int claim(struct lock *l, const struct lease *before, struct err *err)
{
	char *path = lease_path(l->home, before->generation + 1), text[LEASE_BYTES];
	struct err why = { 0 };
	struct lease now;
	int rc = 0;

	l->lease.generation = before->generation + 1;
	lease_print(&l->lease, text);
	if (file_write_once(path, text, LEASE_BYTES, 0640, &why) < 0)
		rc = why.code == ERR_LOCKED ? 1 : err_set(err, why.code, "%s", why.text);
	else if (lease_read(l->path, &now, NULL) == 0 && now.generation >= l->lease.generation)
		rc = 1;
	else
		rc = file_write_atomic(l->path, text, LEASE_BYTES, 0640, err);
	free(path);
	return rc;
}

static int take_lease(struct lock *l, struct err *err)
{
	struct lease before;
	int rc = 1;

	for (int tries = 0; rc == 1 && tries < CLAIM_TRIES; tries++) {
		if (read_newest(l->home, &before, err) < 0 || judge(l->home, &before, err) < 0)
			return -1;
		rc = claim(l, &before, err);
	}
	if (rc == 1)
		return refuse(l->home, NULL, err);
	if (rc < 0)
		return -1;
	forget_claims(l->home, l->lease.generation);
	l->fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return l->fd < 0 ? err_errno(err, "%s", l->path) : lock_check(l, err);
}

/* --- while it is ours ------------------------------------------------------------------------- */

int lock_check(void *lock, struct err *err)
{
	struct lock *l = lock;
	struct err why = { 0 };
	struct lease now;
	char *text = file_read(l->path, LEASE_BYTES, NULL, &why);
	bool is_ours = text && strstr(text, l->lease.nonce);

	free(text);
	if (is_ours)
		return 0;
	if (why.code == ERR_NOT_FOUND)
		return err_set(err, ERR_LOCKED, "%s is gone: another lbd may work here now",
			       l->path);
	if (why.code != ERR_NONE || lease_read(l->path, &now, &why) < 0)
		return err_set(err, ERR_IO, "cannot see whether %s is still ours: %s", l->path,
			       why.text);
	return refuse_lease(l->home, &now, err);
}

static int write_own(struct lock *l, struct err *err)
{
	char text[LEASE_BYTES];

	lease_print(&l->lease, text);
	if (pwrite(l->fd, text, LEASE_BYTES, 0) != LEASE_BYTES || fdatasync(l->fd) < 0)
		return err_errno(err, "%s", l->path);
	return 0;
}

int lock_renew(struct lock *l, struct err *err)
{
	if (lock_check(l, err) < 0)
		return -1;
	l->lease.renewed_ms = clock_wall_ms();
	return write_own(l, err);
}

/* --- life ------------------------------------------------------------------------------------- */

static void describe(struct lease *own, int64_t lease_ms, const char *log)
{
	const char *job = getenv("LB_DAEMON_JOB");
	struct proc_name self = { 0 };

	*own = (struct lease){ .pid = getpid(),
			       .since_ms = clock_wall_ms(),
			       .lease_ms = lease_ms,
			       .job_id = job ? strtoll(job, NULL, 10) : 0 };
	own->renewed_ms = own->since_ms;
	token_draw(own->nonce);
	lease_set_here(own);
	if (proc_name_of(getpid(), &self) == 0)
		own->start_ticks = self.start_ticks;
	snprintf(own->version, sizeof(own->version), "%s", LB_VERSION);
	if (log && strlen(log) < sizeof(own->log))
		snprintf(own->log, sizeof(own->log), "%s", log);
}

static void destroy(struct lock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->flock_fd >= 0)
		close(l->flock_fd);
	free(l->home);
	free(l->path);
	free(l);
}

struct lock *lock_take(const char *home, int64_t lease_ms, const char *log, struct err *err)
{
	struct lock *l = xcalloc(1, sizeof(*l));

	l->home = xstrdup(home);
	l->path = lease_path(home, 0);
	l->fd = -1;
	describe(&l->lease, lease_ms, log);
	l->flock_fd = take_flock(home, err);
	if (l->flock_fd >= 0 && take_lease(l, err) == 0) {
		if (write_holder(l->flock_fd, &l->lease) == 0)
			return l;
		err_errno(err, "%s/lbd.lock", home);
	}
	destroy(l);
	return NULL;
}

void lock_release(struct lock *l, const char *why)
{
	struct err err = { 0 };

	if (l == NULL)
		return;
	if (lock_check(l, &err) == 0) {
		l->lease.ended_ms = l->lease.renewed_ms = clock_wall_ms();
		snprintf(l->lease.why, sizeof(l->lease.why), "%s", why);
		if (write_own(l, &err) < 0)
			log_warn("%s", err.text);
	}
	destroy(l);
}
