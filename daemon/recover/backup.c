/* SPDX-License-Identifier: MIT */
/* backup.c - copy on the loop, for the ledger is the loop's; look at the copy in a thread; then put
 * it in place, or tell what is wrong. */
#include "daemon/recover/backup.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/sealed_file.h"

enum {
	FIRST_MS = 10 * 1000, /* who ended badly may have left damage */
	EVERY_MS = 3600 * 1000,
};

struct backup {
	struct lbd *lbd;
	uv_timer_t timer;
	uv_work_t work;
	char *path, *copy;
	bool is_checking, is_stopping;
	struct err found; /* by the thread, in the copy */
	struct err damage;
	int64_t checked_ms;
};

static void check_copy(uv_work_t *work)
{
	struct backup *b = work->data;

	err_clear(&b->found);
	ledger_check_file(b->copy, &b->found);
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

/* What was found in the copy decides whose place it takes. */
static void judge_copy(struct backup *b)
{
	struct err err = { 0 };

	b->checked_ms = clock_wall_ms();
	if (b->found.code != ERR_NONE) {
		unlink(b->copy);
		tell_damage(b);
		return;
	}
	err_clear(&b->damage);
	if (sealed_file_place(b->copy, b->path, &err) < 0)
		log_warn("backup of the ledger: %s", err.text);
}

/* At the end of lbd there is a last copy soon, which is looked at, too. */
static void on_checked(uv_work_t *work, int status)
{
	struct backup *b = work->data;

	b->is_checking = false;
	if (status == 0 && !b->is_stopping)
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

static void on_timer(uv_timer_t *timer)
{
	struct backup *b = timer->data;

	if (b->is_checking || make_copy(b) < 0)
		return;
	b->is_checking = uv_queue_work(b->lbd->loop, &b->work, check_copy, on_checked) == 0;
}

struct backup *backup_open(struct lbd *lbd)
{
	struct backup *b = xcalloc(1, sizeof(*b));

	b->lbd = lbd;
	b->path = path_join("%s.bak", lbd->config.ledger_path);
	b->copy = path_join("%s.check", lbd->config.ledger_path);
	b->work.data = b;
	uv_timer_init(lbd->loop, &b->timer);
	b->timer.data = b;
	uv_timer_start(&b->timer, on_timer, FIRST_MS, EVERY_MS);
	return b;
}

void backup_stop(struct backup *b)
{
	b->is_stopping = true;
	uv_close((uv_handle_t *)&b->timer, NULL);
}

void backup_close(struct backup *b, bool is_good)
{
	if (is_good && b->damage.code == ERR_NONE && make_copy(b) == 0) {
		check_copy(&b->work);
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
