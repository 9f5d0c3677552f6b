/* SPDX-License-Identifier: MIT */
/* cache.c - the node's cache: where it is, what points there, and what goes first. */
#include "worker/lbrun/trainer/cache.h"

#include <ctype.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { BLOCK_BYTES = 512, ITEM_LEVEL = 2, ROOM_LOOK_MS = 50 };

/* Caches of code that was compiled, found by what it was compiled from: whatever is missing is made
 * again. */
static const struct {
	const char *variable, *folder;
} known[] = {
	{ "LB_CACHE_DIR", "trainer" },
	{ "TORCHINDUCTOR_CACHE_DIR", "torchinductor" },
	{ "TRITON_CACHE_DIR", "triton" },
	{ "CUDA_CACHE_PATH", "cuda" },
	{ "TORCH_EXTENSIONS_DIR", "torch_extensions" },
};

/* --- making room ------------------------------------------------------------------------------ */

struct item {
	char *path;
	int64_t bytes, used_s;
};

struct items {
	struct item *list;
	size_t count;
	int64_t bytes; /* of all of them */
};

static void weigh(struct items *all, const FTSENT *entry)
{
	const struct stat *st = entry->fts_statp;
	int64_t bytes = (int64_t)st->st_blocks * BLOCK_BYTES;
	int64_t used_s = st->st_mtime > st->st_atime ? st->st_mtime : st->st_atime;
	struct item *item = &all->list[all->count - 1];

	item->bytes += bytes;
	all->bytes += bytes;
	if (S_ISREG(st->st_mode) &&
	    used_s > item->used_s) /* looking into a folder is no use of it */
		item->used_s = used_s;
}

static void find_items(const char *folder, struct items *all)
{
	char *copy = xstrdup(folder), *const paths[] = { copy, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	const FTSENT *entry;

	while (walk && (entry = fts_read(walk)) != NULL) {
		if (entry->fts_level < ITEM_LEVEL || entry->fts_info == FTS_DP ||
		    entry->fts_info == FTS_NS)
			continue;
		if (entry->fts_level == ITEM_LEVEL) {
			all->list = xrealloc(all->list, (all->count + 1) * sizeof(all->list[0]));
			all->list[all->count++] = (struct item){ .path = xstrdup(entry->fts_path) };
		}
		weigh(all, entry);
	}
	if (walk)
		fts_close(walk);
	free(copy);
}

static int oldest_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->used_s != y->used_s)
		return x->used_s < y->used_s ? -1 : 1;
	return strcmp(x->path, y->path);
}

int64_t cache_trim(const char *folder, int64_t max_bytes)
{
	struct items all = { 0 };
	int64_t left;

	find_items(folder, &all);
	left = all.bytes;
	if (all.count > 0)
		qsort(all.list, all.count, sizeof(all.list[0]), oldest_first);
	for (size_t i = 0; i < all.count; i++) {
		if (left > max_bytes && folder_remove(all.list[i].path, NULL) == 0)
			left -= all.list[i].bytes;
		free(all.list[i].path);
	}
	free(all.list);
	return left;
}

static int64_t free_bytes(const char *folder)
{
	struct statvfs fs;

	return statvfs(folder, &fs) < 0 ? 0 : (int64_t)((double)fs.f_bavail * (double)fs.f_frsize);
}

/* Whoever has it alone makes room there. */
static int wait_for_room(const struct cache *c, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + CACHE_WAIT_MS;

	while (flock(c->lock_fd, LOCK_SH | LOCK_NB) < 0) {
		if (clock_mono_ms() >= until_ms)
			return err_set(err, ERR_LOCKED, "%s: another one is making room there",
				       c->folder);
		poll(NULL, 0, ROOM_LOOK_MS);
	}
	return 0;
}

/* Nobody else of ours reads there while we have it alone: of several ranks that start together the
 * first one makes room, before any of them reads. */
static int make_room(const struct cache *c, const struct cache_limits *limits, struct err *err)
{
	bool is_alone = flock(c->lock_fd, LOCK_EX | LOCK_NB) == 0;
	int64_t lack;

	if (is_alone && limits->max_bytes > 0)
		cache_trim(c->folder, limits->max_bytes);
	lack = limits->reserve_bytes - free_bytes(c->folder);
	if (is_alone && lack > 0)
		cache_trim(c->folder, cache_trim(c->folder, INT64_MAX) - lack);
	if (wait_for_room(c, err) < 0)
		return -1;
	if (free_bytes(c->folder) < limits->reserve_bytes)
		return err_set(err, ERR_IO,
			       "%s: less than %" PRId64 " MiB are free on its file system",
			       c->folder, limits->reserve_bytes >> 20);
	return 0;
}

