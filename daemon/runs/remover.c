/* SPDX-License-Identifier: MIT */
/* remover.c - the steps of a removal, taken up again after a crash. */
#include "daemon/runs/remover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "daemon/control/control.h"

enum { AGAIN_MS = 600 * 1000 }; /* after what could not be removed */

struct remover {
	struct lbd *lbd;
	uv_timer_t timer;
	uv_work_t work;
	bool busy, closing, closed;
	bool has_failed;
	int64_t id, done_id; /* the one in the thread; those up to here were tried */
	char *dir, *trash;   /* its folder, and that by its hidden name */
	struct err err;
};

/* --- the folder ------------------------------------------------------------------------------- */

static char *trash_of(const char *dir, int64_t id)
{
	const char *slash = strrchr(dir, '/');

	return path_join("%.*s/.removed-%lld", (int)(slash - dir), dir, (long long)id);
}

/* overlayfs renames no folder of its lower layer: it goes where it is, which a file by the hidden
 * name notes. */
static int hide(const char *dir, const char *trash, struct err *err)
{
	if (rename(dir, trash) == 0 || errno == ENOENT)
		return 0;
	if (errno == EXDEV)
		return file_write_visible(trash, "", 0, 0600, err);
	return err_errno(err, "%s: cannot be moved away", dir);
}

static bool goes_in_place(const char *trash)
{
	struct stat st;

	return lstat(trash, &st) == 0 && S_ISREG(st.st_mode);
}

bool remover_is_at(struct lbd *lbd, const char *dir)
{
	struct ledger_removal next;
	bool is_at = false;

	for (int64_t id = 0; !is_at && ledger_removal_next(lbd->ledger, id, &next, NULL) == 0;) {
		char *trash = trash_of(next.dir, next.id);

		is_at = strcmp(next.dir, dir) == 0 && goes_in_place(trash);
		id = next.id;
		free(trash);
	}
	return is_at;
}

/* The folder is still where the run was, and no new run's: names are free again once it has
 * gone. */
static bool is_in_place(struct lbd *lbd, const struct ledger_removal *removal, const char *trash)
{
	struct ledger_run run;
	struct err err = { 0 };

	return !file_exists(trash) && file_exists(removal->dir) &&
	       ledger_run_find(lbd->ledger, removal->name, &run, &err) < 0 &&
	       err.code == ERR_NOT_FOUND;
}

/* Once, when nobody can have submitted anything yet: later a folder of that name may be a new
 * run's. */
static void hide_what_was_left(struct lbd *lbd)
{
	struct ledger_removal next;
	int64_t id = 0;

	while (ledger_removal_next(lbd->ledger, id, &next, NULL) == 0) {
		char *name = xstrdup(next.name), *dir = xstrdup(next.dir);
		struct ledger_removal kept = { .id = next.id, .name = name, .dir = dir };
		char *trash = trash_of(dir, next.id);
		struct err err = { 0 };

		id = next.id;
		if (is_in_place(lbd, &kept, trash) && hide(dir, trash, &err) < 0)
			log_warn("removing runs: %s", err.text);
		free(trash);
		free(name);
		free(dir);
	}
}

static void do_remove(uv_work_t *work)
{
	struct remover *r = work->data;

	if (!goes_in_place(r->trash) || folder_remove(r->dir, &r->err) == 0)
		folder_remove(r->trash, &r->err);
}

/* --- on the loop ------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void free_if_closed(struct remover *r)
{
	if (r->closed && !r->busy) {
		free(r->dir);
		free(r->trash);
		free(r);
	}
}

static void on_done(uv_work_t *work, int status)
{
	struct remover *r = work->data;
	struct ledger *ledger = r->lbd->ledger;
	struct err err = { 0 };

	(void)status;
	r->busy = false;
	if (r->closing) {
		free_if_closed(r);
		return;
	}
	if (r->err.code != ERR_NONE)
		log_warn("removing runs: %s; tried again later", r->err.text);
	else if (ledger_removal_done(ledger, r->id, &err) < 0 || ledger_commit(ledger, &err) < 0)
		log_warn("removing runs: %s", err.text);
	r->has_failed |= r->err.code != ERR_NONE;
	uv_timer_start(&r->timer, on_timer, 0, 0);
}

static bool start(struct remover *r)
{
	struct ledger_removal next;

	while (ledger_removal_next(r->lbd->ledger, r->done_id, &next, NULL) == 0) {
		char *name = xstrdup(next.name), *dir = xstrdup(next.dir);
		struct ledger_removal kept = { .id = next.id, .name = name, .dir = dir };
		bool stays;

		r->id = r->done_id = next.id;
		r->err = (struct err){ 0 };
		free(r->trash);
		free(r->dir);
		r->trash = trash_of(dir, next.id);
		r->dir = dir;
		stays = is_in_place(r->lbd, &kept, r->trash);
		free(name);
		r->busy = !stays && uv_queue_work(r->lbd->loop, &r->work, do_remove, on_done) == 0;
		if (r->busy)
			return true;
		r->has_failed = true;
	}
	return false;
}

static void on_timer(uv_timer_t *timer)
{
	struct remover *r = timer->data;

	if (r->busy || start(r) || !r->has_failed)
		return;
	r->has_failed = false;
	r->done_id = 0;
	uv_timer_start(timer, on_timer, AGAIN_MS, 0);
}

struct remover *remover_open(struct lbd *lbd)
{
	struct remover *r = xcalloc(1, sizeof(*r));

	r->lbd = lbd;
	hide_what_was_left(lbd);
	r->timer.data = r->work.data = r;
	uv_timer_init(lbd->loop, &r->timer);
	uv_timer_start(&r->timer, on_timer, 0, 0);
	return r;
}

static void on_closed(uv_handle_t *handle)
{
	struct remover *r = handle->data;

	r->closed = true;
	free_if_closed(r);
}

void remover_close(struct remover *remover)
{
	if (remover == NULL)
		return;
	remover->closing = true;
	uv_close((uv_handle_t *)&remover->timer, on_closed);
}

/* --- the verb --------------------------------------------------------------------------------- */

