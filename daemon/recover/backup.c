/* SPDX-License-Identifier: MIT */
/* backup.c - copy on the loop, for the ledger is the loop's, in pieces; look at the copy and put it
 * in place in a thread; tell what is wrong. */
#include "daemon/recover/backup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/sealed_file.h"
#include "daemon/process/lock.h"

enum {
	FIRST_MS = 10 * 1000, /* who ended badly may have left damage */
	EVERY_MS = 3600 * 1000,
	PIECE_PAGES = 512, /* 2 MB: in between lbd does its work, however large the ledger is */
	PIECE_PAUSE_MS = 5,
};

struct backup {
	struct lbd *lbd;
	uv_timer_t timer, piece;
	uv_work_t work;
	char *path, *copy;
	struct ledger_copy *copying; /* NULL: none is under way */
	bool is_checking;
	atomic_bool is_stopping;
	/* by the thread: what is wrong with the copy, and why it could not be put in place */
	struct err found, trouble;
	struct err damage;
	int64_t checked_ms;
};

/* What is found in the copy decides whether it takes the place of the one before. Of who was taken
 * over meanwhile it is the older one. */
static void place_if_sound(uv_work_t *work)
{
	struct backup *b = work->data;

	err_clear(&b->found);
	err_clear(&b->trouble);
	if (ledger_check_file(b->copy, &b->found) == 0 && !atomic_load(&b->is_stopping) &&
	    file_sync(b->copy, &b->trouble) == 0 && lock_check(b->lbd->lock, &b->trouble) == 0)
		sealed_file_place(b->copy, b->path, &b->trouble);
}

static void tell_damage(struct backup *b)
{
	struct ledger_event e = {
		.time_ms = b->checked_ms,
		.kind = "ledger_damaged",
		.actor = "lbd",
		.text = b->found.text,
	};
	bool is_news = b->damage.code == ERR_NONE;
	struct err err = { 0 };

	b->damage = b->found;
	log_error("%s; the backup before it is kept", b->found.text);
	if (is_news && (ledger_event_put(b->lbd->ledger, &e, &err) < 0 ||
			ledger_commit(b->lbd->ledger, &err) < 0))
		log_warn("%s", err.text);
}

static void judge_copy(struct backup *b)
{
	b->checked_ms = clock_wall_ms();
	unlink(b->copy); /* unless it is in place */
	if (b->found.code != ERR_NONE) {
		tell_damage(b);
		return;
	}
	err_clear(&b->damage);
	if (b->trouble.code != ERR_NONE)
		log_warn("backup of the ledger: %s", b->trouble.text);
}

/* At the end of lbd there is a last copy soon, which is looked at, too. */
static void on_checked(uv_work_t *work, int status)
{
	struct backup *b = work->data;

	b->is_checking = false;
	if (status == 0 && !atomic_load(&b->is_stopping))
		judge_copy(b);
	else
		unlink(b->copy);
}

static int make_copy(struct backup *b)
{
	struct err err = { 0 };

	if (ledger_backup(b->lbd->ledger, b->copy, &err) == 0)
		return 0;
	log_warn("backup of the ledger: %s", err.text);
	return -1;
}

static void on_piece(uv_timer_t *timer)
{
	struct backup *b = timer->data;
	struct err err = { 0 };
	int rc = ledger_copy_step(b->copying, PIECE_PAGES, &err);

	if (rc > 0) {
		uv_timer_start(timer, on_piece, PIECE_PAUSE_MS, 0);
		return;
	}
	ledger_copy_end(b->copying);
	b->copying = NULL;
	if (rc < 0)
		log_warn("backup of the ledger: %s", err.text);
	else
		b->is_checking = uv_queue_work(b->lbd->loop, &b->work, place_if_sound,
					       on_checked) == 0;
}

static void on_timer(uv_timer_t *timer)
{
	struct backup *b = timer->data;
	struct err err = { 0 };

	if (b->copying || b->is_checking)
		return;
	b->copying = ledger_copy_begin(b->lbd->ledger, b->copy, &err);
	if (b->copying)
		uv_timer_start(&b->piece, on_piece, 0, 0);
	else
		log_warn("backup of the ledger: %s", err.text);
}

struct backup *backup_open(struct lbd *lbd)
{
	struct backup *b = xcalloc(1, sizeof(*b));

	b->lbd = lbd;
	b->path = path_join("%s.bak", lbd->config.ledger_path);
	b->copy = path_join("%s.check", lbd->config.ledger_path);
	b->work.data = b;
	uv_timer_init(lbd->loop, &b->timer);
	uv_timer_init(lbd->loop, &b->piece);
	b->timer.data = b->piece.data = b;
	uv_timer_start(&b->timer, on_timer, FIRST_MS, EVERY_MS);
	return b;
}

void backup_stop(struct backup *b)
{
	atomic_store(&b->is_stopping, true);
	uv_close((uv_handle_t *)&b->timer, NULL);
	uv_close((uv_handle_t *)&b->piece, NULL);
}

void backup_close(struct backup *b, bool is_good)
{
	atomic_store(&b->is_stopping, false); /* nobody else is at work any more */
	ledger_copy_end(b->copying);
	if (is_good && b->damage.code == ERR_NONE && make_copy(b) == 0) {
		place_if_sound(&b->work);
		judge_copy(b);
	}
	free(b->path);
	free(b->copy);
	free(b);
}

int64_t backup_checked_ms(const struct backup *b)
{
	return b->checked_ms;
}

const char *backup_damage(const struct backup *b)
{
	return b->damage.code == ERR_NONE ? NULL : b->damage.text;
}