/* --- the folder ------------------------------------------------------------------------------- */

/* Neither may others put another folder in its place. */
static int check_way(const char *folder, struct err *err)
{
	int fd = guarded_open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, geteuid(), err);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int make_folders(const struct cache *c, struct err *err)
{
	char *parent = xstrndup(c->folder, (size_t)(path_base(c->folder) - c->folder) - 1);
	int rc = folder_make_ours(parent, err) < 0 || folder_make_ours(c->folder, err) < 0
			 ? -1
			 : check_way(c->folder, err);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && rc == 0; i++) {
		char *path = path_join("%s/%s", c->folder, known[i].folder);

		rc = folder_make_ours(path, err);
		free(path);
	}
	free(parent);
	return rc;
}

static int take_lock(struct cache *c, struct err *err)
{
	char *path = path_join("%s/.lb-lock", c->folder);

	c->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->lock_fd < 0)
		err_errno(err, "%s", path);
	free(path);
	return c->lock_fd < 0 ? -1 : 0;
}

int cache_open(struct cache *c, const char *folder, const struct cache_limits *limits,
	       struct err *err)
{
	int rc = failpoint(FP_CACHE_OPEN, err);

	*c = (struct cache){ .lock_fd = -1 };
	c->folder = path_join("%s/lowbits-%u/cache", folder, (unsigned)geteuid());
	if (rc == 0)
		rc = make_folders(c, err) < 0 || take_lock(c, err) < 0 ? -1 : 0;
	if (rc == 0)
		rc = make_room(c, limits, err);
	if (rc == 0)
		return 0;
	cache_close(c);
	return err_wrap(err, "cache.folder");
}

void cache_close(struct cache *c)
{
	if (c->folder && c->lock_fd >= 0)
		close(c->lock_fd);
	free(c->folder);
	*c = (struct cache){ .lock_fd = -1 };
}

/* --- who finds it ----------------------------------------------------------------------------- */

static void point(const struct cache *c, const char *variable, const char *folder, struct strv *env)
{
	if (!strv_get(env->items, variable))
		strv_add(env, xasprintf("%s=%s/%s", variable, c->folder, folder));
}

void cache_env(const struct cache *c, char *const *more, struct strv *env)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		point(c, known[i].variable, known[i].folder, env);
	for (; more && *more; more++) {
		char *folder = xstrdup(*more);

		for (char *at = folder; *at; at++)
			*at = (char)tolower((unsigned char)*at);
		point(c, *more, folder, env);
		free(folder);
	}
}

char *cache_for_ranks(const char *folder, int64_t max_bytes, char *const *more)
{
	char *text = xasprintf("%" PRId64 ":", max_bytes);

	for (; more && *more; more++) {
		char *longer = xasprintf("%s%s:", text, *more);

		free(text);
		text = longer;
	}
	char *out = xasprintf("%s%s", text, folder);

	free(text);
	return out;
}

static void set_all(const struct cache *c, char *const *more)
{
	struct strv env = { 0 };
	size_t had;

	strv_add_all(&env, environ);
	had = env.count;
	cache_env(c, more, &env);
	for (size_t i = had; i < env.count; i++) {
		char *equals = strchr(env.items[i], '=');

		*equals = '\0';
		setenv(env.items[i], equals + 1, 1);
	}
	strv_free(env.items);
}

int cache_enter(struct err *err)
{
	static struct cache c; /* its lock is held as long as we live */
	const char *asked = getenv(CACHE_VARIABLE);
	struct cache_limits limits = { .reserve_bytes = CACHE_RESERVE_BYTES };
	struct strv more = { 0 };
	char *text, *at, *end;
	int rc;

	if (!asked)
		return 0;
	text = xstrdup(asked);
	unsetenv(CACHE_VARIABLE); /* torchrun's ranks inherit what it says */
	limits.max_bytes = strtoll(text, &at, 10);
	for (at += *at == ':'; *at && *at != '/'; at = end + 1) {
		end = at + strcspn(at, ":");
		if (!*end)
			break;
		strv_add(&more, xstrndup(at, (size_t)(end - at)));
	}
	rc = cache_open(&c, at, &limits, err);
	if (rc == 0)
		set_all(&c, more.items);
	strv_free(more.items);
	free(text);
	return rc;
}