/* A folder that is not there may have been purged; with the one that it lies in, its file system is
 * away: it would come back, and be nobody's. */
static int check_folder(const char *dir, const char *name, const char *home, struct err *err)
{
	char *holder = xstrndup(dir, (size_t)(strrchr(dir, '/') - dir));
	char word[SHELL_WORD_BYTES];
	struct stat st;
	int rc = 0;

	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
		rc = err_set(err, ERR_LOCKED,
			     "%s is still on the file system where $LB_HOME was before; fetch it "
			     "first: lbctl home move %s",
			     name, shell_word(home, word));
	else if (lstat(dir, &st) < 0 && errno != ENOENT)
		rc = err_errno(err, "%s: nothing was done: %s", name, dir);
	else if (!file_exists(holder))
		rc = err_set(err, ERR_IO,
			     "%s: %s is not there: where its file system is away, it comes back; "
			     "nothing was done (if it is gone for good: mkdir -p %s)",
			     name, holder, shell_word(holder, word));
	free(holder);
	return rc;
}

static int check(struct request *r, const struct ledger_run *run, const char *name, struct err *err)
{
	const char *follower;

	if (r->peer.role < ROLE_OWNER && run->owner_uid != (int64_t)r->peer.uid)
		return err_set(err, ERR_REFUSED,
			       "%s is a run of %s, who may remove it, and the owner of "
			       "this lbd",
			       name, run->owner);
	if (!run_state_is_final(run->state) || engine_has(r->lbd->engine, name))
		return err_set(err, ERR_LOCKED,
			       "%s is %s: only a run that is over can be removed; end it "
			       "with: lbctl kill %s",
			       name, run_state_phrase(run->state), name);
	if (check_folder(run->dir, name, r->lbd->config.home, err) < 0)
		return -1;
	follower = engine_follower(r->lbd->engine, name);
	if (follower)
		return err_set(err, ERR_LOCKED,
			       "%s waits for how %s ended: kill it first, or wait until it "
			       "has begun",
			       follower, name);
	return 0;
}

/* The event first: numbers of events that go with the run would be given to the next ones, and who
 * has been told up to them (notify/alerts.c) would take those for old news. */
static int write_rows(struct request *r, int64_t run_id, const struct ledger_removal *removal,
		      int64_t *id, struct err *err)
{
	struct ledger *ledger = r->lbd->ledger;
	struct ledger_event event = {
		.time_ms = removal->time_ms,
		.kind = "removed",
		.actor = r->peer.user,
		.text = removal->name,
	};

	if (ledger_event_put(ledger, &event, err) == 0 &&
	    ledger_run_remove(ledger, run_id, removal, id, err) == 0 &&
	    failpoint(FP_REMOVAL_WRITTEN, err) == 0)
		return ledger_commit(ledger, err);
	ledger_rollback(ledger);
	return -1;
}

/* Its row is gone when this returns 0, and its folder on its way. */
static int remove_run(struct request *r, int64_t run_id, const char *name, const char *dir,
		      struct err *err)
{
	struct ledger_removal removal = { .name = name, .dir = dir, .time_ms = clock_wall_ms() };
	int64_t id;
	char *trash;
	int rc;

	if (write_rows(r, run_id, &removal, &id, err) < 0)
		return err_wrap(err, "%s is not removed", name);
	failpoint(FP_REMOVAL_COMMITTED, NULL);
	trash = trash_of(dir, id);
	rc = hide(dir, trash, err);
	if (rc < 0)
		err_wrap(err, "%s: it is no run any more, but its folder stays", name);
	free(trash);
	failpoint(FP_REMOVAL_HIDDEN, NULL);
	uv_timer_start(&r->lbd->remover->timer, on_timer, 0, 0);
	return rc;
}

json_t *remover_answer(struct request *r, struct err *err)
{
	struct ledger_run run = { 0 };
	char *name, *dir;
	int64_t id;
	int rc;

	if (request_run(r, &run, err) < 0 || check(r, &run, js_str(r->args, "run", ""), err) < 0)
		return NULL;
	id = run.id;
	name = xstrdup(js_str(r->args, "run", ""));
	dir = xstrdup(run.dir); /* the row's own is gone with the next query */
	rc = js_bool(r->args, "dry_run", false) ? 0 : remove_run(r, id, name, dir, err);
	free(dir);
	free(name);
	return rc < 0 ? NULL : json_pack("{s:O}", "run", json_object_get(r->args, "run"));
}
